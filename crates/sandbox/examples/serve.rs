//! The embedded API alone, over HTTP, with the kind of 5-Spot in it:
//! `cargo run -p five-spot-sandbox --example serve -- 127.0.0.1:8001 kubeconfig.json`

use five_spot_sandbox::{Api, ApiConfig, Clock, serve};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:0".to_owned()).parse()?;
    let api = Api::new(ApiConfig::new(Clock::system()));
    let crd = serde_json::to_value(five_spot_api::crd())?;
    api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd);
    let server = serve(api.service(), address).await?;
    match arguments.next() {
        Some(path) => std::fs::write(path, server.kubeconfig())?,
        None => println!("{}", server.kubeconfig()),
    }
    tokio::signal::ctrl_c().await?;
    Ok(())
}
