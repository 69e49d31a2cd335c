//! The number of this instance, and of all instances.

use super::Args;
use crate::leader::{BootClock, LeaseTiming};
use crate::shards::{self, InstanceTiming, ShardSettings};
use clap::CommandFactory;
use clap::error::ErrorKind;
use five_spot_core::shard::Shard;
use std::sync::Arc;

/// The number of an instance that is refused.
#[derive(Debug, thiserror::Error)]
#[error(
    "it must be the number of an instance, from 0 on, or the name of a StatefulSet's pod that ends with it, as in \
     5spot-controller-2"
)]
pub struct InstanceIdError;

/// The number of an instance, by itself or at the end of the name of a pod.
pub fn id(text: &str) -> Result<u32, InstanceIdError> {
    let number = match text.rsplit_once('-') {
        Some((name, number)) if super::values::object_name(name).is_ok() => number,
        Some(_) => return Err(InstanceIdError),
        None => text,
    };
    let is_plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse().ok().filter(|_| is_plain).ok_or(InstanceIdError)
}

/// This instance. Refused if there is no such instance.
pub(super) fn shard(args: &Args) -> Result<Shard, clap::Error> {
    Shard::new(args.instance_id, args.instance_count).ok_or_else(|| {
        let message = format!(
            "invalid value '{}' for '--instance-id': it must be below '--instance-count', which is {}; instances are \
             numbered from 0",
            args.instance_id, args.instance_count
        );
        Args::command().error(ErrorKind::InvalidValue, message)
    })
}

/// The settings of this instance.
pub(super) fn settings(
    args: &Args,
    shard: Shard,
    timing: LeaseTiming,
    identity: String,
    pod_uid: Option<String>,
) -> ShardSettings {
    let is_alone = shard == Shard::ONLY && !args.enable_leader_election;
    ShardSettings {
        shard,
        lease_name: args.lease_name.clone(),
        namespace: args.lease_namespace.clone(),
        identity,
        process: if pod_uid.is_some() { None } else { shards::process_identity() },
        pod_uid,
        timing: if is_alone { InstanceTiming::alone(timing) } else { InstanceTiming::shared(timing) },
        clock: Arc::new(BootClock),
    }
}

/// The name of the Lease that the leader of a shard is elected with.
pub(super) fn election_lease(lease_name: &str, shard: Shard) -> String {
    if shard.count() == 1 { lease_name.to_owned() } else { format!("{lease_name}-{}", shard.id()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_a_number_or_the_pod_of_a_stateful_set() {
        for (text, expected) in [("0", 0), ("2", 2), ("12", 12), ("5spot-controller-2", 2), ("a-0", 0)] {
            assert_eq!(id(text).ok(), Some(expected), "{text}");
        }
        for text in
            ["", "-", "-1", "+1", "1.5", "one", "5spot-controller", "a-b-", "A-1", "99999999999", " 1"]
        {
            assert!(id(text).is_err(), "{text}");
        }
    }

    #[test]
    fn each_shard_has_an_election_of_its_own() {
        assert_eq!(election_lease("5spot-leader", Shard::ONLY), "5spot-leader");
        assert_eq!(election_lease("5spot-leader", Shard::new(2, 3).expect("a shard")), "5spot-leader-2");
    }
}
