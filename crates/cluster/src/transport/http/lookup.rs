//! Look-ups of host names: a few at a time for each namespace, and for all namespaces together.
//!
//! The resolver of the system blocks a thread, for a minute if nobody answers for a name, and cannot be interrupted. The
//! threads are shared with everything else that blocks, health checks included, and a tenant can name any number of
//! hosts.

use super::limits::{LOOKUPS, NAMESPACE_LOOKUPS};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

/// Finds the addresses of a host. It may block.
pub(super) type Resolve = Arc<dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync>;

/// The look-ups that are permitted at the same time.
#[derive(Clone)]
pub(super) struct DnsLookups {
    resolve: Resolve,
    /// A look-up needs a permit from each, the limit of the namespace first: whoever waits for it has none of the others.
    permits: Vec<Arc<Semaphore>>,
}

impl DnsLookups {
    /// Any number of look-ups by the resolver of the system: for the management cluster, which is trusted.
    pub(super) fn unlimited() -> Self {
        Self {
            resolve: Arc::new(|host, port| Ok((host, port).to_socket_addrs()?.collect())),
            permits: Vec::new(),
        }
    }

    /// Look-ups for all namespaces together.
    pub(super) fn for_all() -> Self {
        Self { permits: vec![Arc::new(Semaphore::new(LOOKUPS))], ..Self::unlimited() }
    }

    /// Those of one more namespace, which are counted among these.
    pub(super) fn for_namespace(&self) -> Self {
        let own = Arc::new(Semaphore::new(NAMESPACE_LOOKUPS));
        let permits = [own].into_iter().chain(self.permits.iter().cloned()).collect();
        Self { resolve: self.resolve.clone(), permits }
    }

    /// The addresses of a host. The caller sets the deadline; a look-up that was given up counts until it ends.
    pub(super) async fn find(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let mut permits: Vec<OwnedSemaphorePermit> = Vec::with_capacity(self.permits.len());
        for permit in &self.permits {
            permits.push(permit.clone().acquire_owned().await.map_err(io::Error::other)?);
        }
        let (resolve, host) = (self.resolve.clone(), host.to_owned());
        let looking = spawn_blocking(move || {
            let found = resolve(&host, port);
            drop(permits);
            found
        });
        looking.await.map_err(io::Error::other)?
    }
}

impl fmt::Debug for DnsLookups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DnsLookups").field("permits", &self.permits).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::mpsc;
    use std::time::Duration;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
    use tokio::time::timeout;

    /// A resolver that never answers for some hosts.
    struct Stuck {
        lookups: DnsLookups,
        /// The hosts for which it was asked, and has not answered.
        asked: UnboundedReceiver<String>,
        /// Ends all look-ups when it is dropped.
        end: mpsc::Sender<()>,
    }

    const NEVER: &str = "never-";

    fn stuck() -> Stuck {
        let (ask, asked) = unbounded_channel();
        let (end, ended) = mpsc::channel::<()>();
        // Each waits for its turn to wait: the first to be woken by the end lets the next one in.
        let ended = Mutex::new(ended);
        let resolve: Resolve = Arc::new(move |host, port| {
            if host.starts_with(NEVER) {
                let _ = ask.send(host.to_owned());
                let _ = ended.lock().expect("no panic").recv();
                return Err(io::ErrorKind::NotFound.into());
            }
            Ok(vec![SocketAddr::new([192, 0, 2, 1].into(), port)])
        });
        Stuck { lookups: DnsLookups { resolve, ..DnsLookups::for_all() }, asked, end }
    }

    /// A runtime with hardly more threads for blocking work than all look-ups may take.
    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(NAMESPACE_LOOKUPS + 1)
            .build()
            .expect("a runtime")
    }

    #[test]
    fn names_that_never_resolve_delay_no_other_namespace() {
        let mut stuck = stuck();
        let (greedy, other) = (stuck.lookups.for_namespace(), stuck.lookups.for_namespace());
        runtime().block_on(async {
            let mut waiting = Vec::new();
            for number in 0..100 {
                let greedy = greedy.clone();
                waiting
                    .push(tokio::spawn(async move { greedy.find(&format!("{NEVER}{number}"), 443).await }));
            }
            for _ in 0..NAMESPACE_LOOKUPS {
                stuck.asked.recv().await.expect("a look-up");
            }
            let looking = timeout(Duration::from_secs(30), other.find("cluster.example.com", 443));
            let found = looking.await.expect("it does not wait for others").expect("an address");
            assert_eq!(found, ["192.0.2.1:443".parse().expect("an address")]);
            spawn_blocking(|| {}).await.expect("other blocking work goes on");
            assert!(stuck.asked.try_recv().is_err(), "no more look-ups of one namespace than permitted");
            drop(stuck.end);
            for look_up in waiting {
                assert!(look_up.await.expect("no panic").is_err());
            }
        });
    }

    #[test]
    fn a_look_up_that_was_given_up_counts_until_it_ends() {
        let mut stuck = stuck();
        let lookups = stuck.lookups.for_namespace();
        runtime().block_on(async {
            for number in 0..NAMESPACE_LOOKUPS {
                let lookups = lookups.clone();
                let look_up =
                    tokio::spawn(async move { lookups.find(&format!("{NEVER}{number}"), 443).await });
                stuck.asked.recv().await.expect("a look-up");
                look_up.abort();
                assert!(look_up.await.expect_err("it is given up").is_cancelled());
            }
            assert_eq!(lookups.permits[0].available_permits(), 0);
            assert_eq!(lookups.permits[1].available_permits(), LOOKUPS - NAMESPACE_LOOKUPS);
            drop(stuck.end);
            lookups.find("cluster.example.com", 443).await.expect("an address, when one has ended");
        });
    }

    #[tokio::test]
    async fn an_address_needs_no_look_up() {
        let none = DnsLookups { permits: vec![Arc::new(Semaphore::new(0))], ..DnsLookups::unlimited() };
        for (host, address) in [("10.0.0.1", "10.0.0.1:6443"), ("fd00::1", "[fd00::1]:6443")] {
            let found = none.find(host, 6443).await.expect("an address");
            assert_eq!(found, [address.parse().expect("an address")]);
        }
    }
}
