//! Many days on which leaders are killed, stopped, paused and cut off at random moments.
//!
//! `FIVESPOT_LEADER_SEEDS` says how many seeds are tried.

use crate::cluster::{Cluster, LEASE};
use crate::link::{Kind, State};
use serde_json::json;
use tokio::runtime::Builder;

const SEEDS: u64 = 10;
const MACHINES: usize = 3;

/// A generator of numbers that only depend on the seed: `SplitMix64`.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Seconds from `low` to `high`, in steps of a hundredth.
    #[allow(clippy::cast_precision_loss)]
    fn seconds(&mut self, low: u64, high: u64) -> f64 {
        (low * 100 + self.below((high - low) * 100)) as f64 / 100.0
    }
}

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
                .patch(LEASE, &json!({"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 5}}))
                .await;
        }
    }
}

async fn day(seed: u64) {
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
}

#[test]
fn no_seed_doubles_anything() {
    let seeds = std::env::var("FIVESPOT_LEADER_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    for seed in 0..seeds.unwrap_or(SEEDS) {
        let runtime =
            Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
        let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| runtime.block_on(day(seed))));
        assert!(played.is_ok(), "seed {seed}");
    }
}
