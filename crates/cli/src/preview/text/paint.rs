//! Colours and glyphs, independent of the layout.

use crate::preview::forecast::by_prominence;
use crate::style::{Charset, Style};
use anstyle::{AnsiColor, Effects};
use five_spot_core::schedule::{Cause, Causes};

/// Applies a [`Style`].
#[derive(Clone, Copy, Debug)]
pub struct Painter {
    pub style: Style,
}

/// The glyph of a chart cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glyph {
    /// Up in the whole cell.
    Full,
    /// Up in the earlier half of the cell.
    Left,
    /// Up in the later half of the cell.
    Right,
    /// A repeated time; up at the first occurrence only.
    First,
    /// A repeated time; up at the second occurrence only.
    Second,
    /// Not up, at the start of an hour.
    Hour,
    /// Not up.
    Down,
    /// A time that the clock skips.
    Skipped,
    /// Outside the range.
    Outside,
}

impl Painter {
    pub const fn new(style: Style) -> Self {
        Self { style }
    }

    pub fn bold(self, text: &str) -> String {
        self.style.paint(anstyle::Style::new().effects(Effects::BOLD), text)
    }

    pub fn dim(self, text: &str) -> String {
        self.style.paint(anstyle::Style::new().effects(Effects::DIMMED), text)
    }

    pub fn warn(self, text: &str) -> String {
        self.style.paint(anstyle::Style::new().fg_color(Some(AnsiColor::Yellow.into())), text)
    }

    /// Paints text in the colour of a cause.
    pub fn cause(self, causes: Causes, text: &str) -> String {
        let color = by_prominence(causes).next().map(|cause| color(cause).into());
        self.style.paint(anstyle::Style::new().fg_color(color), text)
    }

    pub const fn glyph(self, glyph: Glyph) -> char {
        match self.style.charset {
            Charset::Unicode => match glyph {
                Glyph::Full => '█',
                Glyph::Left => '▌',
                Glyph::Right => '▐',
                Glyph::First => '▀',
                Glyph::Second => '▄',
                Glyph::Hour => '·',
                Glyph::Skipped => '╳',
                Glyph::Down | Glyph::Outside => ' ',
            },
            Charset::Ascii => match glyph {
                Glyph::Full | Glyph::Left | Glyph::Right => '#',
                Glyph::First => '\'',
                Glyph::Second => ',',
                Glyph::Hour => '.',
                Glyph::Skipped => 'x',
                Glyph::Down | Glyph::Outside => ' ',
            },
        }
    }

    pub const fn bullet(self) -> char {
        match self.style.charset {
            Charset::Unicode => '•',
            Charset::Ascii => '-',
        }
    }

    /// The separator between two facts on one line.
    pub const fn separator(self) -> &'static str {
        match self.style.charset {
            Charset::Unicode => " · ",
            Charset::Ascii => " | ",
        }
    }
}

/// Those of the eight colours of every terminal that are readable on light and dark backgrounds.
const fn color(cause: Cause) -> AnsiColor {
    match cause {
        Cause::Override => AnsiColor::Magenta,
        Cause::Exception => AnsiColor::Yellow,
        Cause::Window => AnsiColor::Green,
        Cause::Schedule => AnsiColor::Cyan,
        Cause::LeadTime => AnsiColor::Blue,
    }
}
