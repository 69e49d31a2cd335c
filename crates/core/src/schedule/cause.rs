//! The causes that make a machine wanted.

use std::fmt;

/// A cause that makes a machine wanted. The order is alphabetical.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// An exception with state `open`.
    Exception,
    /// The lead time before a window.
    LeadTime,
    /// An override with state `up`.
    Override,
    /// `daysOfWeek` and `hoursOfDay`.
    Schedule,
    /// An entry of `windows`.
    Window,
}

impl Cause {
    /// All causes, in order.
    pub const ALL: [Self; 5] =
        [Self::Exception, Self::LeadTime, Self::Override, Self::Schedule, Self::Window];

    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exception => "exception",
            Self::LeadTime => "leadTime",
            Self::Override => "override",
            Self::Schedule => "schedule",
            Self::Window => "window",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of causes. It is displayed as their names in order, joined by `+`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Causes(u8);

impl Causes {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// Returns this set with another cause.
    #[must_use]
    pub const fn with(self, cause: Cause) -> Self {
        Self(self.0 | cause.bit())
    }

    /// Returns the union of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns true if the set contains the cause.
    pub const fn contains(self, cause: Cause) -> bool {
        self.0 & cause.bit() != 0
    }

    /// Returns true if the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the causes, in order.
    pub fn iter(self) -> impl Iterator<Item = Cause> {
        Cause::ALL.into_iter().filter(move |&cause| self.contains(cause))
    }
}

impl From<Cause> for Causes {
    fn from(cause: Cause) -> Self {
        Self::NONE.with(cause)
    }
}

impl FromIterator<Cause> for Causes {
    fn from_iter<I: IntoIterator<Item = Cause>>(causes: I) -> Self {
        causes.into_iter().fold(Self::NONE, Self::with)
    }
}

impl fmt::Display for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, cause) in self.iter().enumerate() {
            if position > 0 {
                f.write_str("+")?;
            }
            f.write_str(cause.as_str())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_shown_in_the_order_of_its_words() {
        let set: Causes = [Cause::Window, Cause::Schedule, Cause::LeadTime].into_iter().collect();
        assert_eq!(set.to_string(), "leadTime+schedule+window");
        assert_eq!(
            Cause::ALL.into_iter().collect::<Causes>().to_string(),
            "exception+leadTime+override+schedule+window"
        );
        assert_eq!(Causes::NONE.to_string(), "");
    }

    #[test]
    fn a_set_holds_what_was_put_in_and_nothing_else() {
        for cause in Cause::ALL {
            let set = Causes::from(cause);
            assert!(!set.is_empty());
            assert_eq!(set.iter().collect::<Vec<_>>(), [cause]);
            assert_eq!(set.with(cause), set);
            assert!(set.union(Cause::Override.into()).contains(Cause::Override));
        }
        assert!(Causes::NONE.is_empty());
    }
}
