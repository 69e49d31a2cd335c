//! Injected faults happen, affect only their target, and end.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use five_spot_testenv::cluster::Side;
use five_spot_testenv::control_plane::Component;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::kubeconfig;
use five_spot_testenv::proxy::Line;
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use five_spot_testenv::wait;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::time::timeout;

pub(crate) fn tests() -> Vec<Test> {
    tests![
        cutting_one_line_leaves_the_others,
        hung_line_is_silent_until_it_opens,
        #[alone]
        frozen_api_server_is_silent_until_it_thaws,
        #[alone]
        watches_survive_a_killed_api_server,
        #[alone]
        restarted_etcd_has_forgotten_nothing,
        #[alone]
        restarted_cluster_api_serves_its_webhooks_again,
    ]
}

/// Longer than any response of a healthy server, short enough for a test that expects no response.
const SILENCE: Duration = Duration::from_secs(3);
const BACK_WITHIN: Duration = Duration::from_mins(1);

async fn cutting_one_line_leaves_the_others(context: Arc<TestContext>) -> TestResult {
    let proxy = context.proxy(Side::Management).await?;
    let client = client_through(&context, &proxy.server()).await?;
    read(&context, &client).await?;
    proxy.set(Line::Cut);
    ensure!(read(&context, &client).await.is_err(), "the line is cut");
    read(&context, &context.management().admin()).await?;
    proxy.set(Line::Open);
    read(&context, &client).await?;
    Ok(())
}

async fn hung_line_is_silent_until_it_opens(context: Arc<TestContext>) -> TestResult {
    let proxy = context.proxy(Side::Management).await?;
    let client = client_through(&context, &proxy.server()).await?;
    read(&context, &client).await?;
    proxy.set(Line::Hung);
    let mut response = Box::pin(read(&context, &client));
    ensure!(timeout(SILENCE, &mut response).await.is_err(), "nothing passes a hung line");
    proxy.set(Line::Open);
    timeout(BACK_WITHIN, response).await??;
    Ok(())
}

async fn frozen_api_server_is_silent_until_it_thaws(context: Arc<TestContext>) -> TestResult {
    let control_plane = context.clusters().control_plane();
    let client = context.management().admin();
    control_plane.freeze(Component::ApiServer(Side::Management)).await;
    let mut response = Box::pin(read(&context, &client));
    let silent = timeout(SILENCE, &mut response).await.is_err();
    let workload = read(&context, &context.workload().admin()).await;
    control_plane.thaw(Component::ApiServer(Side::Management)).await;
    ensure!(silent, "a frozen server does not answer");
    workload?;
    timeout(BACK_WITHIN, response).await??;
    Ok(())
}

async fn watches_survive_a_killed_api_server(context: Arc<TestContext>) -> TestResult {
    let objects = config_maps(&context, &context.management().admin());
    let waiting = {
        let objects = objects.clone();
        tokio::spawn(async move {
            wait::until_present(&objects, "late", "to appear", BACK_WITHIN, |_| true).await
        })
    };
    let control_plane = context.clusters().control_plane();
    let before = control_plane.process(Component::ApiServer(Side::Management)).await;
    control_plane.kill(Component::ApiServer(Side::Management)).await;
    ensure!(read(&context, &context.management().admin()).await.is_err(), "a dead server does not answer");
    control_plane.restart(Component::ApiServer(Side::Management)).await?;
    ensure!(control_plane.process(Component::ApiServer(Side::Management)).await != before);
    objects.create(&PostParams::default(), &config_map("late")).await?;
    waiting.await??;
    Ok(())
}

async fn restarted_etcd_has_forgotten_nothing(context: Arc<TestContext>) -> TestResult {
    let objects = config_maps(&context, &context.management().admin());
    let created = objects.create(&PostParams::default(), &config_map("kept")).await?;
    context.clusters().control_plane().restart(Component::Etcd).await?;
    let same = |found: &ConfigMap| found.metadata.uid == created.metadata.uid;
    wait::until_present(&objects, "kept", "to be there still", BACK_WITHIN, same).await?;
    objects.create(&PostParams::default(), &config_map("new")).await?;
    Ok(())
}

async fn restarted_cluster_api_serves_its_webhooks_again(context: Arc<TestContext>) -> TestResult {
    context.clusters().control_plane().restart(Component::ClusterApi).await?;
    // Its mutating webhook fails closed: if it were down, the Cluster would be refused.
    crate::cluster_api::machine::cluster(&context).await?;
    Ok(())
}

async fn client_through(context: &TestContext, server: &str) -> anyhow::Result<Client> {
    let text = std::fs::read_to_string(context.management().kubeconfig())?;
    Ok(kubeconfig::client(&text.replace(context.management().server(), server), "5spot-e2e").await?)
}

fn config_maps(context: &TestContext, client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), context.namespace())
}

fn config_map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    }
}

async fn read(context: &TestContext, client: &Client) -> kube::Result<()> {
    config_maps(context, client).get_opt("anything").await.map(drop)
}
