//! The subscriber of systems other than Linux: it cannot be made. Compiled on Linux for its test.

use super::NetlinkError;
use std::convert::Infallible;

/// The settings of a subscriber; without effect here.
#[derive(Clone, Copy, Debug, Default)]
pub struct SubscriberOptions;

/// The result of one receive call; nothing here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {}

/// A subscription to process events, which this system does not have.
#[derive(Debug)]
pub struct Subscriber {
    never: Infallible,
}

impl Subscriber {
    /// Refuses.
    pub fn new(_options: SubscriberOptions) -> Result<Self, NetlinkError> {
        Err(NetlinkError::Unsupported)
    }

    /// Cannot be called.
    pub fn never(&self) -> ! {
        match self.never {}
    }
}

/// Does nothing: there is no thread to speed up.
pub fn request_real_time_priority() -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscriber_cannot_be_made() {
        let error = Subscriber::new(SubscriberOptions).expect_err("no process events").to_string();
        assert!(error.starts_with("Unsupported"), "{error}");
        assert!(error.contains("--detector=poll"), "{error}");
    }
}
