//! Oracles: conditions that hold after every scenario.

use crate::claims;
use crate::environment::{Environment, Write};
use crate::history::{ObjectCount, ObjectHistory};
use crate::kinds::{BOOTSTRAP, INFRASTRUCTURE, LAB_SUPPLY, MACHINE, NODE, SCHEDULED_MACHINE};
use crate::scenario::Ending;
use crate::subject::condition;
use anyhow::{bail, ensure};
use five_spot_api::names::{self, label};
use serde_json::Value;

/// Waits until the controller stops writing, and then checks that this does not change.
pub(crate) async fn silence(env: &dyn Environment) -> anyhow::Result<()> {
    let pace = env.pace();
    let deadline = tokio::time::Instant::now() + pace.wait_limit;
    let mut before = env.writes()?.len();
    loop {
        tokio::time::sleep(pace.settled_after).await;
        let now = env.writes()?.len();
        if now == before {
            break;
        }
        ensure!(
            tokio::time::Instant::now() < deadline,
            "the controller does not come to rest:\n{}",
            list_writes(&env.writes()?)
        );
        before = now;
    }
    tokio::time::sleep(pace.quiet).await;
    let writes = env.writes()?;
    let late = writes.get(before..).unwrap_or_default();
    ensure!(late.is_empty(), "the controller wrote when nothing had changed:\n{}", list_writes(late));
    Ok(())
}

/// Writes, one a line.
pub(crate) fn list_writes(writes: &[Write]) -> String {
    let lines: Vec<String> = writes.iter().map(|write| format!("  {write}")).collect();
    lines.join("\n")
}

/// The object is in its expected phase, and the expected number of Machines was created and removed.
pub(crate) async fn ending(
    env: &dyn Environment,
    ending: &Ending,
    history: &ObjectHistory,
) -> anyhow::Result<()> {
    let object = env.get(SCHEDULED_MACHINE, &ending.object).await?;
    match ending.phase {
        None => ensure!(object.is_null(), "the object should be gone: {object}"),
        Some(phase) => {
            ensure!(object["status"]["phase"] == phase, "the phase should be {phase}: {object}");
        }
    }
    let machine = format!("{} {}", MACHINE.kind, names::machine(&ending.object));
    let count = history.counts().get(&machine).copied().unwrap_or_default();
    let expected = ObjectCount { made: ending.made, removed: ending.removed };
    ensure!(count == expected, "{machine} came and went {count:?} instead of {expected:?}");
    let doubled = history.doubled();
    ensure!(doubled.is_empty() || ending.doubled, "one machine was lent twice: {}", doubled.join("\n"));
    let violations = history.violations();
    ensure!(violations.is_empty(), "{}", violations.join("\n"));
    Ok(())
}

/// There are as many Machines as there should be, no orphans, and no Nodes without a machine.
pub(crate) async fn leftovers(env: &dyn Environment, ending: &Ending) -> anyhow::Result<()> {
    let mut ours = 0;
    for object in env.list(MACHINE).await? {
        ours += usize::from(object["metadata"]["labels"][label::SCHEDULED_MACHINE].is_string());
    }
    let expected = ending.made - ending.removed;
    ensure!(ours == expected, "there are {ours} Machines of ours instead of {expected}");
    for node in env.list(NODE).await? {
        let name = node["metadata"]["name"].as_str().unwrap_or_default();
        if name.starts_with(env.namespace()) && expected == 0 && !ending.without_cluster {
            bail!("Node {name} was left behind: {node}");
        }
    }
    if ending.orphaned {
        return Ok(());
    }
    claims(env, ending).await?;
    orphans(env).await
}

/// No Node is left behind by a Machine that is gone.
pub(crate) async fn nodes(env: &dyn Environment) -> anyhow::Result<()> {
    let machines = env.list(MACHINE).await?;
    for node in env.list(NODE).await? {
        let name = node["metadata"]["name"].as_str().unwrap_or_default();
        let is_of = |machine: &Value| machine["status"]["nodeRef"]["name"] == name;
        let has_machine = !name.starts_with(env.namespace()) || machines.iter().any(is_of);
        ensure!(has_machine, "Node {name} was left behind: {node}");
    }
    Ok(())
}

/// No claim is left on a machine that was returned, and every lent machine is claimed.
pub(crate) async fn claims(env: &dyn Environment, ending: &Ending) -> anyhow::Result<()> {
    let (machines, claims) = (env.list(MACHINE).await?, claims::claims(env).await?);
    let is_excused = |name: &str| ending.leaves_claim && name == ending.object;
    let has_machine = |name: &str| {
        is_excused(name)
            || machines.iter().any(|one| one["metadata"]["name"] == names::machine(name).as_str())
    };
    claims::none_is_left_over(&claims, env.namespace(), has_machine)?;
    for object in env.list(SCHEDULED_MACHINE).await? {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let is_remote = object["spec"]["infrastructureSpec"]["spec"]["address"].is_string()
            && object["spec"]["infrastructureSpec"]["kind"] == INFRASTRUCTURE.kind;
        let holder = format!("{}/{name}", env.namespace());
        let is_claimed = claims.iter().any(|lease| lease["spec"]["holderIdentity"] == holder.as_str());
        let is_lent = object["status"]["phase"] == "Active";
        ensure!(!is_lent || !is_remote || is_claimed, "{holder} is lent without a claim: {claims:?}");
    }
    Ok(())
}

/// Nothing is left of an object that is gone, and everything refers to the object that it was made for.
pub(crate) async fn orphans(env: &dyn Environment) -> anyhow::Result<()> {
    let owners = env.list(SCHEDULED_MACHINE).await?;
    for kind in [MACHINE, BOOTSTRAP, INFRASTRUCTURE] {
        for object in env.list(kind).await? {
            let Some(owner) = object["metadata"]["labels"][label::SCHEDULED_MACHINE].as_str() else {
                continue;
            };
            let Some(owner) = owners.iter().find(|one| one["metadata"]["name"] == owner) else {
                bail!("{} {} is an orphan: {object}", kind.kind, object["metadata"]["name"]);
            };
            let references = object["metadata"]["ownerReferences"].as_array();
            let refers =
                references.is_some_and(|all| all.iter().any(|one| one["uid"] == owner["metadata"]["uid"]));
            ensure!(
                refers,
                "{} does not refer to its owner {}: {object}",
                kind.kind,
                owner["metadata"]["uid"]
            );
        }
    }
    Ok(())
}

/// Checks that the status is true.
pub(crate) async fn status(env: &dyn Environment) -> anyhow::Result<()> {
    for object in env.list(SCHEDULED_MACHINE).await? {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let status = &object["status"];
        ensure!(
            status["observedGeneration"] == object["metadata"]["generation"],
            "status speaks of another generation: {object}"
        );
        refers(env, &object, "machineRef", MACHINE, &names::machine(name)).await?;
        if status["bootstrapRef"]["kind"] != LAB_SUPPLY.kind {
            refers(env, &object, "bootstrapRef", BOOTSTRAP, &names::bootstrap(name)).await?;
        }
        if status["infrastructureRef"]["kind"] == INFRASTRUCTURE.kind {
            refers(env, &object, "infrastructureRef", INFRASTRUCTURE, &names::infrastructure(name)).await?;
        }
        if let Some(node) = status["nodeRef"]["name"].as_str() {
            let found = env.get(NODE, node).await?;
            ensure!(
                found["metadata"]["uid"] == status["nodeRef"]["uid"],
                "nodeRef of {object} means {found}"
            );
        }
        let machine = env.get(MACHINE, &names::machine(name)).await?;
        let has_machine =
            machine["metadata"]["labels"][label::SCHEDULED_MACHINE] == name && !machine.is_null();
        let ready = condition(&object, "Ready")["status"] == "True";
        let (machine_fits, ready_fits) = match status["phase"].as_str() {
            Some("Active") => {
                (has_machine, ready == (condition(&object, "MachineReady")["status"] == "True"))
            }
            Some("Inactive" | "Disabled" | "Terminated") => (!has_machine, ready),
            // It is on its way, or needs someone.
            Some(_) | None => (true, !ready),
        };
        ensure!(machine_fits, "the phase does not fit the Machine: {object}\n{machine}");
        ensure!(ready_fits, "the phase does not fit the condition Ready: {object}");
    }
    Ok(())
}

/// A reference in the status refers to the existing object of that name, and is absent if there is none.
async fn refers(
    env: &dyn Environment,
    object: &Value,
    field: &str,
    kind: crate::kinds::ObjectKind,
    name: &str,
) -> anyhow::Result<()> {
    let reference = &object["status"][field];
    let found = env.get(kind, name).await?;
    if found["metadata"]["labels"][label::SCHEDULED_MACHINE].is_null() {
        // It does not exist, or belongs to someone else.
        ensure!(reference["uid"].is_null(), "{field} of {object} means nothing that is ours: {found}");
        return Ok(());
    }
    ensure!(
        reference["name"] == name && reference["uid"] == found["metadata"]["uid"],
        "{field} of {object} does not mean {found}"
    );
    Ok(())
}
