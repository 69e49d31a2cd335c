//! Lines that fit.

/// Breaks `text` at spaces so that no line is longer than `width`, the first line indented by `first`, the
/// others by `hanging`. A word that fits no line is broken where the line ends.
pub fn wrap(text: &str, width: usize, first: usize, hanging: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = " ".repeat(first);
    let mut used = first;
    let mut is_fresh = true;
    for word in text.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        if !is_fresh && used + 1 + word.len() > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(hanging)));
            (used, is_fresh) = (hanging, true);
        }
        if !is_fresh {
            line.push(' ');
            used += 1;
        }
        while used + word.len() > width {
            line.extend(word.drain(..width - used));
            lines.push(std::mem::replace(&mut line, " ".repeat(hanging)));
            used = hanging;
        }
        used += word.len();
        line.extend(word);
        is_fresh = false;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_whole_unless_they_fit_nowhere() {
        assert_eq!(wrap("one two three", 9, 0, 2), ["one two", "  three"]);
        assert_eq!(wrap("one two", 80, 4, 0), ["    one two"]);
        assert_eq!(wrap("abcdefghij kl", 6, 2, 2), ["  abcd", "  efgh", "  ij", "  kl"]);
        assert_eq!(wrap("", 6, 0, 0), [""]);
    }
}
