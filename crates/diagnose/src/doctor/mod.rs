//! The doctor: from the facts about an installation and its machines to findings.
//!
//! [`DoctorFacts`] are what was read; [`examine`] judges them and touches nothing. Each group of findings is a file. A finding is
//! reported where its cause is: what only follows from another finding is left out.

mod agent;
mod agent_logs;
mod controller;
mod drain;
mod facts;
mod finding;
mod id;
mod index;
mod installation;
mod json;
mod logs;
mod machine;
mod metrics;
mod node;
mod program;
mod reclaim;
mod references;
mod removal;
mod rules_review;
mod schedule;
mod shards;
mod taints;

pub use facts::{
    AgentPod, ClusterApi, ControllerFacts, ControllerPod, ControllerTemplate, CrdState, DoctorFacts, Lease,
    PodReadiness, WorkloadFacts, WorkloadKey,
};
pub use finding::{Finding, Fix, Report, Severity};
pub use id::{FindingId, Group};
pub use logs::LogLine;
pub use machine::MachineFacts;
pub use metrics::{Page, Scrapes};
pub use rules_review::{Needed, missing_rules};

/// Judges the facts. The findings are sorted: the gravest first, then by group and object.
pub fn examine(facts: &DoctorFacts) -> Report {
    let mut findings = Vec::new();
    installation::judge(facts, &mut findings);
    controller::judge(facts, &mut findings);
    program::judge(facts, &mut findings);
    shards::judge(facts, &mut findings);
    let index = index::Index::new(facts);
    for machine in &facts.machines {
        let case = machine::Case::new(facts, &index, machine);
        let begin = findings.len();
        references::judge(&case, &mut findings);
        removal::judge(&case, &mut findings);
        drain::judge(&case, &mut findings);
        reclaim::judge(&case, &mut findings);
        node::judge(&case, &mut findings);
        taints::judge(&case, &mut findings);
        agent::judge(&case, &mut findings);
        // The reason why no machine is wanted explains nothing that is broken.
        let is_broken = findings[begin..].iter().any(|finding| finding.severity > Severity::Info);
        schedule::judge(&case, is_broken, &mut findings);
        if machine.workload().secret.is_none() {
            findings[begin..].iter_mut().flat_map(|finding| &mut finding.fix).for_each(Fix::move_here);
        }
    }
    removal::judge_orphans(facts, &mut findings);
    agent_logs::judge(facts, &mut findings);
    findings.sort_by(Finding::by_weight);
    findings.dedup();
    Report { checked: facts.machines.len(), findings }
}
