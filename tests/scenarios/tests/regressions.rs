//! Regression tests for failures that the fault campaign found.

use anyhow::ensure;
use five_spot_api::reclaim::{REASON, REQUESTED, REQUESTED_AT, REQUESTED_TRUE};
use five_spot_apiserver::faults::{FaultRule, InjectedFault, RequestKind, Trigger, WatchFault};
use five_spot_scenarios::in_memory::{
    Disturbance, EventOrder, Layout, MISSING_NAMESPACE, Reordered, Reordering, Run, Storm, run,
};
use five_spot_scenarios::kinds::{ClusterRole, INFRASTRUCTURE, MACHINE, NODE, POD, SCHEDULED_MACHINE};
use five_spot_scenarios::{Ending, Environment, Impairment, Scenario, ServerState, Subject, Write};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

fn run_again(scenario: &str, disturbance: &Disturbance) -> anyhow::Result<Run> {
    run_in(Layout::TwoClusters, scenario, disturbance)
}

fn run_in(layout: Layout, scenario: &str, disturbance: &Disturbance) -> anyhow::Result<Run> {
    let found = five_spot_scenarios::all().into_iter().find(|one| one.name == scenario);
    run(&found.expect("a scenario of that name"), layout, disturbance)
}

/// A fault of some of the requests whose path contains a part.
fn fault_of(kind: RequestKind, part: &str, trigger: Trigger, fault: InjectedFault) -> Disturbance {
    Disturbance::rule(FaultRule { kind, path: part.to_owned(), trigger, fault })
}

/// The time at which the controller has written so, in order.
fn written(run: &Run, verb: &str, resource: &str) -> Vec<Timestamp> {
    let is_meant = |write: &&Write| write.verb == verb && write.resource == resource;
    run.writes.iter().filter(is_meant).map(|write| write.time).collect()
}

/// The status was written, the answer lost, the failure reported, that answer lost as well; and each time the watch
/// reported a change, which started everything again, a thousand times within a second.
#[test]
fn answers_that_are_lost_do_not_make_it_write_without_a_pause() -> anyhow::Result<()> {
    let storm = Storm {
        per_mille: 1000,
        fault: InjectedFault::DropAfter,
        after: Duration::from_secs(12),
        lasting: Duration::from_mins(10),
    };
    // The claim on the machine is released when the storm is over.
    let settles_after = Some(Duration::from_mins(11));
    let disturbance = Disturbance { storm: Some(storm), settles_after, ..Disturbance::default() };
    let run = run_again("volumes_are_waited_for", &disturbance)?;
    assert!(run.writes.len() < 200, "{} writes", run.writes.len());
    Ok(())
}

/// The Cluster was seen before the Secret with its kubeconfig: the Node was looked up in the management cluster for as
/// long as the Machine existed.
#[test]
fn a_secret_that_is_told_of_late_still_says_where_the_node_is() -> anyhow::Result<()> {
    let fault = InjectedFault::Watch(WatchFault::DelayEvent(0, Duration::from_secs(30)));
    let disturbance = fault_of(RequestKind::Watch, "/secrets", Trigger::Nth(0), fault);
    let run = run_again("cluster_appears_later", &disturbance)?;
    assert_eq!(run.counts["Machine desk-machine"].made, 1);
    Ok(())
}

/// A conflict at an eviction was misread: another pod was assumed to have the name, and the pod to have left.
#[test]
fn a_conflict_at_an_eviction_does_not_count_a_pod_twice() -> anyhow::Result<()> {
    let fault = InjectedFault::Refuse(http::StatusCode::CONFLICT, None);
    let disturbance = fault_of(RequestKind::Write, "/eviction", Trigger::Nth(0), fault);
    // The scenario looks at what status counts.
    let run = run_again("mirror_and_daemon_pods_stay", &disturbance)?;
    assert_eq!(written(&run, "create", "pods/eviction").len(), 2);
    Ok(())
}

/// A read reported that the Lease was gone when its watch had already reported it. The controller kept creating it, and
/// each conflict led to a read of the version that was assumed to be deleted.
#[test]
fn a_claim_that_seemed_to_be_gone_is_seen_again() -> anyhow::Result<()> {
    let stale = InjectedFault::StaleBeforeOwnWrite;
    let disturbance = fault_of(RequestKind::Read, "", Trigger::PerMille(500), stale);
    let disturbance = Disturbance { seed: 46, ..disturbance };
    let run = run_in(Layout::OneCluster, "claim_is_edited_by_hand", &disturbance)?;
    assert!(written(&run, "create", "leases").len() < 20, "{:#?}", run.writes);
    Ok(())
}

/// Every pod that left caused an event, after which the failed evictions were retried, eight times in a second.
#[test]
fn a_failed_eviction_is_not_retried_because_another_pod_left() -> anyhow::Result<()> {
    let fault = InjectedFault::Refuse(http::StatusCode::SERVICE_UNAVAILABLE, None);
    let disturbance = fault_of(RequestKind::Write, "/eviction", Trigger::PerMille(500), fault);
    let run = run_again("two_hundred_pods", &disturbance)?;
    let evictions = written(&run, "create", "pods/eviction");
    let at_once = evictions.iter().filter(|time| time.duration_since(evictions[0]).as_secs() < 1).count();
    assert_eq!(at_once, 200, "of {} evictions", evictions.len());
    Ok(())
}

/// The watch of the pods was late. Pods that the API server had reported as gone reappeared with late events, and were
/// counted again: 389 of 200 had left.
#[test]
fn pods_that_left_are_not_counted_again_after_a_late_watch() -> anyhow::Result<()> {
    let fault = InjectedFault::Watch(WatchFault::DelayEvent(21, Duration::from_secs(30)));
    let disturbance = fault_of(RequestKind::Watch, "/api/v1/pods", Trigger::Nth(0), fault);
    // The scenario looks at what status counts.
    let run = run_again("two_hundred_pods", &disturbance)?;
    assert_eq!(run.counts["Machine desk-machine"].removed, 1);
    Ok(())
}

/// The drain rules could not be read at first. The status counted pods that need not leave, and later reported that
/// they had left.
#[test]
fn pods_are_counted_once_it_is_known_which_must_leave() -> anyhow::Result<()> {
    for fault in [InjectedFault::Refuse(http::StatusCode::GATEWAY_TIMEOUT, None), InjectedFault::Misroute] {
        let disturbance = fault_of(RequestKind::Read, "/machinedrainrules", Trigger::Nth(0), fault);
        run_again("rules_and_labels_of_cluster_api", &disturbance)?;
    }
    Ok(())
}

/// Secrets could not be read for a moment after a restore, so the cluster of the Node was unknown. The first guess was
/// recorded, and the Machine was removed twenty minutes later because its node was not found there.
#[test]
fn where_the_node_is_is_not_put_on_record_before_it_is_known() -> anyhow::Result<()> {
    let fault = InjectedFault::Refuse(http::StatusCode::SERVICE_UNAVAILABLE, None);
    let disturbance = fault_of(RequestKind::Read, "/secrets", Trigger::Nth(2), fault);
    let run = run_in(Layout::OneCluster, "restored_from_a_backup", &disturbance)?;
    assert_eq!(run.counts["Machine desk-machine"].made, 1);
    Ok(())
}

/// An emergency waited for the drain rules, which it ignores.
#[test]
fn an_emergency_does_not_wait_for_the_rules_of_a_drain() -> anyhow::Result<()> {
    let fault = InjectedFault::Refuse(http::StatusCode::SERVICE_UNAVAILABLE, None);
    let disturbance = fault_of(RequestKind::Read, "/machinedrainrules", Trigger::PerMille(1000), fault);
    let run = run_again("emergency_reclaim", &disturbance)?;
    let (deleted, cordoned) = (written(&run, "delete", "pods"), written(&run, "patch", "nodes"));
    assert_eq!(deleted[0], cordoned[0], "at the moment of the cordon");
    Ok(())
}

/// A proxy without a route answers `404 page not found`, and so does an API server for a version that it no longer
/// serves. This was taken to mean that the object is gone: the Machine stayed behind, running and without a node.
#[test]
fn what_a_proxy_does_not_find_may_be_there_all_the_same() -> anyhow::Result<()> {
    let baseline = run_again("mirror_and_daemon_pods_stay", &Disturbance::default())?;
    let misrouted = fault_of(RequestKind::Write, "/eviction", Trigger::Nth(0), InjectedFault::Misroute);
    let run = run_again("mirror_and_daemon_pods_stay", &misrouted)?;
    let evictions = |run: &Run| written(run, "create", "pods/eviction").len();
    assert_eq!(evictions(&run), evictions(&baseline) + 1, "it is retried");

    let baseline = run_again("deleted_while_active", &Disturbance::default())?;
    let deleted = written(&baseline, "delete", "machines")[0];
    let while_it_goes = Trigger::Between(deleted - Duration::from_secs(1), deleted + Duration::from_mins(1));
    let rule = |kind| FaultRule {
        kind,
        path: "/machines/".to_owned(),
        trigger: while_it_goes,
        fault: InjectedFault::Misroute,
    };
    let rules = vec![rule(RequestKind::Read), rule(RequestKind::Write)];
    let run = run_again("deleted_while_active", &Disturbance { rules, ..Disturbance::default() })?;
    assert_eq!(
        written(&run, "delete", "remotemachines"),
        [],
        "that is left to Cluster API, behind the Machine"
    );
    Ok(())
}

/// The watch reported a deletion before the response to the DELETE arrived, which then put the object back into the
/// cache: a reclaim waited a full minute for pods that were gone, a deletion five minutes for a Machine.
#[test]
fn a_response_does_not_bring_back_what_was_seen_to_be_deleted() -> anyhow::Result<()> {
    let reordering = Reordering { writes: Reordered::EveryWrite, order: EventOrder::BeforeResponse };
    let disturbance = Disturbance { reordering: Some(reordering), ..Disturbance::default() };
    for scenario in ["emergency_reclaim", "deleted_while_creating"] {
        // Nothing fails here, so each scenario has to end in time.
        run_again(scenario, &disturbance)?;
    }
    Ok(())
}

/// The watch of another namespace was the last to be complete, and nothing reported that to the objects that had waited for it.
#[test]
fn a_namespace_that_is_listed_last_does_not_stop_the_others() -> anyhow::Result<()> {
    let late = FaultRule {
        kind: RequestKind::Read,
        path: format!("/namespaces/{MISSING_NAMESPACE}/scheduledmachines"),
        trigger: Trigger::PerMille(1000),
        fault: InjectedFault::Delay(Duration::from_secs(5)),
    };
    let disturbance = Disturbance { rules: vec![late], missing_namespace: true, ..Disturbance::default() };
    let run = run_again("window_opens", &disturbance)?;
    assert_eq!(run.counts["Machine desk-machine"].made, 1);
    Ok(())
}

/// An object without a machine is deleted while its status cannot be written.
async fn deleted_without_status(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::make(env, json!({"schedule": {"enabled": false}})).await?;
    subject.until_phase("Disabled").await?;
    env.set_impaired(Impairment::StatusForbidden, true).await?;
    env.delete(SCHEDULED_MACHINE, subject.name()).await?;
    subject.until_gone().await?;
    Ok(Ending::gone(subject.name()))
}

/// The finalizer was removed only after the status had been written, so that an object whose status was refused could never be
/// deleted.
#[test]
fn a_refused_status_does_not_keep_a_deleted_object() -> anyhow::Result<()> {
    let (name, within) = ("deleted_without_status", Duration::from_secs(5));
    let scenario = Scenario::new(name, |env| Box::pin(deleted_without_status(env)), within);
    run(&scenario, Layout::TwoClusters, &Disturbance::default())?;
    Ok(())
}

/// A lent machine whose workload cluster is unreachable for ten minutes.
async fn workload_is_away_for_long(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    let (machine, node) = (subject.machine_uid().await?, subject.node().await?);
    env.set_api_server(ClusterRole::Workload, ServerState::Silent).await?;
    let lost = subject.until_condition("MachineReady", "Unknown", "Unreachable").await?;
    ensure!(lost["status"]["phase"] == "Error", "{lost}");
    ensure!(lost["status"]["nodeRef"]["name"] == node, "it forgot its Node: {lost}");
    tokio::time::sleep(Duration::from_mins(5)).await;
    env.set_api_server(ClusterRole::Workload, ServerState::Up).await?;
    subject.until_ready().await?;
    ensure!(subject.machine_uid().await? == machine, "it is another Machine");
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// The status of a lent machine said that its node was Ready for as long as the API server of its cluster was
/// unreachable.
#[test]
fn a_long_outage_shows_in_the_conditions_and_ends_by_itself() -> anyhow::Result<()> {
    let name = "workload_is_away_for_long";
    let scenario =
        Scenario::new(name, |env| Box::pin(workload_is_away_for_long(env)), Duration::from_mins(1));
    run(&scenario, Layout::TwoClusters, &Disturbance::default())?;
    Ok(())
}

/// Returns true if an object is gone, or being deleted.
fn is_deleted(object: &Value) -> bool {
    object.is_null() || !object["metadata"]["deletionTimestamp"].is_null()
}

/// Waits until the Machine is deleted, which has to be so within a time limit.
async fn deleted_within(
    env: &dyn Environment,
    subject: &Subject<'_>,
    begun: Timestamp,
    limit: Duration,
) -> anyhow::Result<()> {
    env.until(MACHINE, &subject.machine(), "to be deleted", is_deleted).await?;
    let took = Duration::try_from(env.now().duration_since(begun))?;
    ensure!(took <= limit, "the Machine was deleted after {took:?} instead of {limit:?}");
    Ok(())
}

/// A pod that stays on its node until it is released.
async fn keep_pod(env: &dyn Environment, node: &str) -> anyhow::Result<()> {
    env.pod_that(node, "kept", json!({"metadata": {"finalizers": ["example.org/keep"]}})).await
}

async fn release_pod(env: &dyn Environment) -> anyhow::Result<()> {
    if !env.get(POD, "kept").await?.is_null() {
        env.patch(POD, "kept", json!({"metadata": {"finalizers": null}})).await?;
    }
    Ok(())
}

/// Writes the reclaim request of an agent.
async fn request_reclaim(env: &dyn Environment, node: &str) -> anyhow::Result<()> {
    let request = json!({
        REASON: "process-match: java", REQUESTED_AT: env.now().to_string(), REQUESTED: REQUESTED_TRUE,
    });
    env.patch(NODE, node, json!({"metadata": {"annotations": request}})).await.map(drop)
}

/// The controller is replaced by another one, for which the workload cluster does not respond.
async fn restart_without_workload(env: &dyn Environment) -> anyhow::Result<()> {
    env.crash_controller().await?;
    env.set_api_server(ClusterRole::Workload, ServerState::Silent).await?;
    env.start_controller().await
}

/// A restart shortly before the time limit of a reclaim.
async fn restarted_before_a_reclaim_times_out(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    let node = subject.node().await?;
    keep_pod(env, &node).await?;
    let begun = env.now();
    request_reclaim(env, &node).await?;
    subject.until_phase("EmergencyRemove").await?;
    env.sleep_until(begun + Duration::from_secs(50)).await;
    restart_without_workload(env).await?;
    deleted_within(env, &subject, begun, Duration::from_secs(65)).await?;
    env.set_api_server(ClusterRole::Workload, ServerState::Up).await?;
    release_pod(env).await?;
    subject.until_phase("Disabled").await?;
    subject.until_nothing_left().await?;
    Ok(Ending::phase(subject.name(), "Disabled").machines(1, 1))
}

/// A restart shortly before the time limit of a deletion.
async fn restarted_before_a_deletion_times_out(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    keep_pod(env, &subject.node().await?).await?;
    let begun = env.now();
    env.delete(SCHEDULED_MACHINE, subject.name()).await?;
    env.sleep_until(begun + Duration::from_secs(590)).await;
    restart_without_workload(env).await?;
    deleted_within(env, &subject, begun, Duration::from_secs(605)).await?;
    subject.until_gone().await?;
    env.set_api_server(ClusterRole::Workload, ServerState::Up).await?;
    release_pod(env).await?;
    subject.until_nothing_left().await?;
    Ok(Ending::gone(subject.name()).machines(1, 1).leaves_claim())
}

/// A controller that had just been started waited for the first answer of the workload cluster, for half a minute if that
/// hung, and the time limits of reclaims and deletions passed meanwhile.
#[test]
fn a_time_limit_does_not_wait_for_the_first_answer_of_a_cluster() -> anyhow::Result<()> {
    let within = Duration::from_mins(2);
    let reclaim = Scenario::new(
        "restarted_before_a_reclaim_times_out",
        |env| Box::pin(restarted_before_a_reclaim_times_out(env)),
        within,
    );
    let deletion = Scenario::new(
        "restarted_before_a_deletion_times_out",
        |env| Box::pin(restarted_before_a_deletion_times_out(env)),
        within,
    );
    for scenario in [reclaim, deletion] {
        run(&scenario, Layout::TwoClusters, &Disturbance::default())?;
    }
    Ok(())
}

/// A kill switch before the Machine was created, while the status cannot be written.
async fn killed_before_its_machine_was_created(env: &dyn Environment) -> anyhow::Result<Ending> {
    env.set_impaired(Impairment::MachinePatches, true).await?;
    let subject = Subject::make(env, json!({})).await?;
    subject.until_condition("Ready", "False", "ReconcileFailed").await?;
    env.set_impaired(Impairment::StatusForbidden, true).await?;
    let (begun, infrastructure) = (env.now(), subject.infrastructure());
    ensure!(!env.get(INFRASTRUCTURE, &infrastructure).await?.is_null(), "there is something to give back");
    subject.set(json!({"killSwitch": true})).await?;
    env.until(INFRASTRUCTURE, &infrastructure, "to be deleted", is_deleted).await?;
    let took = env.now().duration_since(begun);
    ensure!(took.as_secs() <= 5, "it was deleted after {took}");
    env.set_impaired(Impairment::StatusForbidden, false).await?;
    env.set_impaired(Impairment::MachinePatches, false).await?;
    subject.until_phase("Terminated").await?;
    subject.until_nothing_left().await?;
    Ok(Ending::phase(subject.name(), "Terminated"))
}

/// The infrastructure object of a machine that had no Machine yet was deleted only after the status had been written. A provider
/// that follows that object kept the machine for as long as the status was refused.
#[test]
fn a_refused_status_does_not_keep_what_is_left_of_a_machine() -> anyhow::Result<()> {
    let (name, within) = ("killed_before_its_machine_was_created", Duration::from_mins(6));
    let scenario = Scenario::new(name, |env| Box::pin(killed_before_its_machine_was_created(env)), within);
    run(&scenario, Layout::TwoClusters, &Disturbance::default())?;
    Ok(())
}

/// A kill switch right after a restart of the controller.
async fn killed_after_a_restart(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    tokio::time::sleep(Duration::from_secs(10)).await;
    env.crash_controller().await?;
    env.start_controller().await?;
    subject.set(json!({"killSwitch": true})).await?;
    subject.until_phase("Terminated").await?;
    Ok(Ending::phase(subject.name(), "Terminated").machines(1, 1))
}

/// The conversion webhook of Cluster API was away, so that Clusters could not be listed. A controller that was started then did
/// nothing at all, although a kill switch needs no Cluster.
#[test]
fn a_kill_switch_does_not_wait_for_the_list_of_clusters() -> anyhow::Result<()> {
    let (name, within) = ("killed_after_a_restart", Duration::from_mins(2));
    let scenario = Scenario::new(name, |env| Box::pin(killed_after_a_restart(env)), within);
    let baseline = run(&scenario, Layout::TwoClusters, &Disturbance::default())?;
    let usually = written(&baseline, "delete", "machines")[0];
    let while_it_starts =
        Trigger::Between(usually - Duration::from_secs(5), usually + Duration::from_secs(30));
    let fault = InjectedFault::Refuse(http::StatusCode::INTERNAL_SERVER_ERROR, None);
    let disturbance = fault_of(RequestKind::Read, "/clusters", while_it_starts, fault);
    let run = run(&scenario, Layout::TwoClusters, &disturbance)?;
    let late = written(&run, "delete", "machines")[0].duration_since(usually);
    assert!(late.as_secs() <= 5, "it was deleted {late} later");
    Ok(())
}

/// A reclaim whose workload cluster stops to respond shortly before its time is over, while its object is edited.
async fn edited_before_a_reclaim_times_out(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    let node = subject.node().await?;
    keep_pod(env, &node).await?;
    let begun = env.now();
    request_reclaim(env, &node).await?;
    subject.until_phase("EmergencyRemove").await?;
    env.sleep_until(begun + Duration::from_secs(55)).await;
    env.set_api_server(ClusterRole::Workload, ServerState::Silent).await?;
    subject.set(json!({"priority": 60})).await?;
    env.until(MACHINE, &subject.machine(), "to be deleted", is_deleted).await?;
    env.set_api_server(ClusterRole::Workload, ServerState::Up).await?;
    release_pod(env).await?;
    subject.until_phase("Disabled").await?;
    subject.until_nothing_left().await?;
    Ok(Ending::phase(subject.name(), "Disabled").machines(1, 1))
}

/// The status conflicted with an edit. Everything was read again, the Node included, and the reclaim waited for a workload
/// cluster that did not respond until half a minute after its time limit.
#[test]
fn a_conflict_does_not_make_a_reclaim_wait_for_its_cluster() -> anyhow::Result<()> {
    let (name, within) = ("edited_before_a_reclaim_times_out", Duration::from_mins(2));
    let scenario = Scenario::new(name, |env| Box::pin(edited_before_a_reclaim_times_out(env)), within);
    let baseline = run(&scenario, Layout::TwoClusters, &Disturbance::default())?;
    let usually = written(&baseline, "delete", "machines")[0];
    // From the edit on until shortly before the time limit.
    let at_the_edit = Trigger::Between(usually - Duration::from_secs(6), usually - Duration::from_secs(2));
    let conflict = InjectedFault::Refuse(http::StatusCode::CONFLICT, None);
    let disturbance = fault_of(RequestKind::Write, "/status", at_the_edit, conflict);
    let run = run(&scenario, Layout::TwoClusters, &disturbance)?;
    let late = written(&run, "delete", "machines")[0].duration_since(usually);
    assert!(late.as_secs() <= 5, "it was deleted {late} later");
    Ok(())
}

/// A restart of the controller, and a kill switch a few seconds later. The status is true at any time.
async fn killed_a_while_after_a_restart(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    tokio::time::sleep(Duration::from_secs(10)).await;
    env.crash_controller().await?;
    env.start_controller().await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let object = subject.get().await?;
    for field in ["machineRef", "nodeRef", "workloadCluster"] {
        ensure!(!object["status"][field].is_null(), "{field} was forgotten: {object}");
    }
    subject.set(json!({"killSwitch": true})).await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (object, machine) = (subject.get().await?, env.get(MACHINE, &subject.machine()).await?);
    ensure!(object["status"]["phase"] != "Terminated" || is_deleted(&machine), "it is lent: {object}");
    subject.until_phase("Terminated").await?;
    Ok(Ending::phase(subject.name(), "Terminated").machines(1, 1))
}

/// A proxy answered the list of Machines with `404 page not found` when the controller was started. All of them were taken to be
/// gone, and the status of an object with a kill switch said that its machine had been returned.
#[test]
fn a_list_that_a_proxy_does_not_find_is_not_empty() -> anyhow::Result<()> {
    let (name, within) = ("killed_a_while_after_a_restart", Duration::from_mins(2));
    let scenario = Scenario::new(name, |env| Box::pin(killed_a_while_after_a_restart(env)), within);
    let baseline = run(&scenario, Layout::TwoClusters, &Disturbance::default())?;
    let usually = written(&baseline, "delete", "machines")[0];
    let while_it_starts =
        Trigger::Between(usually - Duration::from_secs(8), usually + Duration::from_secs(30));
    let disturbance = fault_of(RequestKind::Read, "/machines", while_it_starts, InjectedFault::Misroute);
    run(&scenario, Layout::TwoClusters, &disturbance)?;
    Ok(())
}
