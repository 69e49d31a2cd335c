//! The protocol of the instances, without I/O and without its own clock: what an instance does next with its Lease,
//! and which objects it may work on.
//!
//! 1. An instance works only while it holds its own Lease, and after it has read the Leases of all others once since it
//!    acquired its own. Of two instances that start at the same time at least one sees the other.
//! 2. Two instances with different counts can own the same object. The one with the higher count takes precedence
//!    ([`Shard::is_outranked_by`]). The other one stops working on these objects, and then says so in its Lease (*yields*).
//! 3. The one with the higher count waits until every instance that was running before it yields or is gone. Instances
//!    that start later see its Lease before they work.
//! 4. An instance that has yielded takes back its objects only after it has removed the yield from its Lease and has
//!    read the Leases once more.
//! 5. An instance counts as gone when its Lease was released, or was not renewed for its duration by the local clock and a
//!    read of the Leases has confirmed that. Clocks of two instances are never compared.

use super::peer::Peer;
use super::view::{Duty, View};
use super::{InstanceTiming, RELEASED_SECONDS};
use five_spot_cluster::transport::{Announcement, InstanceLease, LeaseRecord};
use five_spot_core::shard::Shard;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The pause between two attempts while the API server refuses access to Leases, the first and the longest: a person has to
/// grant it.
const AFTER_REFUSAL: (Duration, Duration) = (Duration::from_mins(1), Duration::from_mins(5));

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing before this moment, unless a Lease changes.
    Wait(Duration),
    /// Write this, provided that the own Lease is still at this version; create it if there is no version.
    Write(LeaseRecord, Announcement, Option<String>),
    /// Read the Leases of all instances.
    List,
    /// Stop working: this instance no longer holds its Lease.
    Resign(Loss),
}

/// The reason for which an instance has to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// The Lease was not renewed in time.
    Expired,
    /// The Lease names another holder, or none.
    Replaced(String),
    /// This instance no longer leads its shard.
    NotLeader,
}

/// The own Lease as last seen.
#[derive(Clone, Debug)]
struct Own {
    lease: Option<InstanceLease>,
    /// The time by which its holder has to have stopped.
    free_at: Duration,
}

/// The own Lease as held by this instance.
#[derive(Clone, Copy, Debug)]
struct Held {
    valid_until: Duration,
    renew_at: Duration,
}

/// One instance. All times are those of one local clock.
#[derive(Clone, Debug)]
pub(super) struct Member {
    shard: Shard,
    identity: String,
    pod_uid: Option<String>,
    process: Option<String>,
    timing: InstanceTiming,
    /// The holder of the own Lease that is known to have ended without releasing it.
    ended: Option<String>,
    /// True if this instance may hold its Lease: it leads its shard, or there is no election.
    takes_part: bool,
    own: Option<Own>,
    held: Option<Held>,
    try_at: Duration,
    /// The pause after the next refusal.
    after_refusal: Duration,
    peers: BTreeMap<u32, Peer>,
    /// True once the Leases were read since this instance acquired its own.
    is_established: bool,
    /// True if the Leases have to be read again.
    needs_list: bool,
    /// True if others may have started without seeing the Lease of this instance.
    was_invisible: bool,
    /// The holders that were running before this instance, by the number of their Lease.
    incumbents: BTreeMap<u32, String>,
    /// The shards that the stored Lease yields to.
    announced: BTreeSet<Shard>,
    /// The shards that it no longer yields to, until the Leases have been read again.
    unverified: BTreeSet<Shard>,
    /// The shards that take precedence, and the number of the view that first said so.
    blockers: BTreeMap<Shard, u64>,
    /// The number of the latest view under which all other work has stopped.
    stopped: u64,
    /// True if Leases are refused and this instance is the only one.
    is_unprotected: bool,
    was_standby: bool,
    terms: u64,
    number: u64,
}

impl Member {
    pub(super) fn new(
        shard: Shard,
        identity: String,
        (pod_uid, process): (Option<String>, Option<String>),
        timing: InstanceTiming,
        takes_part: bool,
    ) -> Self {
        Self {
            shard,
            identity,
            pod_uid,
            process,
            timing,
            ended: None,
            takes_part,
            own: None,
            held: None,
            try_at: Duration::ZERO,
            after_refusal: AFTER_REFUSAL.0,
            peers: BTreeMap::new(),
            is_established: false,
            needs_list: true,
            was_invisible: true,
            incumbents: BTreeMap::new(),
            announced: BTreeSet::new(),
            unverified: BTreeSet::new(),
            blockers: BTreeMap::new(),
            stopped: 0,
            is_unprotected: false,
            was_standby: false,
            terms: 0,
            number: 0,
        }
    }

    /// The time until which this instance may work, if it holds its Lease.
    pub(super) fn valid_until(&self) -> Option<Duration> {
        self.held.map(|held| held.valid_until)
    }

    /// True if this instance works although Leases are refused.
    pub(super) const fn is_unprotected(&self) -> bool {
        self.is_unprotected
    }

    /// The holder of the own Lease as far as is known; empty if there is none.
    pub(super) fn holder(&self) -> &str {
        let lease = self.own.as_ref().and_then(|own| own.lease.as_ref());
        lease.map_or("", |lease| &lease.stored.record.holder)
    }

    /// The process that the own Lease says its holder is, unless this instance holds it.
    pub(super) fn former_process(&self) -> Option<&str> {
        let lease = self.own.as_ref()?.lease.as_ref().filter(|_| self.held.is_none())?;
        lease.announcement.process.as_deref().filter(|process| self.process.as_deref() != Some(process))
    }

    /// Records that the process that holds the own Lease has ended.
    pub(super) fn holder_ended(&mut self) {
        self.ended = Some(self.holder().to_owned());
    }

    /// The own Lease as last seen.
    #[cfg(test)]
    pub(super) fn own_lease(&self) -> Option<&InstanceLease> {
        self.own.as_ref()?.lease.as_ref()
    }

    /// The live instances whose Lease has another count, or an unreadable one.
    pub(super) fn mismatches(&self) -> Vec<(u32, Option<u32>)> {
        let other = |peer: &&Peer| peer.is_live() && peer.count() != Some(self.shard.count());
        self.peers.values().filter(other).map(|peer| (peer.id(), peer.count())).collect()
    }

    /// Starts or stops taking part.
    pub(super) const fn set_taking_part(&mut self, takes_part: bool) {
        if takes_part && !self.takes_part {
            // It was elected, and nobody works until it does. Access may have been refused while it was on standby.
            self.try_at = Duration::ZERO;
            self.after_refusal = AFTER_REFUSAL.0;
        }
        if self.takes_part && !takes_part {
            // Another replica works, although this one may have worked without a Lease of its own.
            self.is_unprotected = false;
            self.was_standby = true;
        }
        self.takes_part = takes_part;
    }

    /// Records a Lease as the API server reports it. A state that is older than the known one is ignored: a watch may
    /// lag behind a read.
    pub(super) fn observe(&mut self, lease: InstanceLease, now: Duration) {
        if lease.id != self.shard.id() {
            match self.peers.get_mut(&lease.id) {
                Some(peer) => peer.observe(lease, now, self.timing.duration),
                None => drop(self.peers.insert(lease.id, Peer::new(lease, now, self.timing.duration))),
            }
            return;
        }
        let known = self.own.as_ref().and_then(|own| own.lease.as_ref());
        if known.is_some_and(|known| super::peer::is_newer(known, &lease)) {
            return;
        }
        let record = &lease.stored.record;
        let before = self.own.as_ref().map_or(now, |own| own.free_at);
        let free_at = if known.is_some_and(|known| !record.renews(&known.stored.record)) {
            before
        } else if is_released(record) {
            now
        } else {
            // If the Lease was edited by hand, the previous holder may not know yet and works until its time is
            // over.
            before.max(now + super::peer::duration(record, self.timing.duration))
        };
        self.own = Some(Own { lease: Some(lease), free_at });
    }

    /// Records the own Lease as it was read after a conflict. If its version is older than the known one, the storage of the
    /// API server was restored from a backup, and the known one does not exist any more.
    pub(super) fn found(&mut self, lease: InstanceLease, now: Duration) {
        if let Some(own) = &mut self.own
            && own.lease.as_ref().is_some_and(|known| super::peer::is_newer(known, &lease))
        {
            own.lease = None;
        }
        self.observe(lease, now);
    }

    /// Records that the Lease of an instance is gone. Its holder may work until its time is over.
    pub(super) fn absent(&mut self, id: u32, now: Duration) {
        if id == self.shard.id() {
            let free_at = self.own.as_ref().map_or(now, |own| own.free_at);
            self.own = Some(Own { lease: None, free_at });
        } else if let Some(peer) = self.peers.get_mut(&id) {
            peer.deleted();
        }
    }

    /// Records all Leases, as a watch lists them when it starts. They may be stale.
    pub(super) fn relisted(&mut self, leases: Vec<InstanceLease>, now: Duration) {
        let there: BTreeSet<u32> = leases.iter().map(|lease| lease.id).collect();
        for lease in leases {
            self.observe(lease, now);
        }
        for id in self.peers.keys().copied().filter(|id| !there.contains(id)).collect::<Vec<_>>() {
            self.absent(id, now);
        }
    }

    /// Records all Leases as they were read after the last write of this instance.
    pub(super) fn listed(&mut self, leases: Vec<InstanceLease>, now: Duration) {
        let mine = leases.iter().any(|lease| lease.id == self.shard.id());
        self.relisted(leases, now);
        if !mine {
            self.absent(self.shard.id(), now);
        }
        self.peers.retain(|_, peer| {
            peer.confirm(now);
            !peer.is_forgotten()
        });
        self.needs_list = false;
        self.after_refusal = AFTER_REFUSAL.0;
        self.unverified.clear();
        if self.held.is_some() && self.was_invisible {
            self.establish();
        }
    }

    /// Records that this instance knows everything that it needs before it works.
    fn establish(&mut self) {
        let live = self.peers.values().filter(|peer| peer.is_live());
        self.incumbents = live.map(|peer| (peer.id(), peer.holder().to_owned())).collect();
        self.was_invisible = false;
        self.is_unprotected = false;
        self.terms += u64::from(!self.is_established);
        self.is_established = true;
    }

    /// The next step at this moment.
    pub(super) fn step(&mut self, now: Duration, wall: Timestamp) -> Step {
        let Some(own) = &self.own else {
            return if self.try_at <= now { Step::List } else { Step::Wait(self.try_at) };
        };
        let Some(held) = self.held else { return self.step_without_lease(now, wall) };
        let holder = own.lease.as_ref().map(|lease| lease.stored.record.holder.as_str());
        let replaced = holder.filter(|holder| *holder != self.identity).map(str::to_owned);
        let loss = match replaced {
            _ if !self.takes_part => Some(Loss::NotLeader),
            Some(holder) => Some(Loss::Replaced(holder)),
            None => (held.valid_until <= now).then_some(Loss::Expired),
        };
        match loss {
            // It was not renewed because access is refused.
            Some(Loss::Expired) if self.is_unprotected => {
                (self.held, self.is_established) = (None, false);
                return self.step_without_lease(now, wall);
            }
            Some(loss) => {
                self.lose(now);
                return Step::Resign(loss);
            }
            None => {}
        }
        if self.try_at > now {
            return Step::Wait(self.try_at.min(held.valid_until));
        }
        let is_deleted = own.lease.is_none();
        if is_deleted || held.renew_at <= now || self.wanted_yields() != self.stored_yields() {
            return self.write(wall);
        }
        if self.needs_list || self.peers.values().any(|peer| self.concerns(peer) && peer.is_overdue(now)) {
            return Step::List;
        }
        let expiries = self.peers.values().filter(|peer| self.concerns(peer)).filter_map(Peer::expires_at);
        Step::Wait(expiries.fold(held.renew_at.min(held.valid_until), Duration::min).max(now))
    }

    fn step_without_lease(&mut self, now: Duration, wall: Timestamp) -> Step {
        let Some(own) = &self.own else { return Step::List };
        let lease = own.lease.as_ref();
        let same_pod =
            self.pod_uid.is_some() && lease.is_some_and(|lease| lease.announcement.pod_uid == self.pod_uid);
        let holder = lease.map(|lease| lease.stored.record.holder.as_str());
        let same_process = holder == Some(self.identity.as_str());
        let has_ended = holder.is_some() && holder == self.ended.as_deref();
        // The kubelet starts a container of a pod only after the previous one has ended.
        let free_at = if same_pod || same_process || has_ended { now } else { own.free_at };
        if free_at > now {
            self.was_standby = true;
            self.is_unprotected = false;
        }
        let at = free_at.max(self.try_at);
        if !self.takes_part || now < at {
            let until = if self.takes_part { at } else { now + self.timing.renew_every };
            return Step::Wait(until);
        }
        self.write(wall)
    }

    fn lose(&mut self, now: Duration) {
        self.held = None;
        self.is_established = false;
        self.was_standby = true;
        self.incumbents.clear();
        self.try_at = now + self.timing.retry_period;
    }

    fn write(&self, wall: Timestamp) -> Step {
        let lease = self.own.as_ref().and_then(|own| own.lease.as_ref());
        let before = lease.map(|lease| &lease.stored.record);
        let record = LeaseRecord::held_by(&self.identity, self.timing.duration, before, wall);
        let announcement = Announcement {
            count: Some(self.shard.count()),
            yields_to: self.wanted_yields(),
            pod_uid: self.pod_uid.clone(),
            process: self.process.clone(),
        };
        Step::Write(record, announcement, lease.map(|lease| lease.stored.version.clone()))
    }

    /// Records that a write of this instance, sent at `sent`, was accepted.
    pub(super) fn written(&mut self, lease: InstanceLease, sent: Duration) {
        if self.held.is_none() || self.own.as_ref().is_none_or(|own| own.lease.is_none()) {
            // No other instance could see this one before: it has to read the other Leases.
            (self.needs_list, self.was_invisible) = (true, true);
        }
        let withdrawn = self.announced.difference(&lease.announcement.yields_to).copied();
        self.unverified.extend(withdrawn);
        self.needs_list |= !self.unverified.is_empty();
        self.announced.clone_from(&lease.announcement.yields_to);
        self.own = Some(Own { lease: Some(lease), free_at: sent + self.timing.duration });
        self.held = Some(Held {
            valid_until: sent + self.timing.renew_deadline,
            renew_at: sent + self.timing.renew_every,
        });
        self.try_at = sent;
    }

    /// Records that a request failed: the next one follows after the retry period. A failed write may still have
    /// been carried out.
    pub(super) fn failed(&mut self, now: Duration) {
        self.announced.extend(self.wanted_yields());
        self.try_at = now + self.timing.retry_period;
    }

    /// Records that the own Lease was changed by someone else and read again. The next write need not wait.
    pub(super) fn conflicted(&mut self, now: Duration) {
        self.failed(now);
        if self.holder() == self.identity {
            self.try_at = now;
        }
    }

    /// Records that the API server refuses access to Leases. A single instance works without.
    pub(super) fn refused(&mut self, now: Duration) {
        self.announced.extend(self.wanted_yields());
        let is_free = self.own.as_ref().is_none_or(|own| own.free_at <= now);
        let is_own = self.holder().is_empty() || self.holder() == self.identity;
        self.is_unprotected |= self.shard == Shard::ONLY && self.takes_part && (is_own || is_free);
        // Another replica may work, and its Lease cannot be read.
        self.was_standby |= !self.takes_part;
        self.try_at = now + self.after_refusal;
        self.after_refusal = (self.after_refusal * 2).min(AFTER_REFUSAL.1);
    }

    /// Records that all work that the view of this number does not allow has stopped.
    pub(super) fn stopped(&mut self, number: u64) {
        self.stopped = self.stopped.max(number);
    }

    /// The write that releases the Lease, if it names this instance. The Lease has to be observed again before another one.
    pub(super) fn release(&mut self, wall: Timestamp) -> Option<(LeaseRecord, Announcement, String)> {
        self.held = None;
        let lease = self.own.take()?.lease?;
        let record = LeaseRecord {
            holder: String::new(),
            duration_seconds: RELEASED_SECONDS,
            acquired: Some(wall),
            renewed: Some(wall),
            transitions: lease.stored.record.transitions,
        };
        let announcement = Announcement { count: Some(self.shard.count()), ..Announcement::default() };
        let is_mine = lease.stored.record.holder == self.identity;
        is_mine.then_some((record, announcement, lease.stored.version))
    }

    /// The objects that this instance may work on at this moment. Its number changes whenever they do.
    pub(super) fn view(&mut self, last: &View) -> View {
        let live = self.peers.values().filter(|peer| peer.is_live());
        let outranking = live.filter_map(Peer::shard).filter(|shard| self.shard.is_outranked_by(*shard));
        let blockers: BTreeSet<Shard> =
            outranking.chain(self.announced.iter().copied()).chain(self.unverified.iter().copied()).collect();
        let waits_for: BTreeSet<Shard> = blockers.iter().copied().chain(self.awaited()).collect();
        let duty = if self.is_established || self.is_unprotected { Duty::Works } else { Duty::StandsBy };
        let unreadable = |peer: &Peer| peer.is_live() && peer.shard().is_none();
        let view = View {
            shard: self.shard,
            duty,
            waits_for,
            waits_for_all: self.peers.values().any(unreadable),
            term: self.terms,
            was_standby: self.was_standby,
            number: self.number,
        };
        if view != *last {
            self.number += 1;
        }
        let number = self.number;
        self.blockers.retain(|shard, _| blockers.contains(shard));
        for shard in blockers {
            self.blockers.entry(shard).or_insert(number);
        }
        View { number, ..view }
    }

    /// The instances that were running before this one, own some of its objects under their count, and have not
    /// yielded yet.
    fn awaited(&self) -> impl Iterator<Item = Shard> {
        self.peers.values().filter_map(|peer| {
            let was_there = self.incumbents.get(&peer.id()).is_some_and(|holder| holder == peer.holder());
            let shard = peer.shard().filter(|shard| shard.is_outranked_by(self.shard))?;
            (was_there && peer.is_live() && !peer.yields_to(self.shard)).then_some(shard)
        })
    }

    /// True if it matters whether another instance is live.
    fn concerns(&self, peer: &Peer) -> bool {
        peer.shard()
            .is_none_or(|shard| self.shard.is_outranked_by(shard) || shard.is_outranked_by(self.shard))
    }

    fn stored_yields(&self) -> BTreeSet<Shard> {
        let lease = self.own.as_ref().and_then(|own| own.lease.as_ref());
        lease.map(|lease| lease.announcement.yields_to.clone()).unwrap_or_default()
    }

    /// The shards that take precedence, are live, and on whose objects all work has stopped.
    fn wanted_yields(&self) -> BTreeSet<Shard> {
        let live = self.peers.values().filter(|peer| peer.is_live()).filter_map(Peer::shard);
        let has_stopped =
            |shard: &Shard| self.blockers.get(shard).is_some_and(|number| *number <= self.stopped);
        live.filter(|shard| self.shard.is_outranked_by(*shard)).filter(has_stopped).collect()
    }
}

/// True if the holder has released the Lease, which sets this duration. With another duration someone else
/// has cleared the holder, which may still work.
pub(super) fn is_released(record: &LeaseRecord) -> bool {
    record.holder.is_empty() && record.duration_seconds == RELEASED_SECONDS
}
