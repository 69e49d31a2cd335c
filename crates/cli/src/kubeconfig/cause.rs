//! Failed requests in words.

use std::error::Error;

/// The message of the API server, or the error with everything that brought it about.
pub(super) fn cause(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error
        && !status.message.is_empty()
    {
        return status.message.clone();
    }
    // The name of a variant of the client library says nothing to a user.
    let mut text = error.to_string().trim_start_matches("ServiceError: ").to_owned();
    let mut source = error.source();
    while let Some(deeper) = source {
        let said = deeper.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        source = deeper.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    #[test]
    fn a_refused_request_gives_the_message_of_the_server_alone() {
        let status = Status::failure("secrets \"edge-kubeconfig\" not found", "NotFound").with_code(404);
        assert_eq!(cause(&kube::Error::Api(status.boxed())), "secrets \"edge-kubeconfig\" not found");
    }

    #[test]
    fn a_failed_connection_names_its_cause() {
        #[derive(Debug, thiserror::Error)]
        #[error("client error (Connect)")]
        struct Connect(#[source] std::io::Error);
        let refused = Connect(std::io::Error::other("Connection refused"));
        let error = kube::Error::Service(Box::new(refused));
        assert_eq!(cause(&error), "client error (Connect): Connection refused");
    }
}
