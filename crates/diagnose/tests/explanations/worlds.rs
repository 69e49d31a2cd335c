//! The worlds.

use crate::simulation::{Simulation, office_hours, time};
use five_spot_api::{
    NodeTaint, OverrideState, ReclaimRecord, ReclaimResume, ScheduleException, ScheduleState,
    ScheduledMachineStatus, TaintEffect, WorkloadCluster,
};
use five_spot_core::claim::{Claim, ObjectName};
use five_spot_core::world::{
    DeletionView, FormerNode, NodeFact, PauseLevel, PodDrain, Readiness, ReferenceProblem,
    ReferenceProblemKind, Slot, Workload, WorkloadProblem,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

type World = (&'static str, Simulation);

const NINE: &str = "2026-11-16T09:00:00Z";
const TEN: &str = "2026-11-16T10:00:00Z";
const AFTER_SIX: &str = "2026-11-16T18:00:05Z";

/// All worlds, by name.
pub fn all() -> Vec<World> {
    [
        schedules(),
        creation(),
        nodes(),
        drains(),
        stops(),
        reclaims(),
        deletions(),
        pauses(),
        workloads(),
        controllers(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn with(name: &'static str, mut simulation: Simulation, change: impl FnOnce(&mut Simulation)) -> World {
    change(&mut simulation);
    (name, simulation)
}

fn new() -> Simulation {
    Simulation::new(office_hours())
}

/// Lent since nine, at ten.
fn at_work() -> Simulation {
    let mut simulation = new();
    simulation.advance_to(TEN);
    simulation
}

/// The window has closed, and a budget refuses every eviction.
fn blocked() -> Simulation {
    let mut simulation = at_work();
    simulation.start_pods(&["web-0", "web-1"]);
    simulation.budget_blocks = true;
    simulation.advance_to(AFTER_SIX);
    simulation
}

fn closed_day(state: ScheduleState) -> ScheduleException {
    ScheduleException {
        date: Some("2026-11-16".to_owned()),
        from: None,
        to: None,
        state,
        hours: None,
        reason: None,
    }
}

fn schedules() -> Vec<World> {
    vec![
        with("schedule: new, before the window", new(), |_| {}),
        with("schedule: before the window", new(), Simulation::settle),
        with("schedule: at the start of the window", new(), |simulation| simulation.advance_to(NINE)),
        with("schedule: in the window", at_work(), |_| {}),
        with("schedule: after the window", at_work(), |simulation| {
            simulation.advance_to("2026-11-16T19:00:00Z");
        }),
        with("schedule: on Friday night", at_work(), |simulation| {
            simulation.advance_to("2026-11-20T19:00:00Z");
        }),
        with("schedule: lead time", new(), |simulation| {
            simulation.edit(|spec| "30m".clone_into(&mut spec.schedule.lead_time));
            simulation.advance_to("2026-11-16T08:45:00Z");
        }),
        with("schedule: never closes", new(), |simulation| {
            simulation.edit(|spec| {
                spec.schedule.days_of_week = Some(vec!["mon-sun".to_owned()]);
                spec.schedule.hours_of_day = None;
            });
            simulation.settle();
        }),
        with("schedule: closed by an exception", new(), |simulation| {
            simulation.edit(|spec| spec.schedule.exceptions = vec![closed_day(ScheduleState::Closed)]);
            simulation.advance_to(TEN);
        }),
        with("schedule: in another zone", new(), |simulation| {
            simulation.edit(|spec| "America/New_York".clone_into(&mut spec.schedule.timezone));
            simulation.advance_to(TEN);
        }),
        with("schedule: override up", new(), |simulation| {
            simulation.overrule(OverrideState::Up, "2026-11-16T08:30:00Z");
            simulation.settle();
        }),
        with("schedule: override up into the window", new(), |simulation| {
            simulation.overrule(OverrideState::Up, "2026-11-16T12:00:00Z");
            simulation.settle();
        }),
        with("schedule: override down in the window", at_work(), |simulation| {
            simulation.overrule(OverrideState::Down, "2026-11-16T12:00:00Z");
            simulation.settle();
        }),
        with("schedule: invalid", new(), |simulation| {
            simulation.edit(|spec| "Europe/Berlim".clone_into(&mut spec.schedule.timezone));
            simulation.settle();
        }),
        with("schedule: invalid while lent", at_work(), |simulation| {
            simulation.edit(|spec| spec.schedule.days_of_week = Some(vec!["monday".to_owned()]));
            simulation.settle();
        }),
        with("schedule: cordon before the end", at_work(), |simulation| {
            simulation.edit(|spec| "1h".clone_into(&mut spec.drain.cordon_before));
            simulation.settle();
        }),
    ]
}

fn reference(kind: ReferenceProblemKind, message: &str) -> ReferenceProblem {
    ReferenceProblem { field: "spec.infrastructureSpec".to_owned(), kind, message: message.to_owned() }
}

fn other() -> ObjectName {
    ObjectName { namespace: "night".to_owned(), name: "desk-17".to_owned() }
}

fn creation() -> Vec<World> {
    vec![
        with("creation: no Cluster", new(), |simulation| {
            simulation.world.cluster = None;
            simulation.advance_to(TEN);
        }),
        with("creation: the Cluster is being deleted", at_work(), |simulation| {
            simulation.provider_works = false;
            if let Some(cluster) = &mut simulation.world.cluster {
                cluster.terminating = true;
            }
            simulation.settle();
        }),
        with("creation: no such kind", new(), |simulation| {
            simulation.world.references =
                vec![reference(ReferenceProblemKind::NotFound, "there is no kind Absent")];
            simulation.advance_to(TEN);
        }),
        with("creation: forbidden", new(), |simulation| {
            let message =
                "remotemachines is forbidden; grant get, list, watch, create, patch and delete on it";
            simulation.world.references = vec![reference(ReferenceProblemKind::Forbidden, message)];
            simulation.advance_to(TEN);
        }),
        with("creation: not allowed", new(), |simulation| {
            simulation.world.references =
                vec![reference(ReferenceProblemKind::NotAllowed, "API group not allowed")];
            simulation.advance_to(TEN);
        }),
        with("creation: the name is taken", new(), |simulation| {
            simulation.world.machine = Slot::Foreign { owner: "MachineSet workers".to_owned() };
            simulation.advance_to(TEN);
        }),
        with("creation: another object has the machine", new(), |simulation| {
            simulation.world.claims.current = Claim::Taken { holder: other() };
            simulation.advance_to(TEN);
        }),
        with("creation: another object is lent the machine too", at_work(), |simulation| {
            simulation.world.claims.also_lent_by = Some(other());
            simulation.settle();
        }),
        with("creation: the old Machine is still there", at_work(), |simulation| {
            simulation.provider_works = false;
            simulation.machine().terminating = true;
            simulation.settle();
        }),
        with("creation: another spec", at_work(), |simulation| {
            simulation.provider_works = false;
            simulation.edit(|spec| spec.machine_template.version = Some("v1.37.0".to_owned()));
            simulation.settle();
        }),
        with("creation: provider objects are still terminating", at_work(), |simulation| {
            simulation.provider_works = false;
            simulation.advance_to(AFTER_SIX);
            simulation.world.machine = Slot::Absent;
            simulation.settle();
        }),
    ]
}

fn nodes() -> Vec<World> {
    vec![
        with("node: has not joined yet", new(), |simulation| {
            simulation.nodes_join = false;
            simulation.advance_to("2026-11-16T09:05:00Z");
        }),
        with("node: join timeout", new(), |simulation| {
            simulation.nodes_join = false;
            simulation.provider_works = false;
            simulation.advance_to("2026-11-16T09:21:00Z");
        }),
        with("node: waits for the next Machine", new(), |simulation| {
            simulation.nodes_join = false;
            simulation.advance_to("2026-11-16T09:24:00Z");
        }),
        with("node: not Ready", at_work(), |simulation| {
            simulation.node().readiness = Readiness::NotReady;
            simulation.settle();
        }),
        with("node: unreachable", at_work(), |simulation| {
            simulation.node().readiness = Readiness::Unreachable;
            simulation.settle();
        }),
        with("node: lost", at_work(), |simulation| {
            simulation.world.node = NodeFact::Gone;
            simulation.settle();
        }),
        with("node: of another machine", at_work(), |simulation| {
            simulation.world.node = NodeFact::Mismatch { name: "desk-1".into() };
            simulation.settle();
        }),
        with("node: left behind", at_work(), |simulation| {
            simulation.edit(|spec| spec.kill_switch = true);
            simulation.world.former_node = FormerNode::LeftBehind;
            simulation.advance_to("2026-11-16T10:00:10Z");
        }),
        with("node: two clusters contradict each other", at_work(), |simulation| {
            simulation.world.node = NodeFact::Unknown;
            simulation.settle();
        }),
        with("node: taints applied", at_work(), |simulation| {
            simulation.edit(|spec| spec.node_taints = vec![taint()]);
            simulation.settle();
        }),
        with("node: taint of somebody else", at_work(), |simulation| {
            simulation.edit(|spec| spec.node_taints = vec![taint()]);
            simulation.taint_by_hand("example.org/lent");
            simulation.settle();
        }),
        with("node: an agent is wanted", at_work(), |simulation| {
            simulation.edit(|spec| spec.kill_if_commands = vec!["java".to_owned()]);
        }),
    ]
}

fn taint() -> NodeTaint {
    NodeTaint { key: "example.org/lent".to_owned(), value: None, effect: TaintEffect::NoSchedule }
}

fn drains() -> Vec<World> {
    vec![
        with("drain: just begun", at_work(), |simulation| {
            simulation.start_pods(&["web-0", "web-1"]);
            simulation.advance_to(AFTER_SIX);
        }),
        with("drain: a budget blocks", blocked(), |_| {}),
        with("drain: a budget blocks after the deadline", blocked(), |simulation| {
            simulation.advance_to("2026-11-16T18:06:00Z");
        }),
        with("drain: forced at the deadline", blocked(), |simulation| {
            simulation.provider_works = false;
            simulation.force_on_timeout();
            simulation.advance_to("2026-11-16T18:04:00Z");
        }),
        with("drain: forced", blocked(), |simulation| {
            simulation.provider_works = false;
            simulation.force_on_timeout();
            simulation.advance_to("2026-11-16T18:06:00Z");
        }),
        with("drain: a pod has to complete", at_work(), |simulation| {
            simulation.start_pods(&["batch"]);
            simulation.pods[0].drain = PodDrain::WaitCompleted;
            simulation.advance_to(AFTER_SIX);
        }),
        with("drain: cancelled by an override", blocked(), |simulation| {
            simulation.overrule(OverrideState::Up, "2026-11-16T20:00:00Z");
            simulation.settle();
        }),
        with("drain: done, the Machine terminates", at_work(), |simulation| {
            simulation.provider_works = false;
            simulation.advance_to(AFTER_SIX);
        }),
        with("drain: the pods cannot be read", at_work(), |simulation| {
            simulation.start_pods(&["web-0"]);
            simulation.advance_to("2026-11-16T17:59:59Z");
            simulation.now = time("2026-11-16T18:10:00Z");
            simulation.world.status.shutdown_started_at = Some(Time(time("2026-11-16T18:00:00Z")));
            simulation.node().drain_rules_resolved = false;
        }),
    ]
}

fn stops() -> Vec<World> {
    vec![
        with("stop: disabled before the window", new(), |simulation| {
            simulation.edit(|spec| spec.schedule.enabled = false);
            simulation.settle();
        }),
        with("stop: disabled in the window", at_work(), |simulation| {
            simulation.start_pods(&["web-0"]);
            simulation.edit(|spec| spec.schedule.enabled = false);
            simulation.settle();
        }),
        with("stop: kill switch, just set", at_work(), |simulation| {
            simulation.edit(|spec| spec.kill_switch = true);
        }),
        with("stop: kill switch, done", at_work(), |simulation| {
            simulation.edit(|spec| spec.kill_switch = true);
            simulation.settle();
        }),
        with("stop: kill switch, the Machine does not go", at_work(), |simulation| {
            simulation.provider_works = false;
            simulation.edit(|spec| spec.kill_switch = true);
            simulation.settle();
        }),
    ]
}

fn reclaims() -> Vec<World> {
    let asked = |simulation: &mut Simulation| {
        simulation.start_pods(&["web-0"]);
        simulation.ask_for_reclaim();
    };
    vec![
        with("reclaim: just requested", at_work(), asked),
        with("reclaim: the Machine is being deleted", at_work(), |simulation| {
            simulation.provider_works = false;
            asked(simulation);
            simulation.settle();
        }),
        with("reclaim: done", at_work(), |simulation| {
            asked(simulation);
            simulation.advance_to("2026-11-16T10:05:00Z");
        }),
        with("reclaim: enabled again", at_work(), |simulation| {
            asked(simulation);
            simulation.advance_to("2026-11-16T10:05:00Z");
            simulation.edit(|spec| spec.schedule.enabled = true);
            simulation.settle();
        }),
        with("reclaim: awaits the annotation", at_work(), |simulation| {
            simulation.edit(|spec| spec.reclaim.resume = ReclaimResume::OnAnnotation);
            asked(simulation);
            simulation.advance_to("2026-11-16T10:05:00Z");
            simulation.edit(|spec| spec.schedule.enabled = true);
            simulation.settle();
        }),
        with("reclaim: resumes later", at_work(), |simulation| {
            simulation.edit(|spec| spec.reclaim.resume = ReclaimResume::OnAnnotation);
            asked(simulation);
            simulation.advance_to("2026-11-16T10:05:00Z");
            simulation.edit(|spec| spec.schedule.enabled = true);
            simulation.world.object.resume = Some(time("2026-11-16T12:00:00Z"));
            simulation.settle();
        }),
        with("reclaim: recorded, and the Machine is gone", at_work(), |simulation| {
            simulation.world.status.reclaims = vec![ReclaimRecord {
                requested_at: Time(time("2026-11-16T09:59:00Z")),
                reason: "process-match: java".to_owned(),
                node: "desk-1".to_owned(),
                node_uid: "node".to_owned(),
                finished_at: None,
                stages: None,
            }];
            simulation.world.machine = Slot::Absent;
            simulation.world.bootstrap = Slot::Absent;
            simulation.world.infrastructure = Slot::Absent;
            simulation.world.node = NodeFact::NotYet;
        }),
    ]
}

fn deletions() -> Vec<World> {
    vec![
        with("deletion: drains first", at_work(), |simulation| {
            simulation.start_pods(&["web-0"]);
            simulation.budget_blocks = true;
            simulation.delete_object();
            simulation.settle();
        }),
        with("deletion: nothing is left", at_work(), |simulation| {
            simulation.advance_to("2026-11-16T19:00:00Z");
            simulation.delete_object();
        }),
        with("deletion: the time limit is over", at_work(), |simulation| {
            simulation.provider_works = false;
            simulation.world.policy.force_finalizer_on_timeout = false;
            simulation.delete_object();
            simulation.advance_to("2026-11-16T10:11:00Z");
        }),
        with("deletion: orphaning", at_work(), |simulation| {
            simulation.world.object.deletion = Some(DeletionView { since: simulation.now, orphan: true });
        }),
    ]
}

fn pauses() -> Vec<World> {
    vec![
        with("pause: of the object, while lent", at_work(), |simulation| {
            simulation.world.object.paused = Some(PauseLevel::Ordinary);
            simulation.settle();
        }),
        with("pause: of the object, before the window", new(), |simulation| {
            simulation.settle();
            simulation.world.object.paused = Some(PauseLevel::Ordinary);
            simulation.advance_to(TEN);
        }),
        with("pause: of the namespace, after the window", at_work(), |simulation| {
            simulation.world.namespace_pause = Some(PauseLevel::Ordinary);
            simulation.advance_to(AFTER_SIX);
        }),
        with("pause: of the Cluster", new(), |simulation| {
            simulation.settle();
            if let Some(cluster) = &mut simulation.world.cluster {
                cluster.paused = true;
            }
            simulation.advance_to(TEN);
        }),
        with("pause: of the Machine, which is being deleted", at_work(), |simulation| {
            simulation.provider_works = false;
            simulation.machine().capi_paused = true;
            simulation.machine().terminating = true;
            simulation.settle();
        }),
        with("pause: everything, under a kill switch", at_work(), |simulation| {
            simulation.world.object.paused = Some(PauseLevel::All);
            simulation.edit(|spec| spec.kill_switch = true);
            simulation.settle();
        }),
    ]
}

fn unusable(problem: WorkloadProblem, message: &str) -> Workload {
    let cluster = WorkloadCluster::of_secret("prod-kubeconfig", "value");
    Workload::Unusable { cluster, problem, message: message.to_owned() }
}

fn workloads() -> Vec<World> {
    let cases = [
        (
            "kubeconfig: missing",
            WorkloadProblem::SecretMissing,
            "there is no Secret prod-kubeconfig in namespace team",
        ),
        ("kubeconfig: forbidden", WorkloadProblem::SecretForbidden, "the controller may not read the Secret"),
        ("kubeconfig: invalid", WorkloadProblem::KubeconfigInvalid, "key value is not a kubeconfig"),
        (
            "kubeconfig: refused",
            WorkloadProblem::Refused,
            "the Nodes of the workload cluster cannot be listed",
        ),
        ("kubeconfig: unreachable", WorkloadProblem::Unreachable, "the cluster is unreachable"),
        ("kubeconfig: of another cluster", WorkloadProblem::WrongCluster, "leads to another cluster"),
        (
            "kubeconfig: of one cluster too many",
            WorkloadProblem::TooManyClusters,
            "the ScheduledMachines of namespace team name more than 100 workload clusters",
        ),
    ];
    let mut worlds: Vec<World> = cases
        .into_iter()
        .map(|(name, problem, message)| {
            with(name, at_work(), |simulation| {
                simulation.world.workload = unusable(problem, message);
                simulation.world.node = NodeFact::Unknown;
                simulation.settle();
            })
        })
        .collect();
    worlds.push(with("kubeconfig: the cluster has not answered yet", at_work(), |simulation| {
        simulation.world.workload = Workload::Pending(WorkloadCluster::of_secret("prod-kubeconfig", "value"));
        simulation.world.node = NodeFact::Unknown;
        simulation.settle();
    }));
    worlds
}

/// A machine at work, by someone who may not read the kubeconfig of its cluster, or cannot reach the cluster.
pub fn seen_by_a_stranger() -> [Simulation; 2] {
    let cases = [
        (WorkloadProblem::SecretForbidden, "the Secret may not be read"),
        (WorkloadProblem::Unreachable, "the cluster is unreachable"),
    ];
    cases.map(|(problem, message)| {
        let mut simulation = at_work();
        simulation.world.workload = unusable(problem, message);
        simulation.world.node = NodeFact::Unknown;
        simulation
    })
}

fn controllers() -> Vec<World> {
    vec![
        with("controller: has not acted on a boundary", at_work(), |simulation| {
            simulation.now = time("2026-11-16T18:30:00Z");
        }),
        with("controller: its attempts fail", at_work(), |simulation| {
            let ready =
                simulation.world.status.conditions.iter_mut().find(|condition| condition.type_ == "Ready");
            let ready = ready.expect("a condition");
            "False".clone_into(&mut ready.status);
            "ReconcileFailed".clone_into(&mut ready.reason);
            "cordon Node desk-1: no answer within 30 s".clone_into(&mut ready.message);
        }),
        with("controller: has never reported", at_work(), |simulation| {
            simulation.world.status = ScheduledMachineStatus::default();
        }),
    ]
}
