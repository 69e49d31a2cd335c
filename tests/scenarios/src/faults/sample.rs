//! A sample of the cases, the same in every run.

use five_spot_apiserver::ids::Ids;

/// The size and seed of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// At most so many; all if there is no bound.
    pub size: Option<usize>,
    /// The seed for the choice of cases and for random choices within them.
    pub seed: u64,
}

impl Sample {
    /// Chooses: the list is cut into as many parts as are wanted, and from each part one is drawn, so that the
    /// sample covers the beginning, the middle and the end of a scenario.
    pub fn of<T>(self, all: Vec<T>) -> Vec<T> {
        let Some(size) = self.size.filter(|size| *size < all.len()) else { return all };
        let (total, mut chance) = (all.len(), Ids::new(self.seed));
        let mut chosen = (0..size).map(|part| {
            let (start, end) = (part * total / size, (part + 1) * total / size);
            let width = u64::try_from(end - start).unwrap_or(1);
            start + usize::try_from(chance.below(width)).unwrap_or(0)
        });
        let mut next = chosen.next();
        let taken = |(number, one)| {
            (Some(number) == next).then(|| {
                next = chosen.next();
                one
            })
        };
        all.into_iter().enumerate().filter_map(taken).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_spread_evenly_and_repeatable() {
        let of = |size, seed| Sample { size, seed }.of((0..100).collect::<Vec<usize>>());
        assert_eq!(of(None, 1).len(), 100);
        assert_eq!(of(Some(100), 1).len(), 100);
        let four = of(Some(4), 1);
        assert_eq!(four, of(Some(4), 1));
        assert_ne!(four, of(Some(4), 2));
        let parts: Vec<usize> = four.iter().map(|number| number / 25).collect();
        assert_eq!(parts, [0, 1, 2, 3]);
        assert_eq!(of(Some(0), 1), [0; 0]);
    }
}
