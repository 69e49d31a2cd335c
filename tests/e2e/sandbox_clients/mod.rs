//! The embedded API of the sandbox over HTTP, asked by the clients that people have: the real `kubectl`, and the official
//! Python client. What can be asked of a real server as well is asked of both, and they have to say the same.

mod changing;
mod nodes;
mod python;
mod reading;
mod removing;
mod server;
mod watching;

use five_spot_testenv::harness::Test;

pub(crate) fn tests() -> Vec<Test> {
    [
        changing::tests(),
        nodes::tests(),
        python::tests(),
        reading::tests(),
        removing::tests(),
        watching::tests(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
