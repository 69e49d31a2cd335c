//! A local day in terminal columns, with a resolution of half a column.

use crate::preview::calendar::{Day, Pass, SECONDS_OF_DAY, Stretch, Up};
use crate::preview::text::paint::Glyph;
use five_spot_core::schedule::Causes;

/// One column of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    pub glyph: Glyph,
    /// The causes of the window that fills the cell, or part of it.
    pub causes: Option<Causes>,
}

/// The 24 hours of a day, with `columns` cells per hour.
pub fn cells(day: &Day, columns: usize) -> Vec<Cell> {
    let halves = halves(day, 24 * columns * 2);
    let pairs = halves.chunks_exact(2).enumerate();
    pairs.map(|(index, pair)| cell(pair[0], pair[1], index % columns == 0)).collect()
}

/// Half of a column.
#[derive(Clone, Copy, Debug, Default)]
struct Half {
    is_covered: bool,
    is_skipped: bool,
    is_repeated: bool,
    /// The cause at the first or only occurrence of this local time.
    first: Option<Causes>,
    /// The cause at the second occurrence of this local time.
    second: Option<Causes>,
}

impl Half {
    /// The cause at any occurrence.
    fn causes(self) -> Option<Causes> {
        self.first.or(self.second)
    }
}

fn cell(left: Half, right: Half, starts_hour: bool) -> Cell {
    let causes = left.causes().or(right.causes());
    let glyph = if causes.is_none() {
        match (left.is_skipped && right.is_skipped, left.is_covered || right.is_covered) {
            (true, _) => Glyph::Skipped,
            (false, false) => Glyph::Outside,
            (false, true) if starts_hour => Glyph::Hour,
            (false, true) => Glyph::Down,
        }
    } else if left.is_repeated && right.is_repeated {
        let first = left.first.or(right.first).is_some();
        let second = left.second.or(right.second).is_some();
        match (first, second) {
            (true, false) => Glyph::First,
            (false, true) => Glyph::Second,
            (true, true) | (false, false) => Glyph::Full,
        }
    } else {
        match (left.causes().is_some(), right.causes().is_some()) {
            (true, false) => Glyph::Left,
            (false, true) => Glyph::Right,
            (true, true) | (false, false) => Glyph::Full,
        }
    };
    Cell { glyph, causes }
}

fn halves(day: &Day, count: usize) -> Vec<Half> {
    let grid = Grid { count };
    let mut halves = vec![Half::default(); count];
    let mut mark = |stretches: &[Stretch], set: fn(&mut Half)| {
        for stretch in stretches {
            for half in &mut halves[grid.mostly(*stretch)] {
                set(half);
            }
        }
    };
    mark(&day.covered, |half| half.is_covered = true);
    mark(&day.skipped, |half| half.is_skipped = true);
    mark(&day.repeated, |half| half.is_repeated = true);
    for Up { stretch, pass, causes, .. } in &day.up {
        for half in &mut halves[grid.visibly(*stretch)] {
            match pass {
                Pass::Only | Pass::First => half.first = Some(*causes),
                Pass::Second => half.second = Some(*causes),
            }
        }
    }
    halves
}

/// A day divided into equal parts.
#[derive(Clone, Copy)]
struct Grid {
    count: usize,
}

impl Grid {
    /// The parts of which a range covers at least half; its ends are rounded to the nearest part.
    fn mostly(self, stretch: Stretch) -> std::ops::Range<usize> {
        let part = SECONDS_OF_DAY as usize / self.count;
        let nearest = |second: u32| (second as usize + part / 2) / part;
        nearest(stretch.from)..nearest(stretch.to)
    }

    /// The same, but at least one part, so that even a short window is visible.
    fn visibly(self, stretch: Stretch) -> std::ops::Range<usize> {
        let parts = self.mostly(stretch);
        if parts.is_empty() {
            let start = parts.start.min(self.count - 1);
            start..start + 1
        } else {
            parts
        }
    }
}
