//! Mutations of inputs, reproducible by a seed.

/// The longest input.
const MAX_BYTES: usize = 8192;

/// Keywords of the parsed formats.
const WORDS: [&[u8]; 40] = [
    b"\0",
    b"\n",
    b":",
    b"/",
    b"..",
    b"kubepods",
    b"pod",
    b".slice",
    b"0::/",
    b")",
    b"(",
    b"\"",
    b"\\",
    b"'''",
    b"[",
    b"]",
    b"=",
    b"\xff\xff\xff\xff",
    b"\0\0\0\0",
    b"Uid:",
    b"java",
    b"\xf0\x9f\x98\x80",
    b"{",
    b"}",
    b",",
    b"null",
    b"-1",
    b"1e999",
    b"18446744073709551616",
    b"\\ud800",
    b"\\u0000",
    b"%2e%2e",
    b"../",
    b"\"items\":",
    b"\"metadata\":{",
    b"2026-11-16T08:00:00Z",
    b"::ffff:",
    b"- &a [*a, *a]",
    b"!!binary ",
    b"\r\n",
];

/// A generator of inputs.
pub(super) struct Mutator {
    random: u64,
    corpus: Vec<Vec<u8>>,
}

impl Mutator {
    pub(super) fn new(seed: u64, corpus: Vec<Vec<u8>>) -> Self {
        Self { random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, corpus }
    }

    /// The next number below `bound` (xorshift).
    fn below(&mut self, bound: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random % bound.max(1) as u64).expect("below a usize")
    }

    pub(super) fn next_input(&mut self) -> Vec<u8> {
        let index = self.below(self.corpus.len());
        let mut input = self.corpus[index].clone();
        for _ in 0..=self.below(8) {
            self.change(&mut input);
        }
        input.truncate(MAX_BYTES);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        match self.below(8) {
            0 if at < input.len() => input[at] = u8::try_from(self.below(256)).expect("a byte"),
            1 if at < input.len() => input[at] ^= 1 << self.below(8),
            2 if at < input.len() => {
                let end = at + self.below(input.len() - at + 1);
                input.drain(at..end);
            }
            3 => {
                let word = WORDS[self.below(WORDS.len())];
                input.splice(at..at, word.iter().copied());
            }
            4 => {
                let end = at + self.below(input.len() - at + 1);
                let copy = input[at..end].to_vec();
                input.splice(at..at, copy);
            }
            5 => {
                let index = self.below(self.corpus.len());
                let other = self.corpus[index].clone();
                let from = self.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            6 => {
                let (byte, count) = (u8::try_from(self.below(256)).expect("a byte"), self.below(600));
                input.splice(at..at, std::iter::repeat_n(byte, count));
            }
            _ => input.truncate(at),
        }
    }
}
