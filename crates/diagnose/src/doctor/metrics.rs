//! The metrics page of a controller.

use jiff::SignedDuration;

/// A page in the Prometheus text format.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    samples: Vec<Sample>,
}

#[derive(Clone, Debug, PartialEq)]
struct Sample {
    name: String,
    /// `code="429",verb="get"`.
    labels: Vec<(String, String)>,
    value: f64,
}

/// Two pages of the same controller, and the time between them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scrapes {
    /// The first page.
    pub first: Page,
    /// The second page.
    pub second: Page,
    /// The time between them.
    pub apart: SignedDuration,
}

impl Page {
    /// Reads a page. Lines that cannot be read are ignored.
    pub fn parse(text: &str) -> Self {
        Self { samples: text.lines().filter_map(Sample::parse).collect() }
    }

    /// The sum of all series of a metric that have these labels.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.matching(name, labels).map(|sample| sample.value).sum()
    }

    /// The value of a metric, if it is there.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.matching(name, &[]).next().map(|sample| sample.value)
    }

    /// All series of a metric, by one of its labels.
    pub fn by_label<'a>(&'a self, name: &'a str, label: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
        self.matching(name, &[]).map(move |sample| (sample.label(label), sample.value))
    }

    fn matching<'a>(
        &'a self,
        name: &'a str,
        labels: &'a [(&'a str, &'a str)],
    ) -> impl Iterator<Item = &'a Sample> {
        self.samples.iter().filter(move |sample| {
            sample.name == name && labels.iter().all(|(label, value)| sample.label(label) == *value)
        })
    }
}

impl Scrapes {
    /// The growth of a counter between the two pages.
    pub fn growth(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        (self.second.sum(name, labels) - self.first.sum(name, labels)).max(0.0)
    }

    /// The growth of a counter in a second.
    pub fn rate(&self, name: &str) -> f64 {
        self.growth(name, &[]) / self.apart.as_secs_f64().max(0.001)
    }
}

impl Sample {
    fn parse(line: &str) -> Option<Self> {
        if line.starts_with('#') {
            return None;
        }
        let (series, value) = line.trim().rsplit_once(' ')?;
        let value = value.parse().ok()?;
        let Some((name, labels)) = series.split_once('{') else {
            return Some(Self { name: series.to_owned(), labels: Vec::new(), value });
        };
        Some(Self { name: name.to_owned(), labels: labels_of(labels.strip_suffix('}')?), value })
    }

    fn label(&self, name: &str) -> &str {
        self.labels.iter().find(|(label, _)| label == name).map_or("", |(_, value)| value)
    }
}

/// The labels between braces. Values may hold escaped quotes and commas.
fn labels_of(text: &str) -> Vec<(String, String)> {
    let mut labels = Vec::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once("=\"") {
        let mut value = String::new();
        let mut characters = after.char_indices();
        let mut end = after.len();
        while let Some((index, character)) = characters.next() {
            match character {
                '\\' => value.extend(
                    characters.next().map(|(_, escaped)| if escaped == 'n' { '\n' } else { escaped }),
                ),
                '"' => {
                    end = index + 1;
                    break;
                }
                _ => value.push(character),
            }
        }
        labels.push((name.trim_start_matches(',').to_owned(), value));
        rest = after.get(end..).unwrap_or_default();
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_as_prometheus_reads_it() {
        let page = Page::parse(
            "# HELP x y\n# TYPE x counter\nx{a=\"1\",b=\"q\\\"u,o\"} 2\nx{a=\"2\"} 3.5\ny 7\nnonsense\nz{ 1\n",
        );
        assert!((page.sum("x", &[]) - 5.5).abs() < 1e-9);
        assert!((page.sum("x", &[("a", "2")]) - 3.5).abs() < 1e-9);
        assert!((page.sum("x", &[("b", "q\"u,o")]) - 2.0).abs() < 1e-9);
        assert_eq!(page.value("y"), Some(7.0));
        assert_eq!(page.value("absent"), None);
        assert_eq!(page.by_label("x", "a").map(|(label, _)| label).collect::<Vec<_>>(), ["1", "2"]);
    }

    #[test]
    fn a_counter_that_began_anew_has_not_grown() {
        let page = |value: u32| Page::parse(&format!("x {value}\n"));
        let scrapes = |first, second| Scrapes {
            first: page(first),
            second: page(second),
            apart: SignedDuration::from_secs(2),
        };
        assert!((scrapes(4, 10).rate("x") - 3.0).abs() < 1e-9);
        assert!(scrapes(10, 4).rate("x").abs() < 1e-9);
    }
}
