//! Properties of every decision, in random observed states.

use crate::claims::machine_claims;
use crate::simulation::{office_hours, time};
use five_spot_api::reclaim::ReclaimRequest;
use five_spot_api::{
    DrainStatus, JoinStatus, NodeTaint, OnTimeout, OverrideSpec, OverrideState, Phase, ReclaimRecord,
    ReclaimResume, ReclaimStages, ScheduledMachineSpec, ScheduledMachineStatus, TaintEffect, WorkloadCluster,
};
use five_spot_core::action::{Action, NodeRef};
use five_spot_core::world::{
    AgentConfigView, Brake, ClusterView, DeletionView, EvictionAttempt, Failure, Failures, FormerNode,
    MachineView, NodeFact, NodeView, ObjectView, PauseLevel, PodDrain, PodId, PodTermination, PodView,
    Policy, ProviderView, Readiness, ReferenceProblem, ReferenceProblemKind, RemovalGate, Slot, TaintId,
    Workload, WorkloadProblem, World,
};
use five_spot_core::{
    Decision, Evidence, Fingerprint, InvalidSpec, ProviderKind, ValidSpec, decide, decide_invalid,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use proptest::option;
use proptest::prelude::*;

/// The brake in every state.
fn brake() -> impl Strategy<Value = Brake> {
    let gate = prop_oneof![4 => Just(RemovalGate::Open), 1 => Just(RemovalGate::Unasked), 1 => Just(RemovalGate::Closed)];
    (any::<bool>(), gate).prop_map(|(clock_is_trusted, gate)| Brake { clock_is_trusted, gate })
}

/// Times around the boundaries of Monday, in seconds after midnight and with a fraction now and then.
pub(crate) fn moment() -> impl Strategy<Value = Timestamp> {
    let midnight = time("2026-11-16T00:00:00Z");
    let hour = prop_oneof![Just(8), Just(9), Just(12), Just(17), Just(18), Just(19)];
    (hour, -700_i64..700, prop_oneof![Just(0), Just(250)]).prop_map(move |(hour, second, millis)| {
        midnight + SignedDuration::from_secs(hour * 3600 + second) + SignedDuration::from_millis(millis)
    })
}

pub(crate) fn second() -> impl Strategy<Value = Timestamp> {
    moment().prop_map(|moment| Timestamp::from_second(moment.as_second()).unwrap())
}

fn remembered() -> impl Strategy<Value = Time> {
    second().prop_map(Time)
}

prop_compose! {
    pub(crate) fn spec()(
        enabled in any::<bool>(),
        kill_switch in prop::bool::weighted(0.2),
        forced in option::weighted(0.3, (any::<bool>(), second())),
        lead in prop_oneof![Just("0s"), Just("10m")],
        cordon in prop_oneof![Just("0s"), Just("15m")],
        force in any::<bool>(),
        zone in prop_oneof![9 => Just("UTC"), 1 => Just("Mars/Base")],
        commands in any::<bool>(),
        taints in 0..3_usize,
        on_annotation in prop::bool::weighted(0.3),
    ) -> ScheduledMachineSpec {
        let mut spec = office_hours();
        spec.schedule.enabled = enabled;
        lead.clone_into(&mut spec.schedule.lead_time);
        zone.clone_into(&mut spec.schedule.timezone);
        spec.kill_switch = kill_switch;
        cordon.clone_into(&mut spec.drain.cordon_before);
        spec.drain.on_timeout = if force { OnTimeout::Force } else { OnTimeout::Error };
        spec.reclaim.resume =
            if on_annotation { ReclaimResume::OnAnnotation } else { ReclaimResume::OnEnable };
        spec.r#override = forced.map(|(up, until)| OverrideSpec {
            state: if up { OverrideState::Up } else { OverrideState::Down },
            until: until.to_string(),
            reason: None,
        });
        spec.kill_if_commands = if commands { vec!["java".to_owned()] } else { Vec::new() };
        spec.node_taints = some_taints()[..taints].to_vec();
        spec
    }
}

fn some_taints() -> [NodeTaint; 2] {
    ["a", "b"].map(|key| NodeTaint {
        key: key.to_owned(),
        value: Some("1".to_owned()),
        effect: TaintEffect::NoSchedule,
    })
}

/// The hash of the office hours' machine, of another one, or none.
fn hash() -> impl Strategy<Value = Option<Fingerprint>> {
    let right = ValidSpec::parse(&office_hours()).unwrap().machine_hash;
    prop_oneof![4 => Just(Some(right)), 1 => Just(Some(Fingerprint::read("other"))), 1 => Just(None)]
}

fn slot<T: std::fmt::Debug + Clone + 'static>(
    ours: impl Strategy<Value = T> + 'static,
) -> impl Strategy<Value = Slot<T>> {
    prop_oneof![
        3 => Just(Slot::Absent),
        1 => Just(Slot::Foreign { owner: "someone".to_owned() }),
        1 => Just(Slot::Unknown),
        6 => ours.prop_map(Slot::Ours),
    ]
}

prop_compose! {
    fn provider()(terminating in any::<bool>(), machine_hash in hash(), intact in any::<bool>()) -> ProviderView {
        let kind = ProviderKind { api_version: "infrastructure.cluster.x-k8s.io/v1beta2".into(), kind: "RemoteMachine".into() };
        ProviderView { kind, uid: "provider".into(), terminating, machine_hash, intact }
    }
}

prop_compose! {
    fn machine()(
        created_at in second(),
        terminating in any::<bool>(),
        machine_hash in hash(),
        applied in any::<bool>(),
        flags in any::<[bool; 5]>(),
    ) -> MachineView {
        MachineView {
            api_version: "cluster.x-k8s.io/v1beta2".to_owned(),
            uid: "machine".into(),
            created_at,
            terminating,
            machine_hash,
            applied_hash: applied.then(|| ValidSpec::parse(&office_hours()).unwrap().applied_hash),
            intact: flags[0],
            capi_paused: flags[1] && flags[2],
            provider_id: Some("remote://desk".to_owned()),
            drain_excluded: flags[2],
            volume_wait_excluded: flags[3],
            delete_refused: flags[4],
        }
    }
}

fn termination() -> impl Strategy<Value = PodTermination> {
    (second(), prop_oneof![Just(0), Just(30)])
        .prop_map(|(until, grace)| PodTermination { until, grace: SignedDuration::from_secs(grace) })
}

fn pod_drain() -> impl Strategy<Value = PodDrain> {
    prop_oneof![
        4 => (0..2_i32).prop_map(|order| PodDrain::Evict { order }),
        1 => Just(PodDrain::Skip),
        1 => Just(PodDrain::WaitCompleted),
    ]
}

prop_compose! {
    fn pod()(
        number in 0..1000_u32,
        mirror in prop::bool::weighted(0.1),
        daemon_set in prop::bool::weighted(0.1),
        finished in prop::bool::weighted(0.2),
        terminating in option::of(termination()),
        drain in pod_drain(),
        attempt in option::of((second(), any::<bool>())),
        comes_back in option::weighted(0.2, second()),
    ) -> PodView {
        let name = format!("pod-{number}");
        PodView {
            id: PodId { namespace: "shop".to_owned(), uid: name.as_str().into(), name },
            mirror,
            daemon_set,
            comes_back,
            finished,
            terminating,
            drain,
            eviction: attempt.map(|(at, refused)| EvictionAttempt { at, refusal: refused.then(|| "budget".to_owned()), failed: !refused }),
        }
    }
}

prop_compose! {
    fn node()(
        readiness in prop_oneof![Just(Readiness::Ready), Just(Readiness::NotReady), Just(Readiness::Unreachable)],
        flags in any::<[bool; 4]>(),
        owned in any::<bool>(),
        reclaim in option::weighted(0.2, option::of(moment())),
        pods in option::of(prop::collection::vec(pod(), 0..4)),
        drain_rules_resolved in prop::bool::weighted(0.8),
    ) -> NodeView {
        let [taint, _] = some_taints();
        NodeView {
            name: "desk-1".into(),
            uid: "node".into(),
            resource_version: "7".into(),
            readiness,
            unschedulable: flags[0] || flags[1],
            cordoned_by_us: flags[0],
            owned_taints: if owned { vec![TaintId::from(&taint)] } else { Vec::new() },
            taints: if flags[2] { vec![taint] } else { Vec::new() },
            agent_label: flags[3],
            reclaim: reclaim.map(|requested_at| ReclaimRequest { reason: "process-match: java".to_owned(), requested_at }),
            pods,
            drain_rules_resolved,
        }
    }
}

fn node_fact() -> impl Strategy<Value = NodeFact> {
    prop_oneof![
        2 => Just(NodeFact::NotYet),
        1 => Just(NodeFact::Gone),
        1 => Just(NodeFact::Unknown),
        1 => Just(NodeFact::Renamed(NodeRef { name: "desk-2".into(), uid: "node-2".into() })),
        1 => Just(NodeFact::Mismatch { name: "desk-1".into() }),
        6 => node().prop_map(NodeFact::Found),
    ]
}

fn reclaim_stages() -> impl Strategy<Value = ReclaimStages> {
    let micros = || moment().prop_map(MicroTime);
    let stages = (micros(), micros(), option::of(micros()), option::of(micros()), option::of(micros()));
    stages.prop_map(|(requested_at, annotated_at, pods_gone_at, machine_deleted_at, node_gone_at)| {
        ReclaimStages { requested_at, annotated_at, pods_gone_at, machine_deleted_at, node_gone_at }
    })
}

fn reclaim_record() -> impl Strategy<Value = ReclaimRecord> {
    let record = (remembered(), option::of(remembered()), option::of(reclaim_stages()));
    record.prop_map(|(requested_at, finished_at, stages)| ReclaimRecord {
        stages,
        requested_at,
        reason: "process-match: java".to_owned(),
        node: "desk-1".to_owned(),
        node_uid: "node".to_owned(),
        finished_at,
    })
}

/// No two of the same request: there is one record of each.
fn reclaim_records() -> impl Strategy<Value = Vec<ReclaimRecord>> {
    prop::collection::vec(reclaim_record(), 0..3).prop_map(|mut records| {
        records.dedup_by_key(|record| record.requested_at.clone());
        records
    })
}

fn drain_status() -> impl Strategy<Value = DrainStatus> {
    (remembered(), 0..5_i32, 0..5_i32).prop_map(|(started_at, total, evicted)| DrainStatus {
        started_at,
        total: total.max(evicted),
        evicted,
        blocked: Vec::new(),
    })
}

fn join_status() -> impl Strategy<Value = JoinStatus> {
    (any::<bool>(), option::of(remembered()), option::of(remembered())).prop_map(
        |(joined, waiting_since, failed_at)| JoinStatus {
            waiting_since,
            last_seconds: joined.then_some(40),
            recent_seconds: Vec::new(),
            machine_uid: joined.then(|| "machine".to_owned()),
            failed_at,
        },
    )
}

prop_compose! {
    /// Some earlier status: what is remembered in it, and no more.
    fn prior()(
        phase in option::of(prop::sample::select(Phase::ALL.to_vec())),
        shutdown_started_at in option::of(remembered()),
        drain in option::of(drain_status()),
        reclaims in reclaim_records(),
        join in option::of(join_status()),
        next_cleanup in option::of(remembered()),
        observed_generation in option::of(1..3_i64),
        taint_recorded in any::<bool>(),
    ) -> ScheduledMachineStatus {
        let [taint, _] = some_taints();
        ScheduledMachineStatus {
            phase,
            observed_generation,
            shutdown_started_at,
            drain,
            reclaims,
            join,
            next_cleanup,
            node_ref: Some(five_spot_api::ObjectRef {
                api_version: "v1".to_owned(),
                kind: "Node".to_owned(),
                namespace: None,
                name: "desk-1".to_owned(),
                uid: Some("node".to_owned()),
            }),
            applied_node_taints: if taint_recorded { vec![taint] } else { Vec::new() },
            ..ScheduledMachineStatus::default()
        }
    }
}

fn pause_level() -> impl Strategy<Value = Option<PauseLevel>> {
    prop_oneof![8 => Just(None), 1 => Just(Some(PauseLevel::Ordinary)), 1 => Just(Some(PauseLevel::All))]
}

prop_compose! {
    fn object()(
        deletion in option::weighted(0.3, (second(), prop::bool::weighted(0.2))),
        has_finalizer in prop::bool::weighted(0.8),
        paused in pause_level(),
        capi_paused in prop::bool::weighted(0.1),
        resume in option::weighted(0.3, moment()),
    ) -> ObjectView {
        ObjectView {
            namespace: "team".to_owned(),
            name: "desk".to_owned(),
            uid: "object".into(),
            created_at: time("2026-11-01T08:00:00Z"),
            generation: 2,
            deletion: deletion.map(|(since, orphan)| DeletionView { since, orphan }),
            has_finalizer,
            capi_paused,
            paused,
            resume,
        }
    }
}

fn former_node() -> impl Strategy<Value = FormerNode> {
    prop_oneof![4 => Just(FormerNode::Gone), 1 => Just(FormerNode::LeftBehind), 1 => Just(FormerNode::Cached), 1 => Just(FormerNode::Unknown)]
}

fn workload() -> impl Strategy<Value = Workload> {
    let cluster = WorkloadCluster::of_secret("prod-kubeconfig", "value");
    let seen = WorkloadCluster { cluster_uid: Some("one".to_owned()), ..cluster.clone() };
    let problem = prop_oneof![
        Just(WorkloadProblem::SecretMissing),
        Just(WorkloadProblem::SecretForbidden),
        Just(WorkloadProblem::KubeconfigInvalid),
        Just(WorkloadProblem::Refused),
        Just(WorkloadProblem::Unreachable),
        Just(WorkloadProblem::WrongCluster),
        Just(WorkloadProblem::TooManyClusters),
    ];
    let unusable = {
        let cluster = cluster.clone();
        problem.prop_map(move |problem| Workload::Unusable {
            cluster: cluster.clone(),
            problem,
            message: "broken".to_owned(),
        })
    };
    let pending = Workload::Pending(cluster.clone());
    prop_oneof![4 => Just(Workload::Reachable(cluster)), 2 => Just(Workload::Reachable(seen)), 1 => unusable, 1 => Just(pending)]
}

fn failures() -> impl Strategy<Value = Failures> {
    option::weighted(0.2, (1..7_u32, any::<[bool; 2]>(), second())).prop_map(|failure| match failure {
        None => Failures::default(),
        Some((count, [refused, taints], retry_at)) => Failures {
            count,
            last: Some(Failure {
                message: "CAPI operation failed: no".to_owned(),
                refused,
                taints,
                retry_at,
            }),
        },
    })
}

fn references() -> impl Strategy<Value = Vec<ReferenceProblem>> {
    let problem = ReferenceProblem {
        field: "spec.bootstrapSpec".to_owned(),
        kind: ReferenceProblemKind::NotFound,
        message: "no such kind".to_owned(),
    };
    prop_oneof![8 => Just(Vec::new()), 1 => Just(vec![problem])]
}

fn agents() -> impl Strategy<Value = Vec<AgentConfigView>> {
    let config =
        ("desk-[12]", option::of(hash()), any::<bool>()).prop_map(|(node, rendered, same)| AgentConfigView {
            node: node.as_str().into(),
            node_uid: same.then(|| "node".into()),
            rendered: rendered.flatten(),
        });
    prop::collection::vec(config, 0..2)
}

prop_compose! {
    pub(crate) fn world()(
        object in object(),
        status in prior(),
        cluster in option::weighted(0.9, [prop::bool::weighted(0.1), prop::bool::weighted(0.1)]),
        namespace_pause in pause_level(),
        references in references(),
        bootstrap in slot(provider()),
        infrastructure in slot(provider()),
        machine in slot(machine()),
        workload in workload(),
        node in node_fact(),
        agent_configs in agents(),
        failures in failures(),
        (force, claims) in (any::<bool>(), machine_claims()),
        former_node in former_node(),
        unrecorded_since in option::weighted(0.1, second()),
        brake in brake(),
    ) -> World {
        World {
            policy: Policy { force_finalizer_on_timeout: force, ..Policy::default() },
            brake,
            object,
            status,
            cluster: cluster.map(|[paused, terminating]| ClusterView { uid: "cluster".into(), paused, terminating }),
            namespace_pause,
            references,
            bootstrap,
            infrastructure,
            // A Node without a Machine cannot be known: it is found through the Machine.
            node: if machine.ours().is_some() { node } else { NodeFact::NotYet },
            former_node: if machine.ours().is_none() { former_node } else { FormerNode::Gone },
            unrecorded_since,
            machine,
            workload,
            agent_configs,
            claims,
            failures,
        }
    }
}

pub(crate) fn decision(spec: &ScheduledMachineSpec, world: &World, now: Timestamp) -> Decision {
    match ValidSpec::parse(spec) {
        Ok(valid) => decide(&valid, world, now),
        Err(errors) => decide_invalid(&InvalidSpec::new(spec, errors), world, now),
    }
}

fn written(mut world: World, decision: &Decision) -> World {
    let wire = serde_json::to_value(&decision.status).unwrap();
    world.status = serde_json::from_value(wire).unwrap();
    world
}

proptest! {
    /// A reconcile that changes nothing writes nothing, and announces nothing.
    #[test]
    fn deciding_again_changes_nothing(spec in spec(), world in world(), now in moment()) {
        let first = decision(&spec, &world, now);
        let world = written(world, &first);
        let second = decision(&spec, &world, now);
        prop_assert_eq!(&second.status, &first.status);
        prop_assert_eq!(&second.actions, &first.actions);
        prop_assert_eq!(second.wake_at, first.wake_at);
        prop_assert_eq!(&second.events, &[]);
    }

    /// Until the wake-up time alone changes nothing; and the wake-up is in the future.
    #[test]
    fn the_wake_up_is_never_late(spec in spec(), world in world(), now in moment(), part in 0.0..1.0_f64) {
        let first = decision(&spec, &world, now);
        let world = written(world, &first);
        let horizon = now + SignedDuration::from_hours(240);
        let wake_at = first.wake_at.unwrap_or(horizon);
        prop_assert!(wake_at > now);
        let asleep = wake_at.duration_since(now).as_nanos();
        #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
        let nap = SignedDuration::from_nanos(((asleep - 1) as f64 * part) as i64);
        let last_moment = wake_at - SignedDuration::from_nanos(1);
        for later in [now + nap, last_moment] {
            let second = decision(&spec, &world, later);
            prop_assert_eq!(&second.status, &first.status, "at {}", later);
            prop_assert_eq!(&second.actions, &first.actions, "at {}", later);
            prop_assert_eq!(&second.events, &[]);
        }
    }

    /// The phase is an output: whatever was recorded, the same world gives the same decision.
    #[test]
    fn the_recorded_phase_does_not_matter(
        spec in spec(), world in world(), now in moment(), other in prop::sample::select(Phase::ALL.to_vec())
    ) {
        let first = decision(&spec, &world, now);
        let mut elsewhere = world;
        elsewhere.status.phase = Some(other);
        elsewhere.status.message = Some("something else".to_owned());
        let second = decision(&spec, &elsewhere, now);
        prop_assert_eq!(second.status, first.status);
        prop_assert_eq!(second.actions, first.actions);
    }

    /// Only a decision that creates both provider objects, and does nothing that an existing one would make wrong, is made
    /// without reading them.
    #[test]
    fn provider_objects_are_read_before_anything_relies_on_them(spec in spec(), world in world(), now in moment()) {
        let decision = decision(&spec, &world, now);
        if decision.only_creates_provider_objects(&world) {
            prop_assert_eq!((&world.bootstrap, &world.infrastructure), (&Slot::Absent, &Slot::Absent));
            let relies = |action: &Action| matches!(
                action,
                Action::DeleteMachine { .. }
                    | Action::DeleteBootstrap { .. }
                    | Action::DeleteInfrastructure { .. }
                    | Action::Release { .. }
                    | Action::RemoveFinalizer
            );
            prop_assert!(!decision.actions.iter().any(relies), "{:?}", decision.actions);
        }
    }

    /// No action violates a rule of higher precedence.
    #[test]
    fn no_action_violates_a_rule_of_higher_precedence(spec in spec(), world in world(), now in moment()) {
        let decision = decision(&spec, &world, now);
        let does = |wanted: fn(&Action) -> bool| decision.actions.iter().any(wanted);
        let creates = does(|action| matches!(
            action,
            Action::ApplyBootstrap { .. } | Action::ApplyInfrastructure { .. } | Action::ApplyMachine
        ));
        let paused_all = world.object.paused.max(world.namespace_pause) == Some(PauseLevel::All);
        if paused_all {
            prop_assert_eq!(&decision.actions, &[]);
        }
        if world.object.deletion.is_some() || spec.kill_switch || decision.status.phase == Some(Phase::EmergencyRemove) {
            prop_assert!(!creates);
            prop_assert!(!does(|action| matches!(action, Action::Uncordon { .. })), "{:?}", decision.actions);
        }
        if spec.kill_switch && decision.status.phase != Some(Phase::EmergencyRemove) {
            prop_assert!(!does(|action| matches!(action, Action::Evict { .. } | Action::DeletePod { .. } | Action::Cordon { .. })), "{:?}", decision.actions);
        }
        if decision.status.phase != Some(Phase::EmergencyRemove) {
            prop_assert!(!does(|action| matches!(action, Action::DeletePod { .. } | Action::DisableSchedule)), "{:?}", decision.actions);
        }
        if world.machine.ours().is_some() {
            prop_assert!(!does(|action| matches!(action, Action::DeleteInfrastructure { .. } | Action::DeleteBootstrap { .. })), "{:?}", decision.actions);
        }
        if world.node.found().is_none() {
            prop_assert!(!does(|action| matches!(
                action,
                Action::Cordon { .. } | Action::Uncordon { .. } | Action::PatchTaints { .. } | Action::LabelForAgent { .. }
            )), "{:?}", decision.actions);
        }
        if world.object.deletion.is_some() {
            prop_assert!(!does(|action| matches!(action, Action::AddFinalizer | Action::DisableSchedule)), "{:?}", decision.actions);
        } else {
            prop_assert!(!does(|action| matches!(action, Action::RemoveFinalizer)), "{:?}", decision.actions);
        }
        if !matches!(world.machine, Slot::Ours(_)) {
            prop_assert!(!does(|action| matches!(action, Action::DeleteMachine { .. } | Action::ExcludeDrain { .. })), "{:?}", decision.actions);
        }
    }

    /// An emergency deletes a Machine that is not being deleted yet, whatever else is observed, and nothing that could take
    /// long comes before that.
    #[test]
    fn an_emergency_always_deletes_the_machine(spec in spec(), world in world(), now in moment()) {
        let decision = decision(&spec, &world, now);
        let paused_all = world.object.paused.max(world.namespace_pause) == Some(PauseLevel::All);
        let keeps = paused_all || world.object.deletion.is_some_and(|deletion| deletion.orphan);
        let living = world.machine.ours().filter(|machine| !machine.terminating && !keeps);
        let overdue = world.object.deletion.is_some_and(|deletion| {
            world.object.has_finalizer && now >= deletion.since + world.policy.finalizer_cleanup_timeout
        });
        let released = decision.actions.contains(&Action::RemoveFinalizer);
        if let Some(machine) = living.filter(|_| spec.kill_switch || overdue) {
            prop_assert!(!released || machine.delete_refused, "{:?}", decision.actions);
            let delete = Action::DeleteMachine { machine: machine.uid.clone() };
            let place = decision.actions.iter().position(|action| *action == delete);
            prop_assert!(place.is_some() || released, "{:?}", decision.actions);
            let before = &decision.actions[..place.unwrap_or(0)];
            let is_short = |action: &Action| matches!(action, Action::ExcludeDrain { .. } | Action::Publish(_));
            prop_assert!(before.iter().all(is_short), "{:?}", decision.actions);
            prop_assert_eq!(decision.evidence, Evidence::BestEffort);
        }
    }

    /// Ready means where it should be, and nothing less.
    #[test]
    fn ready_is_true_only_at_rest(spec in spec(), world in world(), now in moment()) {
        let decision = decision(&spec, &world, now);
        let ready = decision.status.conditions.iter().find(|condition| condition.type_ == "Ready").unwrap();
        let at_rest = match decision.status.phase.unwrap() {
            Phase::Active => world.node.found().is_some_and(|node| node.readiness == Readiness::Ready),
            Phase::Inactive | Phase::Disabled | Phase::Terminated => true,
            Phase::Pending | Phase::ShuttingDown | Phase::EmergencyRemove | Phase::Error => false,
        };
        if ready.status == "True" {
            prop_assert!(at_rest && decision.fault.is_none());
        }
        prop_assert_eq!(decision.status.conditions.iter().all(|condition| condition.observed_generation == Some(2)), true);
        prop_assert!(!ready.message.is_empty());
    }
}
