//! The kinds of faults.

use crate::in_memory::Layout;
use std::fmt;
use std::str::FromStr;

/// A kind of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CampaignKind {
    /// The controller crashes, or its connection fails, around each of its writes.
    Crashes,
    /// It crashes twice.
    Pairs,
    /// Reads return an old state.
    Stale,
    /// Watches lose or delay events, end, hang, or fail with 410.
    Watches,
    /// Many requests fail, for ten minutes.
    Storms,
    /// The controller's clock is set.
    Clocks,
    /// Watch events are delivered before or after the responses to the writes that cause them.
    Orderings,
    /// A hostile tenant, with malicious API servers behind its kubeconfigs, has a namespace of the same cluster.
    Neighbours,
    /// The leader of two controllers is killed, stopped or cut off at each of its writes, and the other one takes over.
    Leaders,
}

impl CampaignKind {
    /// Every one.
    pub const ALL: [Self; 9] = [
        Self::Crashes,
        Self::Pairs,
        Self::Stale,
        Self::Watches,
        Self::Storms,
        Self::Clocks,
        Self::Orderings,
        Self::Neighbours,
        Self::Leaders,
    ];

    /// The layouts of a scenario in which it is tried by default. What grows with the square of the writes, and what
    /// has nothing to do with where the Nodes are, is tried in one of them.
    pub fn layouts(self, runnable_layouts: &[Layout]) -> Vec<Layout> {
        match self {
            Self::Crashes
            | Self::Stale
            | Self::Watches
            | Self::Storms
            | Self::Orderings
            | Self::Neighbours => runnable_layouts.to_vec(),
            Self::Pairs | Self::Clocks | Self::Leaders => {
                runnable_layouts.iter().copied().max().into_iter().collect()
            }
        }
    }

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Crashes => "crashes",
            Self::Pairs => "pairs",
            Self::Stale => "stale",
            Self::Watches => "watches",
            Self::Storms => "storms",
            Self::Clocks => "clocks",
            Self::Orderings => "orderings",
            Self::Neighbours => "neighbours",
            Self::Leaders => "leaders",
        }
    }
}

impl fmt::Display for CampaignKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for CampaignKind {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        found.ok_or_else(|| anyhow::anyhow!("no such kind of faults: {text}"))
    }
}
