//! Claims on physical machines: Leases that this object creates, takes over and deletes.

use crate::cache::claim_watch::{note_accepted, note_refused, notify_objects};
use crate::execute::job::{Confirmation, Job};
use crate::execute::outcome::{Acted, ActionOutcome, SkipReason, Unfinished};
use crate::transport::error::{CallError, explain, is_absent, or_absent};
use crate::transport::operation::{Operation, TargetKind, Verb};
use crate::view::confirm::Template;
use five_spot_api::names::{FIELD_MANAGER, annotation, label};
use five_spot_core::MachineIdentity;
use five_spot_core::world::ResourceVersion;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::response::reason;
use serde_json::{Value, json};

impl Job<'_> {
    /// Claims a machine: creates its Lease, or takes over the one of this version. Another object that was faster is a
    /// conflict, after which everything is read and decided again.
    pub(super) async fn claim(
        &self,
        template: &Template,
        machine: MachineIdentity,
        replaces: Option<&ResourceVersion>,
    ) -> Acted {
        let api = self.leases();
        let wanted = self.lease(template, machine, replaces);
        let (verb, answer) = if replaces.is_none() {
            match serde_json::from_value::<Lease>(wanted) {
                Ok(lease) => (Verb::Create, api.create(&PostParams::default(), &lease).await),
                Err(error) => (Verb::Create, Err(kube::Error::SerdeError(error))),
            }
        } else {
            let parameters = PatchParams::apply(FIELD_MANAGER);
            (Verb::TakeOver, api.patch(&machine.lease(), &parameters, &Patch::Merge(wanted)).await)
        };
        match answer {
            Ok(lease) => {
                self.caches.claims.put(&lease);
                self.note_claimed();
                note_accepted(self.caches);
                notify_objects(self.caches, machine, Some(self.key));
                Ok(ActionOutcome::Done)
            }
            // Someone deleted the Lease that was to be taken over.
            Err(error) if replaces.is_some() && is_absent(&error) => {
                self.caches.claims.remove(machine, self.caches.now());
                notify_objects(self.caches, machine, Some(self.key));
                Err(SkipReason::ObjectGone.into())
            }
            Err(error) => {
                if matches!(&error, kube::Error::Api(status) if status.reason == reason::ALREADY_EXISTS) {
                    self.caches.claims.note_existence(machine);
                }
                let unfinished = self.refused(verb, machine, error);
                if matches!(unfinished, Unfinished::Skipped(_)) {
                    self.note_claimed();
                }
                Err(unfinished)
            }
        }
    }

    /// Releases a machine: deletes its Lease, if that is still the one of this version.
    pub(super) async fn release(
        &self,
        _: Confirmation,
        machine: MachineIdentity,
        version: &ResourceVersion,
    ) -> Acted {
        let parameters = DeleteParams {
            preconditions: Some(Preconditions {
                uid: None,
                resource_version: Some(version.as_str().to_owned()),
            }),
            ..DeleteParams::default()
        };
        or_absent(self.leases().delete(&machine.lease(), &parameters).await)
            .map_err(|error| self.refused(Verb::Delete, machine, error))?;
        self.caches.claims.remove(machine, self.caches.now());
        note_accepted(self.caches);
        notify_objects(self.caches, machine, Some(self.key));
        Ok(ActionOutcome::Done)
    }

    /// Without the permission for Leases, or without their namespace, machines are lent without claims.
    fn refused(&self, verb: Verb, machine: MachineIdentity, error: kube::Error) -> Unfinished {
        let error = CallError::new(self.on_lease(verb, machine), error);
        let is_forbidden = error.code() == Some(403) || is_absent(&error.source);
        if !is_forbidden || error.is_refused_by_lease_policy() {
            return error.into();
        }
        note_refused(self.caches, self.key);
        tracing::warn!(
            lease = machine.lease(),
            lease_namespace = self.caches.claims.namespace(),
            error = explain(&error.source),
            "the controller may not use Leases, so nothing prevents a machine from being lent twice; grant \
             them as in deploy/rbac/machine-claims.yaml"
        );
        SkipReason::Unprotected.into()
    }

    fn lease(
        &self,
        template: &Template,
        machine: MachineIdentity,
        replaces: Option<&ResourceVersion>,
    ) -> Value {
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": machine.lease(),
                "namespace": self.caches.claims.namespace(),
                "resourceVersion": replaces.map(ResourceVersion::as_str),
                "labels": {label::MACHINE_CLAIM: "true"},
                "annotations": {
                    annotation::MACHINE_IDENTITY: template.machine_identity().unwrap_or_default(),
                    annotation::HOLDER_UID: self.uid(),
                },
            },
            "spec": {
                "holderIdentity": self.key.to_string(),
                "acquireTime": MicroTime(self.caches.now()),
            },
        })
    }

    pub(super) fn on_lease(&self, verb: Verb, machine: MachineIdentity) -> Operation {
        Operation::new(verb, TargetKind::Lease, self.caches.claims.lease(machine))
    }

    fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.caches.client.clone(), self.caches.claims.namespace())
    }
}
