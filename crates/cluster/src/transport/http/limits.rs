//! All limits on what a cluster may send and on the requests to it, each with its reason.
//!
//! Every cluster goes through the same code. The administrator of a workload cluster is not trusted, and a tenant may
//! point a kubeconfig at any server, so that [`Limits::WORKLOAD`] is as tight as a cluster of 5,000 nodes permits. The
//! management cluster is trusted, and many clients write its objects: [`Limits::MANAGEMENT`] only prevents that a
//! broken proxy fills the memory.

use std::time::Duration;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// The limits on the answers of a cluster and on the requests to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one page of a list.
    pub list_page_bytes: usize,
    /// Bytes of any other answer, watches aside.
    pub answer_bytes: usize,
    /// Bytes between two newlines of a watch: one event.
    pub watch_line_bytes: usize,
    /// JSON values of one object. Parsed, a value of two bytes (`{}`) can take a kilobyte.
    pub values_per_object: usize,
    /// JSON values of a whole page of a list.
    pub values_per_page: usize,
    /// Objects of one page of a list, for a request that names no limit itself.
    pub objects_per_page: usize,
    /// Pages of one list.
    pub pages_per_list: u32,
    /// Bytes that are buffered for the cluster at any moment, over all its connections.
    pub buffered_bytes: usize,
    /// Bytes that are kept of the objects of the cluster, in all stores.
    pub kept_bytes: usize,
    /// Bytes a minute that are read from the watches of the cluster. Beyond that they are read more slowly.
    pub watch_bytes_per_minute: usize,
    /// Requests a minute that are sent to the cluster.
    pub requests_per_minute: u32,
    /// Attempts a minute that may end without an answer, such as refused connections and answers that broke a limit.
    pub failures_per_minute: u32,
}

impl Limits {
    /// For workload clusters.
    pub const WORKLOAD: Self = Self {
        // A page of 500 pods of 64 KB each.
        list_page_bytes: 32 * MIB,
        // No single Node, pod or ConfigMap that we read is nearly as large. etcd takes no object above 1.5
        // MB.
        answer_bytes: MIB,
        // One object, with room for what JSON adds to it.
        watch_line_bytes: 2 * MIB,
        // A Node with 50 images and its managed fields has about 1,000, a pod with ten containers about 1,500.
        values_per_object: 20_000,
        // 500 pods of 800 values each.
        values_per_page: 400_000,
        // The largest page that we request.
        objects_per_page: 500,
        // 20,000 objects at the 50 per page that watches request: four times the Nodes of the largest supported
        // cluster.
        pages_per_list: 400,
        // Two list pages at once, or 32 watch events of the largest kind.
        buffered_bytes: 64 * MIB,
        // 20,000 Nodes of 500 bytes, and as much again for pods and the ConfigMaps of agents.
        kept_bytes: 20 * MIB,
        // The status of 5,000 Nodes every five minutes, at 20 KB each, is 20 MB a minute; a list is a burst on top.
        watch_bytes_per_minute: 128 * MIB,
        // 10,000 machines that join within a minute cost three requests each.
        requests_per_minute: 30_000,
        // A hundred watches that are disconnected at the same time, and a few other requests.
        failures_per_minute: 120,
    };

    /// For the management cluster.
    pub const MANAGEMENT: Self = Self {
        // 50 objects of 1.5 MB, the most that etcd takes: tenants write them, and one page must not hide the others.
        list_page_bytes: 256 * MIB,
        // Definitions of providers' kinds are 1.5 MB, discovery of many groups more.
        answer_bytes: 16 * MIB,
        watch_line_bytes: 16 * MIB,
        values_per_object: usize::MAX,
        values_per_page: usize::MAX,
        objects_per_page: usize::MAX,
        pages_per_list: u32::MAX,
        buffered_bytes: usize::MAX,
        kept_bytes: usize::MAX,
        watch_bytes_per_minute: usize::MAX,
        requests_per_minute: u32::MAX,
        failures_per_minute: u32::MAX,
    };
}

/// Bytes of an error's body that are read. A `Status` of the API server is a few hundred bytes; one that lists every
/// mistake of a large object some ten thousand. Longer texts are not shown anyway.
pub(super) const ERROR_BYTES: usize = 256 * KIB;

/// The time to find an address and to connect to it. Within a data centre it takes milliseconds; a lost SYN is sent
/// again after one and after three seconds.
pub(super) const CONNECT_DEADLINE: Duration = Duration::from_secs(10);

/// Idle connections that are kept for a cluster: each is a file descriptor, and a reconcile uses one at a time.
pub(super) const IDLE_CONNECTIONS: usize = 8;

/// Connections to one workload cluster. Over HTTP/1.1 every watch is one: of its Nodes, its agents' ConfigMaps, and the
/// pods of each node that is being drained.
pub(super) const CONNECTIONS: usize = 512;

/// Connections to all workload clusters of one namespace. Over HTTP/2 a cluster needs three, so that there is room for some
/// 340 clusters. A server may send a megabyte ahead on each ([`super::pool`]), outside every budget.
pub(super) const NAMESPACE_CONNECTIONS: usize = 1024;

/// Bytes that are buffered for all workload clusters of one namespace at any moment: two clusters at their own limit. A page
/// of 50 Nodes has about one megabyte.
pub(super) const NAMESPACE_BUFFERED_BYTES: usize = 2 * Limits::WORKLOAD.buffered_bytes;

/// Bytes that are kept of the objects of all workload clusters of one namespace: a hundred clusters of 1,000 Nodes of 500
/// bytes, or three clusters at their own limit.
pub(super) const NAMESPACE_KEPT_BYTES: usize = 64 * MIB;

/// Bytes a minute that are received from all workload clusters of one namespace, on all connections. Beyond that they are read
/// more slowly. A hundred clusters of 1,000 Nodes, each with a status of 20 KB every five minutes, send 400 MB.
pub(super) const NAMESPACE_BYTES_PER_MINUTE: usize = 512 * MIB;

/// The bytes that each part of a watch counts as, if it has fewer: a server can send one byte at a time, and each part costs
/// work. Ten thousand Nodes that join within a minute send about 100,000 parts; 260,000 are permitted.
pub(super) const LEAST_WATCH_BYTES: usize = 512;

/// Bytes that are read ahead on a connection over HTTP/1.1, outside every budget, and the most that the head of an answer
/// may have. That of an API server has less than a kilobyte.
pub(super) const HTTP1_BUFFER: usize = 64 * KIB;

/// Workload clusters of one namespace that are connected to at the same time. Each costs a client with its certificates,
/// three connections and their buffers, watches and stores: about half a megabyte if it is well-behaved. With three
/// connections each, a hundred fit into half of the 768 connections that a process has by default
/// ([`super::NamespaceShares`]), and a tenant with more clusters can use another namespace.
pub(crate) const NAMESPACE_CLUSTERS: usize = 100;

/// Host names of one namespace that are looked up at the same time. One takes milliseconds, or up to a minute if no DNS
/// server responds: a hundred clusters that are reconnected at once wait for a fraction of a second.
pub(super) const NAMESPACE_LOOKUPS: usize = 4;

/// Host names of all namespaces that are looked up at the same time. Each blocks one of the 512 threads that `tokio` has
/// for blocking work; health checks and metrics need some of the others.
pub(super) const LOOKUPS: usize = 64;

/// Addresses of one host name that are tried.
pub(super) const ADDRESSES: usize = 8;
