//! Live reads of the claim on the physical machine.

use crate::cache::caches::{Caches, machine_key};
use crate::cache::claim_watch::notify_objects;
use crate::cache::write_back::{put_machine, put_object};
use crate::transport::core_kinds::Lease;
use crate::transport::error::{CallError, or_absent};
use crate::transport::key::ObjectKey;
use crate::transport::kinds::{capi_resource, our_resource};
use crate::transport::operation::{Operation, TargetKind, Verb};
use five_spot_core::MachineIdentity;
use five_spot_core::claim::{Claim, MachineClaims};
use kube::Api;
use std::sync::Arc;

/// The occasion of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occasion {
    /// A decision needs confirmed facts.
    Confirm,
    /// A write failed because something has changed.
    Conflict,
}

/// Reads the claim on a machine, and whoever holds it if that object seems to be gone. A claim that seems to be free is not
/// read first: the API server creates one Lease of a name and no second. Nor is that of an object that has its Machine: it
/// creates nothing.
pub(super) async fn confirm_claim(
    caches: &Arc<Caches>,
    key: &ObjectKey,
    machine: Option<MachineIdentity>,
    claims: &MachineClaims,
    occasion: Occasion,
) -> Result<(), CallError> {
    let Some(machine) = machine else { return Ok(()) };
    let has_machine = caches.machines.has(&machine_key(key));
    let is_read = match &claims.current {
        Claim::Abandoned(_) => true,
        Claim::Held(_) | Claim::Taken { .. } => !has_machine || occasion == Occasion::Conflict,
        Claim::Free { .. } => occasion == Occasion::Conflict,
        Claim::NotNeeded | Claim::Unprotected | Claim::Unknown => false,
    };
    if !is_read {
        return Ok(());
    }
    let name = caches.claims.lease(machine);
    let api: Api<Lease> = Api::namespaced(caches.client.clone(), &name.namespace);
    let version = || caches.claims.get(machine).map(|claim| claim.version);
    let known = version();
    match or_absent(api.get(&name.name).await) {
        Ok(Some(lease)) => {
            if caches.claims.put(&lease) {
                notify_objects(caches, machine, Some(key));
            }
        }
        // A Lease that the watch has reported meanwhile was created after this read.
        Ok(None) if version() != known => {}
        Ok(None) => {
            caches.claims.remove(machine, caches.now());
            if known.is_some() {
                // Its watch reports nothing that is gone from the store already.
                notify_objects(caches, machine, Some(key));
            }
        }
        Err(error) => {
            return Err(CallError::new(Operation::new(Verb::Get, TargetKind::Lease, name), error));
        }
    }
    let holder = caches.claims.get(machine).and_then(|item| item.view.holder);
    match (&claims.current, holder) {
        (Claim::Abandoned(_), Some(holder)) => read_holder(caches, &holder).await,
        (_, _) => Ok(()),
    }
}

/// Reads the object that holds a claim and its Machine. If one of them exists, the claim is not abandoned.
async fn read_holder(caches: &Arc<Caches>, holder: &ObjectKey) -> Result<(), CallError> {
    let failed = |kind: TargetKind, object: &ObjectKey| {
        let operation = Operation::new(Verb::Get, kind, object.clone());
        move |error| CallError::new(operation, error)
    };
    let api = caches.api(&holder.namespace, &our_resource());
    let found =
        or_absent(api.get(&holder.name).await).map_err(failed(TargetKind::ScheduledMachine, holder))?;
    if let Some(object) = found {
        put_object(caches, &object);
    }
    let Some(version) = caches.capi() else { return Ok(()) };
    let name = machine_key(holder);
    let api = caches.api(&holder.namespace, &capi_resource(version, "Machine", "machines"));
    let found =
        or_absent(api.get(&name.name).await).map_err(failed(TargetKind::cluster_api("Machine"), &name))?;
    if let Some(machine) = found {
        put_machine(caches, &machine);
    }
    Ok(())
}
