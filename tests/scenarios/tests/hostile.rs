//! Hostile text in every field that someone else can write, one trial for each field.

use five_spot_scenarios::Size;
use five_spot_scenarios::hostile::{Field, try_case};
use libtest_mimic::{Arguments, Failed, Trial};

/// The number of cases for a field at full size: one of each kind of text.
const CASES: u64 = 7;

/// The number of cases for a field in the default loop. More are tried until the API server accepts one of the texts.
const SAMPLE: u64 = 2;

fn main() {
    let arguments = Arguments::from_args();
    libtest_mimic::run(&arguments, Field::ALL.into_iter().map(trial).collect()).exit();
}

fn trial(field: Field) -> Trial {
    Trial::test(field.to_string(), move || {
        let mut taken = 0;
        let mut failures = Vec::new();
        for seed in 0..CASES {
            if Size::of_process() == Size::Sample && seed >= SAMPLE && taken > 0 {
                break;
            }
            match try_case(field, seed) {
                Ok(is_taken) => taken += u32::from(is_taken),
                Err(error) => failures.push(format!("seed {seed}: {error:#}")),
            }
        }
        if !failures.is_empty() {
            return Err(Failed::from(failures.join("\n")));
        }
        if taken == 0 {
            return Err(Failed::from("the API server took none of the texts"));
        }
        Ok(())
    })
}
