//! Many cases of many scenarios, on all cores.

use super::{Baseline, CampaignKind, Case, Sample, cases, layouts};
use crate::in_memory::Layout;
use crate::scenario::Scenario;
use anyhow::ensure;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The options of a campaign.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Options {
    /// The kinds of faults; empty for all.
    pub kinds: Vec<String>,
    /// Parts of names of scenarios; empty for all.
    pub scenarios: Vec<String>,
    /// `one-cluster` or `two-clusters`; empty for what each kind is tried in.
    pub layouts: Vec<String>,
    /// The seed.
    pub seed: u64,
    /// At most so many cases of a kind, scenario and layout.
    pub sample: Option<usize>,
    /// Exactly one case, by the name in the report of a failure.
    pub only: Option<String>,
}

/// The results of one kind of faults.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Tally {
    /// The number of scenarios with at least one case.
    pub scenarios: usize,
    /// The number of runs.
    pub runs: usize,
    /// The number of failed runs.
    pub failures: usize,
}

/// A run that did not end as it should have.
#[derive(Clone, Debug, Serialize)]
pub struct FailedRun {
    /// `kind:scenario:layout:case`.
    pub case: String,
    /// The error.
    pub error: String,
}

/// The results of a campaign.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// By kind.
    pub kinds: BTreeMap<&'static str, Tally>,
    /// The failures.
    pub failures: Vec<FailedRun>,
    /// The time it took.
    pub seconds: f64,
}

/// One kind of faults in one scenario and layout is done.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// The unit: `kind:scenario:layout`.
    pub what: String,
    /// The number of runs.
    pub runs: usize,
    /// Those of them that failed.
    pub failures: &'a [FailedRun],
    /// The number of units done, and of all units.
    pub done: (usize, usize),
}

#[derive(Clone, Copy)]
struct Unit {
    kind: CampaignKind,
    scenario: Scenario,
    layout: Layout,
}

impl Unit {
    fn name(&self) -> String {
        format!("{}:{}:{}", self.kind, self.scenario.name, self.layout)
    }
}

impl Options {
    /// Runs the campaign on as many threads as there are cores, and reports each finished part.
    pub fn run(&self, report: impl Fn(&Progress<'_>) + Sync) -> anyhow::Result<Summary> {
        let units = self.units()?;
        ensure!(!units.is_empty(), "no scenario and layout is meant by that");
        let (begun, total) = (Instant::now(), units.len());
        let waiting = Mutex::new(VecDeque::from(units));
        let results = Mutex::new(Vec::new());
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                        let Some(unit) = next else { break };
                        let (runs, failures) = self.try_unit(unit);
                        let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                        let done = (results.len() + 1, total);
                        report(&Progress { what: unit.name(), runs, failures: &failures, done });
                        results.push((unit, runs, failures));
                    }
                });
            }
        });
        let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        if self.only.is_some() {
            ensure!(results.iter().any(|(_, runs, _)| *runs > 0), "there is no such case");
        }
        Ok(summary(results, begun.elapsed().as_secs_f64()))
    }

    fn units(&self) -> anyhow::Result<Vec<Unit>> {
        let named: Vec<CampaignKind> =
            self.kinds.iter().map(|name| name.parse()).collect::<anyhow::Result<_>>()?;
        let kinds = if named.is_empty() { CampaignKind::ALL.to_vec() } else { named };
        let is_meant = |scenario: &Scenario| {
            self.scenarios.is_empty()
                || self.scenarios.iter().any(|part| scenario.name.contains(part.as_str()))
        };
        let scenarios: Vec<Scenario> = crate::all().into_iter().filter(is_meant).collect();
        let mut units = Vec::new();
        for kind in kinds {
            for scenario in &scenarios {
                let runnable_layouts = layouts(scenario);
                let is_meant = |layout: &Layout| self.layouts.contains(&layout.to_string());
                let chosen = if self.only.is_some() {
                    runnable_layouts.to_vec()
                } else if self.layouts.is_empty() {
                    kind.layouts(runnable_layouts)
                } else {
                    runnable_layouts.iter().copied().filter(is_meant).collect()
                };
                units.extend(chosen.into_iter().map(|layout| Unit { kind, scenario: *scenario, layout }));
            }
        }
        if let Some(only) = &self.only {
            units.retain(|unit| only.starts_with(&format!("{}:", unit.name())));
        }
        Ok(units)
    }

    /// Runs a unit; returns the number of runs and the failures.
    fn try_unit(&self, unit: Unit) -> (usize, Vec<FailedRun>) {
        let failure = |case: &str, error: &anyhow::Error| FailedRun {
            case: format!("{}:{case}", unit.name()),
            error: format!("{error:#}"),
        };
        let prepared = Baseline::run(unit.scenario, unit.layout).and_then(|baseline| {
            let sample = Sample { size: self.sample.filter(|_| self.only.is_none()), seed: self.seed };
            Ok((cases(unit.kind, &baseline, sample)?, baseline))
        });
        let (cases, baseline) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return (1, vec![failure("undisturbed", &error)]),
        };
        let is_meant = |case: &Case| match &self.only {
            Some(only) => *only == format!("{}:{}", unit.name(), case.name),
            None => true,
        };
        let cases: Vec<Case> = cases.into_iter().filter(is_meant).collect();
        let failed = cases.iter().filter_map(|case| {
            let error = case.try_on(&baseline).err()?;
            Some(failure(&case.name, &error))
        });
        (cases.len(), failed.collect())
    }
}

fn summary(results: Vec<(Unit, usize, Vec<FailedRun>)>, seconds: f64) -> Summary {
    let mut kinds: BTreeMap<&'static str, Tally> = BTreeMap::new();
    let mut tried: BTreeSet<(CampaignKind, &'static str)> = BTreeSet::new();
    let mut all = Vec::new();
    for (unit, runs, failures) in results {
        let tally = kinds.entry(unit.kind.as_str()).or_default();
        tally.runs += runs;
        tally.failures += failures.len();
        if runs > 0 && tried.insert((unit.kind, unit.scenario.name)) {
            tally.scenarios += 1;
        }
        all.extend(failures);
    }
    Summary { kinds, failures: all, seconds }
}
