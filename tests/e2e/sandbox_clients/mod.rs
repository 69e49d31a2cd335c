//! The in-memory API server of the sandbox over HTTP, with common clients: the real `kubectl`, and the
//! official Python client. Where possible, the same requests go to a real server, and the responses have to
//! be the same.

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
