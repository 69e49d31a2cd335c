//! A leader that ends: another one takes over and continues with the same objects.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_api::{Phase, ScheduledMachine};
use five_spot_testenv::capi_cluster::ControlPlaneOwner;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::proxy::Line;
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::{manifests, tests, wait};
use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;

use super::oracle::Writes;
use super::replicas::{LEASE_SECONDS, Replicas};
use super::{LEASE, late};
use crate::permissions::deploy;
use crate::scenarios::{controller_identity, node_identity};
use crate::startup::machine;

pub(crate) fn tests() -> Vec<Test> {
    // Alone: the fence applies to the account that controllers of other tests use too.
    tests![
        #[alone]
        replicas_take_over_and_never_write_beside_each_other
    ]
    .into_iter()
    .map(|test| test.within(Duration::from_mins(8)))
    .collect()
}

const WITHIN: Duration = Duration::from_mins(2);

/// The replicas of this test.
const REPLICAS: usize = 3;

async fn replicas_take_over_and_never_write_beside_each_other(context: Arc<TestContext>) -> TestResult {
    let identity = controller_identity(&context).await?;
    let mut applier = manifests::Applier::new(context.management().admin());
    for file in ["ha/rbac.yaml", "ha/fence.yaml"] {
        applier.apply_all(&manifests::read(&deploy(file))?, SYSTEM_NAMESPACE).await?;
    }
    let mut test = TakeoverTest { context: Arc::clone(&context), objects: Vec::new(), resumed: None };
    let outcome = match Replicas::start(Arc::clone(&context), &identity, REPLICAS).await {
        Ok(replicas) => test.perform(replicas).await,
        Err(error) => Err(error),
    };
    // The fence must be removed in any case: other tests use the same account without a pod.
    remove_fence(&context).await?;
    outcome?;
    Replicas::delete_pods(&context, REPLICAS).await
}

struct TakeoverTest {
    context: Arc<TestContext>,
    objects: Vec<String>,
    /// The pod that was suspended, and the time at which it went on.
    resumed: Option<(String, Timestamp)>,
}

impl TakeoverTest {
    async fn perform(&mut self, mut replicas: Replicas) -> anyhow::Result<()> {
        self.context.capi_cluster("edge", ControlPlaneOwner::External).await?;
        replicas.leader().await?;
        self.lend("first").await?;

        let leader = replicas.leader().await?;
        let since = Timestamp::now();
        replicas.kill(leader).await;
        let next = replicas.other_leader(leader).await?;
        report("SIGKILL", &replicas, next, since).await?;
        self.lend("after-kill").await?;
        replicas.start_one(leader).await?;

        let leader = replicas.leader().await?;
        let since = Timestamp::now();
        replicas.program(leader)?.freeze().await;
        let next = replicas.other_leader(leader).await?;
        report("SIGSTOP", &replicas, next, since).await?;
        self.lend("while-stopped").await?;
        let former = &replicas.all[leader].identity;
        late::all_are_refused(former, self.context.namespace(), "while-stopped").await?;
        self.resumed = Some((replicas.all[leader].pod.clone(), Timestamp::now()));
        replicas.program(leader)?.thaw();
        replicas.program(leader)?.logged("Lost the Lease").await?;

        for (what, line) in [("cut", Line::Cut), ("hung", Line::Hung)] {
            let leader = replicas.leader().await?;
            let since = Timestamp::now();
            replicas.set_line(leader, line);
            let next = replicas.other_leader(leader).await?;
            report(what, &replicas, next, since).await?;
            self.lend(&format!("while-{what}")).await?;
            replicas.set_line(leader, Line::Open);
            replicas.program(leader)?.is_ready().await?;
        }

        let leader = replicas.leader().await?;
        let since = Timestamp::now();
        replicas.terminate(leader).await?;
        let next = replicas.other_leader(leader).await?;
        report("SIGTERM", &replicas, next, since).await?;
        self.lend("after-term").await?;
        replicas.start_one(leader).await?;

        let leases: Api<Lease> = Api::namespaced(self.context.management().admin(), SYSTEM_NAMESPACE);
        let holder =
            leases.get(LEASE).await?.spec.and_then(|spec| spec.holder_identity).context("a holder")?;
        let leader = replicas.leader().await?;
        anyhow::ensure!(holder.starts_with(&format!("{}_", replicas.all[leader].pod)), "{holder}");
        replicas.end().await?;
        late::others_write_without_a_lease(&self.context).await?;
        let writes = Writes::read(&self.context)?;
        println!("{writes}");
        writes.never_overlap()?;
        let (pod, since) = self.resumed.as_ref().context("a leader was suspended")?;
        writes.sent_nothing_before_its_next_term(pod, *since)?;
        writes.made_one_machine_each(&self.objects)
    }

    /// A machine that is wanted now and exists.
    async fn lend(&mut self, name: &str) -> anyhow::Result<()> {
        let (admin, namespace) = (self.context.management().admin(), self.context.namespace());
        let nodes = node_identity(&self.context, namespace).await?;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "edge-nodes"},
            "stringData": {"value": nodes.kubeconfig(None)},
        });
        let mut object = machine(name);
        object["metadata"]["namespace"] = namespace.into();
        object["spec"]["kubeconfigSecretRef"] = json!({"name": "edge-nodes"});
        object["spec"]["infrastructureSpec"]["spec"] = json!({"address": self.context.address()});
        manifests::Applier::new(admin.clone()).apply_all(&[secret, object], namespace).await?;
        self.objects.push(name.to_owned());
        let objects: Api<ScheduledMachine> = Api::namespaced(admin, namespace);
        let is_lent = |object: &ScheduledMachine| {
            let status = object.status.as_ref();
            status.is_some_and(|status| status.phase == Some(Phase::Active) && status.node_ref.is_some())
        };
        wait::until_present(&objects, name, "to have its machine", WITHIN, is_lent).await?;
        Ok(())
    }
}

async fn report(what: &str, replicas: &Replicas, next: usize, since: Timestamp) -> anyhow::Result<()> {
    let took = replicas.first_reconcile(next, since).await?;
    println!(
        "{what}: first reconcile of {} after {:.2} s, with a Lease of {LEASE_SECONDS} s",
        replicas.all[next].pod,
        took.as_secs_f64()
    );
    Ok(())
}

async fn remove_fence(context: &TestContext) -> anyhow::Result<()> {
    let (admin, parameters) = (context.management().admin(), DeleteParams::default());
    Api::<ValidatingAdmissionPolicyBinding>::all(admin.clone()).delete("5spot-fence", &parameters).await?;
    Api::<ValidatingAdmissionPolicy>::all(admin).delete("5spot-fence", &parameters).await?;
    Ok(())
}
