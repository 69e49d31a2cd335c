//! `cargo xtask bench-leaders`: the cost of a standby, and the time until another replica works, with many objects on a
//! real API server.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use five_spot_api::ScheduledMachine;
use five_spot_testenv::identity::ServiceAccountIdentity;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::{Value, json};

use super::measure::{cpu_ticks, share_of_core};
use crate::startup::{Bare, Program, machine, shipped_definition, shipped_rules};

/// The argument that selects this benchmark.
pub(super) const WORD: &str = "bench-leaders";

/// Objects that are made at a time.
const AT_A_TIME: usize = 16;

/// Long enough for a busy machine.
const WAIT_LIMIT: Duration = Duration::from_mins(40);

/// The polling interval for objects and logs.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// The time after which a standby that has just started is at rest.
const SETTLED_AFTER: Duration = Duration::from_secs(20);

struct Bench {
    bare: Bare,
    controller: PathBuf,
    accounts: [ServiceAccountIdentity; 2],
}

/// Measures, and prints the figures. The arguments are controller, objects, seconds, rounds.
pub(super) async fn run(arguments: &[String]) -> anyhow::Result<()> {
    let [controller, objects, seconds, rounds] = arguments else {
        anyhow::bail!("to be started by `cargo xtask bench-leaders`");
    };
    let bare = Bare::start(WORD).await?;
    let accounts = [account(&bare, "one").await?, account(&bare, "two").await?];
    bare.define(&shipped_definition()).await?;
    bare.install_cluster_api().await?;
    let bench = Bench { bare, controller: controller.into(), accounts };
    let measured =
        bench.measure(objects.parse()?, Duration::from_secs(seconds.parse()?), rounds.parse()?).await;
    bench.bare.stop().await?;
    measured
}

async fn account(bare: &Bare, name: &str) -> anyhow::Result<ServiceAccountIdentity> {
    let mut rules = shipped_rules()?;
    rules.push(json!({
        "apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
        "verbs": ["get", "list", "watch", "create", "update", "patch"],
    }));
    bare.account(name, &Value::Array(rules)).await
}

impl Bench {
    async fn measure(&self, objects: usize, quiet: Duration, rounds: usize) -> anyhow::Result<()> {
        let mut leader = self.start(0).await?;
        leader.logged("Became the leader").await?;
        self.make(objects).await?;
        let mut standby = self.start(1).await?;
        tokio::time::sleep(SETTLED_AFTER).await;

        let (requests, ticks) = (self.requests(1)?, cpu_ticks(standby.pid())?);
        tokio::time::sleep(quiet).await;
        let (requests, ticks) = (self.requests(1)? - requests, cpu_ticks(standby.pid())? - ticks);
        let share = share_of_core(ticks, quiet);
        println!(
            "standby with {objects} objects for {} s: {requests} requests beside its Lease, {share:.2} % of a core",
            quiet.as_secs()
        );

        let mut number = 0;
        for round in 1..=rounds {
            for how in ["SIGKILL", "SIGTERM"] {
                let since = Timestamp::now();
                match how {
                    "SIGKILL" => leader.kill().await,
                    _ => leader.stop().await?,
                }
                let took = first_reconcile(&standby, since).await?;
                println!("round {round}: {how} to the first reconcile of the new leader: {took:.2} s");
                leader = standby;
                standby = self.start(number).await?;
                number = 1 - number;
                tokio::time::sleep(SETTLED_AFTER).await;
            }
        }
        standby.stop().await?;
        leader.stop().await
    }

    async fn start(&self, number: usize) -> anyhow::Result<Program> {
        let (directory, identity) = (self.bare.directory(), &self.accounts[number]);
        let name = ["one", "two"][number];
        let flags = ["--enable-leader-election"];
        let program = Program::start_file(&self.controller, directory, identity, name, &flags).await?;
        program.is_ready().await?;
        Ok(program)
    }

    /// Requests of an account that are neither watches nor about Leases.
    fn requests(&self, number: usize) -> anyhow::Result<usize> {
        let asked = self.bare.asked(&self.accounts[number])?;
        Ok(asked.iter().filter(|record| record.object.resource != "leases" && record.verb != "watch").count())
    }

    /// Creates disabled objects, and waits until each has been reconciled.
    async fn make(&self, count: usize) -> anyhow::Result<()> {
        let objects: Api<ScheduledMachine> = Api::namespaced(self.bare.admin(), "default");
        stream::iter(0..count)
            .map(|number| {
                let objects = objects.clone();
                async move {
                    let mut object = machine(&format!("desk-{number:05}"));
                    object["spec"]["schedule"]["enabled"] = false.into();
                    objects.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
                    anyhow::Ok(())
                }
            })
            .buffer_unordered(AT_A_TIME)
            .try_collect::<Vec<()>>()
            .await?;
        let settled = async {
            loop {
                let all = objects.list(&ListParams::default()).await?.items;
                let seen = all.iter().filter(|object| object.status.is_some()).count();
                if seen == count {
                    return anyhow::Ok(());
                }
                eprintln!("{seen} of {count} objects have a status");
                tokio::time::sleep(Duration::from_secs(5)).await;
            }
        };
        tokio::time::timeout(WAIT_LIMIT, settled).await.context("not every object was looked at")?
    }
}

async fn first_reconcile(program: &Program, since: Timestamp) -> anyhow::Result<f64> {
    let found = async {
        loop {
            let lines = program.lines()?;
            let begun = lines.iter().filter(|line| line["fields"]["message"] == "Starting reconciliation");
            let first = begun.filter_map(|line| line["timestamp"].as_str()?.parse::<Timestamp>().ok());
            if let Some(first) = first.into_iter().find(|at| *at > since) {
                return anyhow::Ok(first.duration_since(since).as_secs_f64());
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
    };
    tokio::time::timeout(WAIT_LIMIT, found).await.context("nobody takes over")?
}
