//! The in-memory API server over HTTP, with the kinds of 5-Spot and Cluster API and all stand-ins: `cargo run
//! -p five-spot-standins --example serve -- 127.0.0.1:8001 kubeconfig.json`

use five_spot_apiserver::{ApiServer, ApiServerConfig, Clock, serve};
use five_spot_standins::{Contract, StandInSettings, StandIns, Timing, cluster_api_crds, provider_crds};
use kube::Client;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:0".to_owned()).parse()?;
    let clock = Clock::system();
    let api = ApiServer::new(ApiServerConfig::new(clock.clone()));
    let ours = serde_json::to_value(five_spot_api::crd())?;
    for crd in cluster_api_crds(Contract::V1Beta2).into_iter().chain(provider_crds()).chain([ours]) {
        api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd);
    }
    let server = serve(api.service(), address).await?;
    let client = || Client::new(api.service(), "default");
    let stand_ins = StandIns::new(client(), client(), clock, StandInSettings::new(Timing::default()));
    match arguments.next() {
        Some(path) => std::fs::write(path, server.kubeconfig())?,
        None => println!("{}", server.kubeconfig()),
    }
    tokio::select! {
        () = stand_ins.with_kubeconfig(server.kubeconfig()).run() => {}
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    Ok(())
}
