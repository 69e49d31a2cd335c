//! `5spot debug-bundle`: reads what a bug report needs, removes credentials, and packs it.

mod agents;
mod archive;
mod args;
mod bundle;
#[cfg(test)]
mod canary;
mod collect;
mod controller;
mod destination;
mod diagnoses;
mod events;
mod logs;
mod machines;
mod read;
mod workloads;

pub use args::Args;

use crate::args::Outcome;
use crate::cluster_access::CallerCluster;
use crate::environment::ProcessEnvironment;
use crate::output::complain;
use crate::why::{Catalog, ProgressLine};
use crate::wording;
use anyhow::Context as _;
use bundle::{Bundle, Origin};
use destination::Destination;
use jiff::{SignedDuration, Timestamp};
use read::Reader;

/// Runs the command.
pub fn run(args: &Args, process_environment: &ProcessEnvironment) -> Outcome {
    match write(args, process_environment.now) {
        Ok(()) => Outcome::Fine,
        Err(error) => {
            complain(&format!("error: {error:#}"));
            Outcome::Failed
        }
    }
}

fn write(args: &Args, now: Timestamp) -> anyhow::Result<()> {
    let destination = Destination::new(args.file.as_deref(), args.force, now);
    destination.check()?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("failed to start")?;
    let (bundle, origin, now) = runtime.block_on(async {
        let access = args.cluster.access().await?;
        let described = access.clone();
        let by_server_time = access.by_server_time().await;
        let (access, difference) =
            by_server_time.map_err(|error| anyhow::anyhow!("{}", described.failure(&error)))?;
        let bundle = gather(&access, args.namespace.as_deref(), difference).await?;
        let now = access.connection.now();
        let origin = Origin {
            created: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            program: format!("5spot {}", env!("CARGO_PKG_VERSION")),
            server: access.description.rsplit("server ").next().unwrap_or_default().to_owned(),
            namespace: args.namespace.clone(),
        };
        anyhow::Ok((bundle, origin, now))
    })?;
    let (files, missing) = (bundle.len(), bundle.missing());
    let size = destination.write(&bundle.finish(&origin), now)?;
    complain(&format!(
        "wrote {destination}: {}, {} KiB; README.txt in it says what each is{}",
        wording::count(files, "file"),
        size.div_ceil(1024),
        match missing {
            0 => String::new(),
            missing => format!(", and what is missing ({missing})"),
        }
    ));
    Ok(())
}

/// Reads everything with the caller's own permissions. `difference` is the server's clock minus this computer's.
async fn gather(
    access: &CallerCluster,
    namespace: Option<&str>,
    difference: SignedDuration,
) -> anyhow::Result<Bundle> {
    let failed = |error: kube::Error| anyhow::anyhow!("{}", access.failure(&error));
    let client = access.connection.management().map_err(failed)?;
    let progress = ProgressLine::on_stderr();
    progress.show("reading the cluster");
    let catalog = Catalog::discover(&client).await.map_err(failed)?;
    let reader = Reader { client: client.clone(), catalog: &catalog };
    let (mut bundle, machines) = collect::collect(&reader, namespace).await;
    progress.show("reading the workload clusters");
    workloads::collect(access, &client, &mut bundle, &machines.clusters).await;
    progress.show("looking for what is wrong");
    diagnoses::findings(access, &mut bundle, namespace, difference).await;
    diagnoses::explanations(access, &mut bundle, &machines.keys).await;
    Ok(bundle)
}
