//! The recording of the first contact with one object and of the opening of its window.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_api::{Phase, ScheduledMachine, names};
use five_spot_testenv::wait;
use kube::Api;

use super::objects::{self, Window};
use super::recorder::Recorder;
use super::replay::Template;
use super::site::{Site, minute_after};

/// The namespace of the recorded object.
const NAMESPACE: &str = "recorded";

/// The number of the recorded object.
const NUMBER: usize = 999_999;

/// The time that the controller needs for the first contact with one object, at most.
const CONTACT: Duration = Duration::from_secs(8);

/// The time after the last write in which there could be another.
const SETTLED: Duration = Duration::from_secs(3);

/// For a machine that has much else to do.
const WITHIN: Duration = Duration::from_mins(3);

/// The requests of one object.
pub(super) struct Recording {
    pub(super) contact: Template,
    pub(super) opening: Template,
}

impl Recording {
    /// Lets the controller lend one machine by way of a server that records its requests.
    pub(super) async fn make(site: &Site) -> anyhow::Result<Self> {
        site.namespace(NAMESPACE).await?;
        let recorder = Recorder::start(site.identity().client("5spot-recorder").await?).await?;
        let (program, _) = site.controller_with(&recorder.kubeconfig(), NAMESPACE).await?;
        let name = objects::name(NUMBER);
        let words = [name.as_str(), names::label::MACHINE_CLAIM];
        recorder.take(&words);
        let window = Window::OpensAt(minute_after(CONTACT)?);
        site.create(NAMESPACE, NUMBER..NUMBER + 1, &window).await?;
        let object = until_phase(site, &name, Phase::Inactive).await?;
        let uid = object.metadata.uid.context("a UID")?;
        tokio::time::sleep(SETTLED).await;
        let contact = Template::new(recorder.take(&words), NAMESPACE, NUMBER, uid.clone());
        until_phase(site, &name, Phase::Active).await?;
        tokio::time::sleep(SETTLED).await;
        let opening = Template::new(recorder.take(&words), NAMESPACE, NUMBER, uid);
        program.stop().await?;
        ensure!(
            contact.succeeded() && opening.succeeded() && opening.creations() > 3,
            "{:?} {:?}",
            contact.describe(),
            opening.describe()
        );
        ensure!(contact.len() > 1 && opening.len() > 5, "{:?} {:?}", contact.describe(), opening.describe());
        Ok(Self { contact, opening })
    }
}

async fn until_phase(site: &Site, name: &str, phase: Phase) -> anyhow::Result<ScheduledMachine> {
    let api: Api<ScheduledMachine> = Api::namespaced(site.admin(), NAMESPACE);
    let is_there = |object: &ScheduledMachine| {
        let has_finalizer = object.metadata.finalizers.as_ref().is_some_and(|names| !names.is_empty());
        has_finalizer && object.status.as_ref().is_some_and(|status| status.phase == Some(phase))
    };
    Ok(wait::until_present(&api, name, "its phase", WITHIN, is_there).await?)
}
