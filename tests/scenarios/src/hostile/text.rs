//! Hostile text.

use five_spot_apiserver::ids::Ids;

/// As much as an annotation can hold.
const HUGE: usize = 250 * 1024;

/// More than an event's note or a condition's reason can hold.
const LONG: usize = 1_800;

/// Pieces that a terminal, a log reader, a template or a parser may interpret.
const PIECES: [&str; 16] = [
    "\n",
    "\r\n",
    "\u{1b}[31m",
    "\u{1b}]0;title\u{7}",
    "\u{8}",
    "\u{7f}",
    "\u{85}",
    "\u{202e}",
    "\u{2028}",
    "\u{2066}",
    "\"}\n{\"level\":\"ERROR\",\"message\":\"forged\"}",
    "%s%n{{.}}${x}",
    "é",
    "🖥️",
    "a",
    "\t",
];

/// One of several kinds of text, by the seed, so that a few seeds have all of them.
pub(super) fn any(seed: u64, chance: &mut Ids) -> String {
    match seed % 7 {
        0 => "x".repeat(HUGE),
        1 => "é".repeat(HUGE / 2),
        2 => "é".repeat(LONG / 2),
        3 => "\u{1b}[2J\n\r\u{202e}gnp.exe".to_owned(),
        4 => format!("fine\n{}", "\"}\n{\"level\":\"ERROR\",\"message\":\"forged\"}".repeat(3)),
        5 => pieces(chance, LONG),
        _ => pieces(chance, HUGE),
    }
}

/// Pieces in any order, up to a size in bytes.
fn pieces(chance: &mut Ids, size: usize) -> String {
    let mut text = String::with_capacity(size);
    loop {
        let number = usize::try_from(chance.below(PIECES.len() as u64)).unwrap_or(0);
        let piece = PIECES[number];
        if text.len() + piece.len() > size {
            return text;
        }
        text.push_str(piece);
    }
}
