//! Many days on which leaders are killed, stopped, paused and cut off at random moments: figure 6.

use crate::cluster::{Cluster, LEASE};
use crate::link::{Kind, State};
use crate::seeds::{Random, Seeds, report};
use serde_json::json;

const SEEDS: Seeds = Seeds { sample: 10, campaign: 100, variable: "FIVESPOT_LEADER_SEEDS" };
const MACHINES: usize = 3;

/// The holder that an edit of the Lease names.
const SOMEBODY: &str = "somebody";

/// Something happens to the leader, or to any replica, or to the Lease.
async fn disturb(cluster: &mut Cluster, random: &mut Random) {
    let count = u64::try_from(cluster.replicas.len()).expect("few");
    let anybody = usize::try_from(random.below(count)).expect("few");
    let number = cluster.leader().unwrap_or(anybody);
    match random.below(8) {
        0 => {
            let pod = cluster.replicas[number].pod.clone();
            drop(cluster.replicas.remove(number));
            cluster.sleep(random.seconds(0, 20)).await;
            cluster.start(&pod);
        }
        1 => {
            let replica = cluster.replicas.remove(number);
            let pod = replica.pod.clone();
            replica.terminate().await;
            cluster.start(&pod);
        }
        2 | 3 => {
            let state = if random.below(2) == 0 { State::Hanging } else { State::Down };
            cluster.replicas[number].set_link(state);
            cluster.sleep(random.seconds(1, 40)).await;
            cluster.replicas[number].set_link(State::Open);
        }
        // What is on its way when a process is stopped may land when it goes on: only the guard prevents that.
        4 | 5 if cluster.server.is_fenced => {
            let kinds = [Kind::ApplyMachine, Kind::DeleteMachine, Kind::Update];
            cluster.replicas[number].pause(kinds[usize::try_from(random.below(3)).expect("small")]);
            cluster.sleep(random.seconds(5, 29)).await;
            cluster.replicas[number].resume().await;
        }
        4 | 5 => tokio::time::advance(std::time::Duration::from_secs_f64(random.seconds(5, 40))).await,
        6 => cluster.delete(LEASE).await,
        _ => {
            cluster
                .patch(LEASE, &json!({"spec": {"holderIdentity": SOMEBODY, "leaseDurationSeconds": 5}}))
                .await;
        }
    }
}

/// The events of a day.
struct Day {
    /// The changes of the replica that holds the Lease.
    takeovers: usize,
    /// The writes that the policy of `deploy/ha` has refused.
    refused: usize,
}

async fn day(seed: u64) -> Day {
    let mut random = Random(seed);
    let replicas = 2 + usize::try_from(seed % 2).expect("small");
    let mut cluster = Cluster::new(MACHINES, replicas, seed.is_multiple_of(4) || seed % 4 == 1).await;
    cluster.until("08:59:50").await;
    for end in ["09:00:05", "09:09:55", "09:12:00"] {
        // Most of it while the windows open and close.
        for _ in 0..3 {
            cluster.sleep(random.seconds(0, 6)).await;
            disturb(&mut cluster, &mut random).await;
            let _ = cluster.leader();
        }
        cluster.until(end).await;
    }
    cluster.until("09:40:00").await;
    let (leader, _) = cluster.elected().await;
    let phases = cluster.phases().await;
    assert!(phases.iter().all(|phase| phase == "Inactive"), "{phases:?} with leader {leader}");
    assert_eq!(cluster.machines().await, 0);
    let (made, deleted) = cluster.effects();
    assert!(made == MACHINES && deleted == MACHINES, "{made} made, {deleted} deleted");
    assert!(cluster.late().is_empty(), "late: {:#?}", cluster.late());
    let mut holders: Vec<String> = cluster.landed().into_iter().map(|write| write.holder).collect();
    holders.retain(|holder| !holder.is_empty() && holder != SOMEBODY);
    holders.dedup();
    let refused = *cluster.server.refused.lock().expect("no panic");
    Day { takeovers: holders.len().saturating_sub(1), refused }
}

#[test]
fn no_seed_doubles_anything() {
    let days = SEEDS.run(day);
    let takeovers: usize = days.iter().map(|day| day.takeovers).sum();
    let refused: usize = days.iter().map(|day| day.refused).sum();
    report(&format!(
        "leaders: {} seeds, {takeovers} takeovers, {refused} writes refused by the fence, 0 double effects",
        days.len()
    ));
    assert!(takeovers > days.len(), "the leader changes more than once a day");
    assert!(refused > 0, "some writes are late");
}
