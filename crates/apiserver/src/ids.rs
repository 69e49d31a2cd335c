//! UIDs and random name suffixes from a seed, so that runs are reproducible.

use std::fmt::Write as _;

/// A deterministic source of identifiers (`SplitMix64`). They are not secure against guessing.
#[derive(Clone, Debug)]
pub struct Ids {
    state: u64,
}

impl Ids {
    /// Creates the sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which must not be zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound
    }

    /// Returns true in `per_mille` of a thousand cases.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    /// A version 4 UUID.
    pub fn uid(&mut self) -> String {
        let bits = (u128::from(self.next_u64()) << 64) | u128::from(self.next_u64());
        let bits = (bits & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
        let hex = format!("{bits:032x}");
        let mut uid = String::with_capacity(36);
        for (index, part) in
            [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].iter().enumerate()
        {
            let separator = if index == 0 { "" } else { "-" };
            // Writing into a `String` cannot fail.
            let _ = write!(uid, "{separator}{part}");
        }
        uid
    }

    /// Five characters for `generateName`, from the alphabet of Kubernetes: no vowels and no characters that
    /// look alike.
    pub fn suffix(&mut self) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..5)
            .map(|_| {
                let index = self.next_u64() % ALPHABET.len() as u64;
                char::from(ALPHABET[usize::try_from(index).unwrap_or(0)])
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_is_a_version_4_uuid() {
        let uid = Ids::new(7).uid();
        assert_eq!(uid.len(), 36);
        assert_eq!(uid.as_bytes()[14], b'4');
        assert!(matches!(uid.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{uid}");
    }

    #[test]
    fn the_same_seed_gives_the_same_names() {
        let names = |seed| {
            let mut ids = Ids::new(seed);
            (ids.uid(), ids.suffix(), ids.suffix())
        };
        assert_eq!(names(1), names(1));
        assert_ne!(names(1), names(2));
    }
}
