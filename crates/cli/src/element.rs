//! Elements of a picture, written so that no text can become markup.

use std::fmt::{self, Display, Write};

/// An element with its attributes, and either text or other elements in it.
#[derive(Clone, Debug)]
pub struct Element {
    name: &'static str,
    attributes: String,
    content: String,
}

impl Element {
    pub const fn new(name: &'static str) -> Self {
        Self { name, attributes: String::new(), content: String::new() }
    }

    /// With an attribute.
    pub fn with(mut self, name: &str, value: impl Display) -> Self {
        // Writing to a string does not fail.
        let _ = write!(self.attributes, " {name}=\"{}\"", escape(&value.to_string()));
        self
    }

    /// With text in it.
    pub fn text(mut self, text: &str) -> Self {
        self.content.push_str(&escape(text));
        self
    }

    /// With words that show when it is pointed at, before all else in it.
    pub fn titled(mut self, words: &str) -> Self {
        self.content.insert_str(0, &Self::new("title").text(words).to_string());
        self
    }

    /// With elements in it, each on lines of its own.
    pub fn children(mut self, children: impl IntoIterator<Item = Self>) -> Self {
        for child in children {
            let _ = write!(self.content, "\n{child}");
        }
        self.content.push('\n');
        self
    }
}

impl Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, attributes, content } = self;
        if content.is_empty() {
            write!(f, "<{name}{attributes}/>")
        } else {
            write!(f, "<{name}{attributes}>{content}</{name}>")
        }
    }
}

/// Text in which markup has lost its meaning. Characters that XML cannot hold at all are replaced.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push('\n'),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_nest() {
        let picture = Element::new("g")
            .with("class", "a")
            .children([Element::new("rect").with("x", 1.5), Element::new("text").text("up")]);
        assert_eq!(picture.to_string(), "<g class=\"a\">\n<rect x=\"1.5\"/>\n<text>up</text>\n</g>");
    }

    #[test]
    fn a_title_comes_before_the_text() {
        assert_eq!(
            Element::new("text").text("up").titled("a < b").to_string(),
            "<text><title>a &lt; b</title>up</text>"
        );
    }

    #[test]
    fn text_cannot_become_markup() {
        let hostile = Element::new("text").with("title", "\"/><script>").text("<b>&\u{1b}\u{0}");
        assert_eq!(
            hostile.to_string(),
            "<text title=\"&quot;/&gt;&lt;script&gt;\">&lt;b&gt;&amp;\u{fffd}\u{fffd}</text>"
        );
    }
}
