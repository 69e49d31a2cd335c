//! One leader goes, and another comes.

use crate::cluster::Cluster;
use crate::link::{Kind, State};
use crate::replica::Replica;
use five_spot_apiserver::Clock;
use five_spot_cluster::transport::http::WriteGuard;
use std::sync::Arc;

/// Plays the rest of the day: every machine is lent once and given back once.
async fn end(cluster: &Cluster) {
    cluster.until("09:09:00").await;
    assert!(cluster.phases().await.iter().all(|phase| phase == "Active"), "{:?}", cluster.phases().await);
    cluster.until("09:20:00").await;
    assert!(cluster.phases().await.iter().all(|phase| phase == "Inactive"), "{:?}", cluster.phases().await);
    let count = cluster.phases().await.len();
    assert_eq!((cluster.machines().await, cluster.effects()), (0, (count, count)));
    assert!(cluster.late().is_empty(), "{:#?}", cluster.late());
}

#[tokio::test(start_paused = true)]
async fn one_of_three_works_and_the_others_are_ready() {
    let cluster = Cluster::new(2, 3, false).await;
    cluster.until("09:05:00").await;
    assert_eq!(cluster.leader(), Some(0));
    for (number, replica) in cluster.replicas.iter().enumerate() {
        assert_eq!(replica.health.obstacles(), Vec::<String>::new(), "{number}");
        let page = replica.metrics.page();
        let (leads, active) = if number == 0 { (1, 2) } else { (0, 0) };
        for line in [
            format!("fivespot_is_leader {leads}"),
            format!("fivespot_machines_active {active}"),
            format!("fivespot_machines_by_phase{{phase=\"Active\"}} {active}"),
            "fivespot_machines_without_node 0".to_owned(),
        ] {
            assert!(page.contains(&format!("\n{line}\n")), "{number}: {line} in\n{page}");
        }
    }
    let writers: Vec<String> = cluster.landed().into_iter().map(|write| write.pod).collect();
    assert!(writers.iter().all(|pod| pod == "pod-0"), "a standby writes nothing: {writers:?}");
    end(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_killed_leader_is_replaced_when_its_lease_expires() {
    let mut cluster = Cluster::new(2, 3, false).await;
    cluster.until("09:00:00.5").await;
    drop(cluster.replicas.remove(0));
    let (_, took) = cluster.elected().await;
    assert!((12.0..16.0).contains(&took), "{took}");
    end(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_terminated_leader_is_replaced_within_a_second() {
    let mut cluster = Cluster::new(2, 2, false).await;
    cluster.until("09:00:00.5").await;
    cluster.replicas.remove(0).terminate().await;
    let (_, took) = cluster.elected().await;
    assert!(took < 1.0, "{took}");
    end(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_terminated_during_a_renewal_is_replaced_at_once() {
    let mut cluster = Cluster::new(2, 2, false).await;
    cluster.until("08:58:30").await;
    cluster.replicas[0].set_link(State::Mute);
    cluster.sleep(2.5).await;
    // The API server has renewed the Lease, and the leader does not know yet.
    cluster.replicas[0].set_link(State::Open);
    cluster.replicas.remove(0).terminate().await;
    let (_, took) = cluster.elected().await;
    assert!(took < 1.0, "{took}");
    end(&cluster).await;
}

/// Refuses every write in the first minute of the window.
struct FirstMinute(Clock);

impl WriteGuard for FirstMinute {
    fn check(&self) -> Result<(), &'static str> {
        let now = self.0.now().to_string();
        if now.starts_with("2026-11-16T09:00:") { Err("not in this minute") } else { Ok(()) }
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_a_guard_refused_is_not_forgotten() {
    let mut cluster = Cluster::new(2, 0, false).await;
    let guard = Arc::new(FirstMinute(cluster.server.clock.clone()));
    cluster.replicas.push(Replica::start_alone(&cluster.server, guard));
    end(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_stops_first_and_may_lead_again() {
    for state in [State::Hanging, State::Down] {
        let mut cluster = Cluster::new(2, 2, false).await;
        cluster.until("09:00:00.01").await;
        cluster.replicas[0].set_link(state);
        cluster.sleep(10.1).await;
        assert_eq!(
            cluster.leader(),
            None,
            "{state:?}: the old leader has stopped, the Lease is not free yet"
        );
        let (leader, took) = cluster.elected().await;
        assert!(leader == 1 && took < 6.0, "{state:?}: {took}");
        let page = cluster.replicas[0].metrics.page();
        assert!(page.contains("\nfivespot_machines_active 0\n"), "{page}");
        cluster.replicas[0].set_link(State::Open);
        cluster.sleep(30.0).await;
        assert_eq!(cluster.leader(), Some(1), "{state:?}");
        cluster.replicas.remove(1).terminate().await;
        let (leader, took) = cluster.elected().await;
        assert!(leader == 0 && took < 1.0, "{state:?}: {took}");
        end(&cluster).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_paused_leader_has_sent_does_not_land_with_the_fence() {
    // The leader is stopped right before the writes with which a window opens and closes.
    for (moment, kind) in [
        ("08:59:59.5", Kind::ApplyMachine),
        ("08:59:59.5", Kind::Update),
        ("09:09:59.5", Kind::Update),
        ("09:09:59.5", Kind::DeleteMachine),
    ] {
        let cluster = Cluster::new(3, 2, true).await;
        cluster.until(moment).await;
        cluster.replicas[0].pause(kind);
        cluster.sleep(25.0).await;
        assert_eq!(cluster.leader(), Some(1));
        cluster.replicas[0].resume().await;
        cluster.sleep(1.0).await;
        assert!(!cluster.replicas[0].leads());
        assert!(
            *cluster.server.refused.lock().expect("no panic") > 0,
            "{moment} {kind:?}: something was on its way"
        );
        cluster.until("09:20:00").await;
        assert_eq!((cluster.machines().await, cluster.effects()), (0, (3, 3)), "{moment} {kind:?}");
        assert!(cluster.late().is_empty(), "{moment} {kind:?}: {:#?}", cluster.late());
    }
}

#[tokio::test(start_paused = true)]
async fn a_minute_of_standstill_duplicates_nothing() {
    let cluster = Cluster::new(2, 2, false).await;
    cluster.until("08:59:30").await;
    // Time passes while no task runs, as on a machine that is suspended.
    tokio::time::advance(std::time::Duration::from_mins(1)).await;
    cluster.sleep(20.0).await;
    assert!(cluster.leader().is_some());
    end(&cluster).await;
}
