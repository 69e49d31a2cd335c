//! The size of the tests: a sample in the default loop, everything in a campaign.

/// Set by `cargo xtask campaign`.
const CAMPAIGN_VARIABLE: &str = "FIVESPOT_CAMPAIGN";

/// The number of cases that a test runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// A sample that touches every scenario, for `cargo test --workspace`.
    Sample,
    /// All cases, for `cargo xtask campaign`.
    Full,
}

impl Size {
    /// The size that this process was asked for.
    pub fn of_process() -> Self {
        if std::env::var_os(CAMPAIGN_VARIABLE).is_some() { Self::Full } else { Self::Sample }
    }
}
