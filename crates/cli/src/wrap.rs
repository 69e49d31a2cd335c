//! Lines that fit.

/// Breaks `text` at spaces so that no line is longer than `width`, the first line indented by `first`, the
/// others by `hanging`. A word that fits no line is broken where the line ends. Indents leave room for one character at
/// least.
pub fn wrap(text: &str, width: usize, first: usize, hanging: usize) -> Vec<String> {
    let width = width.max(1);
    let (first, hanging) = (first.min(width - 1), hanging.min(width - 1));
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

    #[test]
    fn an_indent_that_is_wider_than_the_line_is_survived() {
        for (first, hanging) in [(6, 6), (8, 8), (0, 6), (6, 0)] {
            let lines = wrap("one two", 6, first, hanging);
            let text: String = lines.concat().chars().filter(|c| *c != ' ').collect();
            assert_eq!(text, "onetwo", "{first}, {hanging}");
        }
    }
}
