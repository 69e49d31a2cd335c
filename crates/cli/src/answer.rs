//! The form of an answer: the flags `-o` and `--color`, shared by the commands that look at a cluster.

use crate::environment::ProcessEnvironment;
use crate::style::Style;
use anyhow::Context as _;
use clap::ValueEnum;
use five_spot_core::text::is_unprintable;
use serde::Serialize;
use std::fmt::Write as _;

/// The flags that choose the form of the answer.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct AnswerArgs {
    /// Output format
    #[arg(short, long, value_enum, default_value_t = AnswerFormat::Text)]
    pub output: AnswerFormat,

    /// When to colour the text; auto means on a terminal, unless NO_COLOR is set
    #[expect(clippy::doc_markdown, reason = "the comments are the help text")]
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    pub color: Color,
}

/// The forms of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AnswerFormat {
    /// For people
    Text,
    /// For programs
    Json,
    /// The same data as json
    Yaml,
}

/// The use of colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    Auto,
    Always,
    Never,
}

impl Color {
    /// The style of the terminal or file, with this choice of colours.
    pub fn style(self, process_environment: &ProcessEnvironment) -> Style {
        let around = Style::of(process_environment);
        let colored = match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => around.colored,
        };
        Style { colored, ..around }
    }
}

impl AnswerArgs {
    /// Writes the answer in the chosen form. `text` is the form for people.
    pub fn render<T: Serialize>(
        &self,
        answer: &T,
        process_environment: &ProcessEnvironment,
        text: impl FnOnce(&T, Style) -> String,
    ) -> anyhow::Result<String> {
        match self.output {
            AnswerFormat::Text => Ok(text(answer, self.color.style(process_environment))),
            AnswerFormat::Json => json(answer),
            AnswerFormat::Yaml => {
                let yaml = serde_saphyr::to_string(answer).context("failed to write YAML")?;
                // JSON is YAML, too, and can escape everything.
                let steers = |character: char| character != '\n' && is_unprintable(character);
                if yaml.contains(steers) { json(answer) } else { Ok(yaml) }
            }
        }
    }
}

fn json(answer: &impl Serialize) -> anyhow::Result<String> {
    let json = serde_json::to_string_pretty(answer).context("failed to write JSON")?;
    Ok(format!("{}\n", escaped(&json)))
}

/// JSON in which every character that steers a terminal is escaped. JSON itself asks only for those below U+0020.
fn escaped(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        if character != '\n' && is_unprintable(character) {
            let _ = write!(escaped, "\\u{:04x}", u32::from(character));
        } else {
            escaped.push(character);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(output: AnswerFormat, color: Color) -> AnswerArgs {
        AnswerArgs { output, color }
    }

    #[test]
    fn all_forms_hold_the_same() {
        let answer = serde_json::json!({"name": "desk-17", "wanted": true});
        let around = ProcessEnvironment::quiet();
        let text = |answer: &serde_json::Value, _| format!("{}\n", answer["name"]);
        let render = |format| args(format, Color::Auto).render(&answer, &around, text).expect("an answer");
        assert_eq!(render(AnswerFormat::Text), "\"desk-17\"\n");
        assert_eq!(render(AnswerFormat::Json), "{\n  \"name\": \"desk-17\",\n  \"wanted\": true\n}\n");
        assert_eq!(render(AnswerFormat::Yaml), "name: desk-17\nwanted: true\n");
    }

    /// Others write into objects, and an answer may be read on a terminal in any form.
    #[test]
    fn no_form_holds_what_steers_a_terminal() {
        let evil = "a\u{1b}[2J\u{9b}31m\u{7f}\u{202e}b\u{2028}\r\nc: 'd'";
        let answer = serde_json::json!({"name": evil, "list": [evil]});
        let around = ProcessEnvironment::quiet();
        for format in [AnswerFormat::Json, AnswerFormat::Yaml] {
            let text =
                args(format, Color::Auto).render(&answer, &around, |_, _| String::new()).expect("an answer");
            let steers = |c: char| c != '\n' && (c.is_control() || "\u{202e}\u{2028}".contains(c));
            assert!(!text.contains(steers), "{text:?}");
            let read: serde_json::Value = serde_saphyr::from_str(&text).expect("it can be read again");
            assert_eq!(read, answer, "{text}");
        }
    }

    #[test]
    fn colours_are_for_terminals_unless_asked_for() {
        let file = ProcessEnvironment::quiet();
        let terminal = ProcessEnvironment { stdout_is_terminal: true, ..file.clone() };
        let no_color = ProcessEnvironment { no_color: true, ..terminal.clone() };
        assert!(!Color::Auto.style(&file).colored);
        assert!(Color::Auto.style(&terminal).colored);
        assert!(!Color::Auto.style(&no_color).colored);
        assert!(Color::Always.style(&no_color).colored);
        assert!(!Color::Never.style(&terminal).colored);
    }
}
