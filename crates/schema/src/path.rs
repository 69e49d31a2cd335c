//! The path of a value in an object, in the format of the API server.

use std::fmt::Write as _;

/// A path from the root of an object, as a linked list on the stack: nothing is allocated until there is an
/// error.
#[derive(Clone, Copy)]
pub(super) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    segment: Segment<'a>,
}

#[derive(Clone, Copy)]
enum Segment<'a> {
    Root,
    Field(&'a str),
    Key(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    /// The root of the object.
    pub(super) const ROOT: Path<'static> = Path { parent: None, segment: Segment::Root };

    /// A field of the schema.
    pub(super) fn field(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), segment: Segment::Field(name) }
    }

    /// An entry of a map.
    pub(super) fn key(&'a self, key: &'a str) -> Self {
        Self { parent: Some(self), segment: Segment::Key(key) }
    }

    /// An item of a list.
    pub(super) fn index(&'a self, index: usize) -> Self {
        Self { parent: Some(self), segment: Segment::Index(index) }
    }

    /// The format of schema errors and unknown fields: `labels.rack`. The root is empty.
    pub(super) fn dotted(&self) -> String {
        self.render(join)
    }

    /// The format of list and rule errors: `labels[rack]`. The root is empty.
    pub(super) fn bracketed(&self) -> String {
        self.render(|path, key| {
            let _ = write!(path, "[{key}]");
        })
    }

    fn render(&self, key_style: fn(&mut String, &str)) -> String {
        let mut path = self.parent.map_or_else(String::new, |parent| parent.render(key_style));
        match self.segment {
            Segment::Root => {}
            Segment::Field(name) => join(&mut path, name),
            Segment::Key(key) => key_style(&mut path, key),
            Segment::Index(index) => {
                let _ = write!(path, "[{index}]");
            }
        }
        path
    }
}

/// Appends a field to a rendered path.
pub(super) fn join(path: &mut String, field: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(field);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_writing() {
        let spec = Path::ROOT.field("spec");
        let labels = spec.field("labels");
        let label = labels.key("example.org/rack");
        assert_eq!(label.dotted(), "spec.labels.example.org/rack");
        assert_eq!(label.bracketed(), "spec.labels[example.org/rack]");
        let days = spec.field("days");
        assert_eq!(days.index(3).dotted(), "spec.days[3]");
        assert_eq!(Path::ROOT.dotted(), "");
    }
}
