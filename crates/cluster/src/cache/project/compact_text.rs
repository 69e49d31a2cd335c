//! Texts that resemble each other, kept without what they have in common: LZ77 with a dictionary that all of them share.
//!
//! A text is a sequence of literals and copies. A literal is a byte below 128, the number of bytes less one, and these bytes.
//! A copy is a byte from 128 on, 128 and the length less [`SHORTEST`], and the place in two bytes that it begins at: places
//! count through the dictionary and on through the text. The same text always gives the same bytes.

use std::sync::{Arc, LazyLock};

/// The shortest copy that takes less room than its bytes.
const SHORTEST: usize = 4;

/// The longest copy.
const LONGEST: usize = SHORTEST + 127;

/// The most bytes of one literal.
const LITERAL: usize = 128;

/// The places of the dictionary that are tried for a copy.
const CANDIDATES: usize = 8;

/// The phrases of the statuses of most objects. Another text takes more room, and is kept all the same.
const DICTIONARY: &str = concat!(
    r#"{"phase":"Inactive","message":"no machine is lent; the schedule is closed","inSchedule":false,"observedGeneration":1,"#,
    r#""nextActivation":"2026-11-09T14:00:00Z","nextCleanup":"2026-11-09T23:00:00Z","nextChange":"2026-11-09T14:00:00Z","#,
    r#""conditions":[{"lastTransitionTime":"2026-11-09T08:00:00Z","message":"no machine is lent; the schedule is closed","#,
    r#""observedGeneration":1,"reason":"Inactive","status":"True","type":"Ready"},{"lastTransitionTime":"2026-11-09T08:00:00Z","#,
    r#""message":"Machine -machine does not exist","observedGeneration":1,"reason":"NoMachine","status":"False","#,
    r#""type":"MachineReady"},{"lastTransitionTime":"2026-11-09T08:00:00Z","message":"the schedule is closed","#,
    r#""observedGeneration":1,"reason":"OutsideWindow","status":"False","type":"Scheduled"},{"lastTransitionTime":"2026-11-"#,
    r#"09T08:00:00Z","message":"all objects that the spec refers to exist","observedGeneration":1,"reason":"Resolved","#,
    r#""status":"True","type":"ReferencesValid"},{"lastTransitionTime":"2026-11-09T08:00:00Z","message":"not paused","#,
    r#""observedGeneration":1,"reason":"NotPaused","status":"False","type":"Paused"}],"phase":"Active","inSchedule":true,"#,
    r#""machineRef":{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","name":"-machine","namespace":"","uid":""},"#,
    r#""bootstrapRef":{"apiVersion":"bootstrap.cluster.x-k8s.io/v1beta2","kind":"K0sWorkerConfig","name":"-bootstrap","#,
    r#""namespace":"","uid":""},"infrastructureRef":{"apiVersion":"infrastructure.cluster.x-k8s.io/v1beta2","#,
    r#""kind":"RemoteMachine","name":"-infra","namespace":"","uid":""},"nodeRef":{"apiVersion":"v1","kind":"Node","name":"","#,
    r#""uid":""},"providerID":"remote-machine://","workloadCluster":{"secretName":"-kubeconfig","secretKey":"value","#,
    r#""clusterUID":""},"join":{"lastSeconds":96,"recentSeconds":[96],"machineUID":""},"lastScheduledTime":"2026-11-09T"#,
    r#""message":"Machine -machine is lent as node -infra; the schedule is open","reason":"NodeReady","#,
    r#""message":"node -infra is Ready","message":"the schedule is open","reason":"InWindow","status":"True","#,
    r#""message":"Machine -machine has no Node yet","reason":"NoNodeYet","status":"Unknown","reason":"WaitingForMachine","#
);

/// A text without what it shares with others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CompactText(Arc<[u8]>);

impl CompactText {
    pub(super) fn new(text: &str) -> Self {
        Self(encode(text.as_bytes()).into())
    }

    /// The text.
    pub(super) fn text(&self) -> String {
        // What was a text before is a text again.
        String::from_utf8(decode(&self.0)).unwrap_or_default()
    }
}

/// The number of slots of a table of places.
const SLOTS: usize = 2048;

/// No place.
const NONE: u16 = u16::MAX;

/// The slot of what begins with these bytes. Different beginnings may share one.
fn slot(bytes: &[u8]) -> usize {
    let start = bytes.iter().take(SHORTEST).fold(0_u32, |start, byte| (start << 8) | u32::from(*byte));
    // Fibonacci hashing: the upper bits of the product are well mixed.
    (start.wrapping_mul(0x9E37_79B1) >> 21) as usize % SLOTS
}

/// The places of the dictionary, by slot.
static PLACES: LazyLock<Vec<[u16; CANDIDATES]>> = LazyLock::new(|| {
    let mut places = vec![[NONE; CANDIDATES]; SLOTS];
    for (place, start) in DICTIONARY.as_bytes().windows(SHORTEST).enumerate() {
        let free = places[slot(start)].iter_mut().find(|known| **known == NONE);
        if let (Some(free), Ok(place)) = (free, u16::try_from(place)) {
            *free = place;
        }
    }
    places
});

/// The length of what two slices begin with in common.
fn common(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take(LONGEST).take_while(|(one, other)| one == other).count()
}

fn encode(text: &[u8]) -> Vec<u8> {
    let dictionary = DICTIONARY.as_bytes();
    let window = [dictionary, text].concat();
    let mut encoded = Vec::with_capacity(text.len() / 2);
    // The last place of the text itself, by slot.
    let mut own = [NONE; SLOTS];
    let (mut at, mut unwritten) = (dictionary.len(), dictionary.len());
    while at + SHORTEST <= window.len() {
        let slot_here = slot(&window[at..]);
        let places = PLACES[slot_here].iter().chain(&own[slot_here..=slot_here]);
        let copies = places
            .filter(|place| **place != NONE)
            .map(|place| (common(&window[usize::from(*place)..at], &window[at..]), *place));
        // Of equal lengths the last, as every time.
        let best = copies.max_by_key(|(length, _)| *length).filter(|(length, _)| *length >= SHORTEST);
        let length = best.map_or(1, |(length, _)| length);
        if let Some((length, place)) = best {
            write_literals(&mut encoded, &window[unwritten..at]);
            encoded.push(128 + u8::try_from(length - SHORTEST).unwrap_or_default());
            encoded.extend(place.to_le_bytes());
            unwritten = at + length;
        }
        for place in at..at + length {
            if let (Some(start), Ok(short)) = (window.get(place..place + SHORTEST), u16::try_from(place)) {
                own[slot(start)] = short;
            }
        }
        at += length;
    }
    write_literals(&mut encoded, &window[unwritten..]);
    encoded
}

fn write_literals(encoded: &mut Vec<u8>, bytes: &[u8]) {
    for literal in bytes.chunks(LITERAL) {
        encoded.push(u8::try_from(literal.len() - 1).unwrap_or_default());
        encoded.extend(literal);
    }
}

fn decode(mut encoded: &[u8]) -> Vec<u8> {
    let dictionary = DICTIONARY.as_bytes();
    let mut window = dictionary.to_vec();
    while let Some((first, rest)) = encoded.split_first() {
        if let Some(length) = first.checked_sub(128) {
            let Some((place, rest)) = rest.split_first_chunk() else { break };
            let place = usize::from(u16::from_le_bytes(*place));
            window.extend_from_within(place..place + usize::from(length) + SHORTEST);
            encoded = rest;
        } else {
            let (literal, rest) = rest.split_at(usize::from(*first) + 1);
            window.extend_from_slice(literal);
            encoded = rest;
        }
    }
    window.split_off(dictionary.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str) {
        let compact = CompactText::new(text);
        assert_eq!(compact.text(), text);
        assert_eq!(compact, CompactText::new(text), "the same text gives the same bytes");
    }

    #[test]
    fn every_text_comes_back() {
        for text in [
            "",
            "a",
            "abc",
            "abcd",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "größer als ß, 日本語 🦀",
            DICTIONARY,
        ] {
            check(text);
        }
        check(&DICTIONARY.repeat(40));
        check(&"0123456789".repeat(20_000));
    }

    #[test]
    fn common_phrases_take_little_room() {
        assert!(CompactText::new(DICTIONARY).0.len() < DICTIONARY.len() / 20);
        let text = r#""lastTransitionTime":"2031-01-02T03:04:05Z","message":"the schedule is closed","observedGeneration":7"#;
        assert!(CompactText::new(text).0.len() < text.len() / 2);
    }

    proptest! {
        #[test]
        fn any_text_comes_back(text in any::<String>()) {
            check(&text);
        }

        #[test]
        fn pieces_of_the_dictionary_come_back(pieces in prop::collection::vec((0..DICTIONARY.len(), 0..90_usize), 0..40)) {
            let piece = |(start, length): &(usize, usize)| &DICTIONARY[*start..(*start + length).min(DICTIONARY.len())];
            check(&pieces.iter().map(piece).collect::<String>());
        }
    }
}
