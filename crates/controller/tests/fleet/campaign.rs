//! Rolling updates from one instance to two, three and two, while instances are killed, terminated and cut off at random
//! moments and the windows open and close: figure 14. The members are controllers, the API server is the embedded one, and
//! requests take time.

use crate::cluster::Cluster;
use crate::instance::{Instance, LinkState};
use crate::referee::Referee;
use crate::seeds::{Random, Seeds, report};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const SEEDS: Seeds = Seeds { sample: 3, campaign: 40, variable: "FIVESPOT_SHARD_SEEDS" };
const MACHINES: usize = 3;

/// The time between two edits of each object. Whoever owns it has to write it after each of them.
const EDIT_EVERY: Duration = Duration::from_secs(10);

/// The Lease of a single instance, which is renewed most rarely.
const LEASE: SignedDuration = SignedDuration::from_secs(30);

/// A connection that is cut off at the end of a rollout, the edits, and the requests in between.
const SLACK: SignedDuration = SignedDuration::from_secs(25 + 10 + 5);

struct Fleet {
    cluster: Cluster,
    random: Random,
    instances: BTreeMap<u32, (u32, Instance)>,
    disturbances: usize,
}

impl Fleet {
    async fn sleep(&mut self, low: u64, high: u64) {
        let pause = self.random.seconds(low, high);
        tokio::time::sleep(Duration::from_secs_f64(pause)).await;
    }

    fn start(&mut self, id: u32, count: u32) {
        let instance = self.cluster.start(id, count);
        assert!(self.instances.insert(id, (count, instance)).is_none(), "one pod per ordinal");
    }

    async fn terminate(&mut self, id: u32) {
        if let Some((_, instance)) = self.instances.remove(&id) {
            instance.terminate().await;
        }
    }

    /// One of the instances is killed, terminated or cut off, or none.
    async fn disturb(&mut self) {
        let ids: Vec<u32> = self.instances.keys().copied().collect();
        let Some(id) = ids.get(usize::try_from(self.random.below(3)).expect("small")).copied() else {
            return;
        };
        let count = self.instances[&id].0;
        let kind = self.random.below(6);
        self.disturbances += usize::from(kind < 5);
        match kind {
            0 | 1 => {
                drop(self.instances.remove(&id));
                self.sleep(0, 5).await;
                self.start(id, count);
            }
            2 => {
                self.terminate(id).await;
                self.start(id, count);
            }
            3 | 4 => {
                let state = if kind == 3 { LinkState::Hanging } else { LinkState::Refusing };
                let pause = Duration::from_secs_f64(self.random.seconds(1, 25));
                let (_, instance) = &self.instances[&id];
                instance.set_link(state);
                instance.reopen_after(pause);
            }
            _ => {}
        }
    }

    /// A rolling update of a `StatefulSet`: new ordinals first, then the others from the highest to the lowest.
    async fn roll_out(&mut self, from: u32, to: u32) {
        for id in (to..from).rev() {
            self.terminate(id).await;
        }
        for id in from..to {
            self.start(id, to);
            self.sleep(0, 6).await;
            self.disturb().await;
        }
        for id in (0..from.min(to)).rev() {
            self.terminate(id).await;
            self.sleep(0, 3).await;
            self.start(id, to);
            self.sleep(0, 10).await;
            self.disturb().await;
        }
    }

    /// The longest time between two writes to an object, all of which are edited all the time.
    fn longest_gap(&self) -> SignedDuration {
        let gaps = (0..MACHINES).flat_map(|number| {
            let writes = self.cluster.writes(number);
            let times: Vec<Timestamp> = writes.iter().map(|write| write.ended).collect();
            times.windows(2).map(|pair| pair[1].duration_since(pair[0])).collect::<Vec<_>>()
        });
        gaps.max().expect("writes")
    }
}

/// Edits every object again and again.
async fn edit(cluster: &Cluster) {
    for number in 0_u64.. {
        for machine in 0..MACHINES {
            let labels = json!({"machineTemplate": {"labels": {"edit": number.to_string()}}});
            cluster.change(&format!("m{machine}"), &labels).await;
        }
        tokio::time::sleep(EDIT_EVERY).await;
    }
}

/// The events of a day.
struct Day {
    disturbances: usize,
    writes: usize,
    gap: SignedDuration,
}

async fn day(seed: u64) -> Day {
    let mut random = Random(seed);
    let mut cluster = Cluster::new(MACHINES, &format!("09:0{}", 2 + random.below(4)));
    let referee = Arc::new(Referee::new(random.next()));
    cluster.shared.referee = Some(referee.clone());
    let editor = Cluster { shared: cluster.shared.clone(), jump: Arc::default(), limit: cluster.limit };
    let editor = tokio::spawn(async move { edit(&editor).await });
    let mut fleet = Fleet { cluster, random, instances: BTreeMap::new(), disturbances: 0 };
    fleet.start(0, 1);
    fleet.sleep(3, 60).await;
    let mut longest = SignedDuration::ZERO;
    for (from, to) in [(1, 2), (2, 3), (3, 2)] {
        let began = fleet.cluster.shared.clock.now();
        fleet.roll_out(from, to).await;
        longest = longest.max(fleet.cluster.shared.clock.now().duration_since(began));
        tokio::time::sleep(Duration::from_secs(40)).await;
    }
    fleet.cluster.until("09:07:00").await;
    tokio::time::sleep(Duration::from_secs(40)).await;
    editor.abort();
    tokio::time::sleep(Duration::from_secs(40)).await;
    let violations = referee.violations();
    assert!(violations.is_empty(), "{violations:#?}");
    fleet.cluster.check_turns(MACHINES, usize::MAX);
    let gap = fleet.longest_gap();
    assert!(gap <= longest + LEASE + SLACK, "nobody worked for {gap:#} in rollouts of at most {longest:#}");
    for object in fleet.cluster.objects().await {
        let observed = &object["status"]["observedGeneration"];
        assert_eq!(observed, &object["metadata"]["generation"], "nobody works on {object:#}");
        assert_eq!(object["status"]["phase"], "Inactive");
    }
    assert_eq!((fleet.cluster.effects(), fleet.cluster.machines().await), ((MACHINES, MACHINES), 0));
    let writes = (0..MACHINES).map(|number| fleet.cluster.writes(number).len()).sum();
    Day { disturbances: fleet.disturbances, writes, gap }
}

#[test]
fn no_seed_has_two_instances_on_one_object() {
    let days = SEEDS.run(day);
    let disturbances: usize = days.iter().map(|day| day.disturbances).sum();
    let writes: usize = days.iter().map(|day| day.writes).sum();
    let gap = days.iter().map(|day| day.gap).max().expect("days");
    report(&format!(
        "shards: {} seeds, {} rollouts, {disturbances} disturbances, {writes} writes, 0 by two at once, nobody for at \
         most {gap:#}",
        days.len(),
        3 * days.len()
    ));
    assert!(disturbances > days.len(), "something happens every day");
}
