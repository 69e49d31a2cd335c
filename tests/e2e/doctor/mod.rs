//! `5spot doctor` and `5spot explain` on real components: each test creates a fault, checks the finding,
//! applies the printed fix literally, and checks that the finding is gone. Also tests the commands of the
//! pages under `docs/troubleshooting`.

mod diagnosis;
mod drains;
mod installation;
mod machines;
mod pages;
mod references;
mod removals;

use five_spot_testenv::harness::Test;

pub(crate) fn tests() -> Vec<Test> {
    [
        drains::tests(),
        removals::tests(),
        references::tests(),
        machines::tests(),
        installation::tests(),
        pages::tests(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
