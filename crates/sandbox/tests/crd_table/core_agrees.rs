//! The controller reads a spec again, because the definition in a cluster may be older than the program. It
//! must not refuse what the API server accepts, nor accept what a rule or bound of the definition refuses.

use crate::table::{Case, Expected, Refusal, cases};
use five_spot_api::ScheduledMachine;
use five_spot_core::ValidSpec;
use five_spot_sandbox::schema::Validator;

/// Whether a case says anything to a program that reads typed objects: values of the wrong type do not get
/// that far, and unknown fields are gone by then.
fn concerns_the_core(case: &Case) -> bool {
    match &case.expected {
        Expected::Accepted { .. } => true,
        Expected::Refused(Refusal {
            field, code, reason, ..
        }) => *code == 422 && field.starts_with("spec.") && reason != "FieldValueTypeInvalid",
    }
}

#[test]
fn the_core_accepts_what_the_api_server_accepts_and_nothing_else() {
    let validator = Validator::scheduled_machine();
    let mut read = 0;
    let mut complaints = Vec::new();
    for mut case in cases().into_iter().filter(concerns_the_core) {
        validator.apply_defaults(&mut case.object);
        let Ok(machine) = serde_json::from_value::<ScheduledMachine>(case.object) else {
            continue;
        };
        read += 1;
        match (&case.expected, ValidSpec::parse(&machine.spec)) {
            (Expected::Accepted { .. }, Err(errors)) => {
                complaints.push(format!("{} is refused: {errors:?}", case.name));
            }
            (Expected::Refused(refusal), Ok(_)) => {
                complaints.push(format!("{} is accepted, against {refusal:?}", case.name));
            }
            (Expected::Accepted { .. }, Ok(_)) | (Expected::Refused(_), Err(_)) => {}
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(read > 600, "only {read} cases could be read");
}
