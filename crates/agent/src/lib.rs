//! The reclaim agent of 5-Spot. It runs on a lent node, watches for the programs that its owner named, and asks for the
//! node to be given back by annotating it. The controller does the rest.
//!
//! | module | purpose |
//! |---|---|
//! | [`args`], [`logging`] | command line, environment, log lines |
//! | [`matcher`] | pure: does this process match? |
//! | [`procfs`] | processes as `/proc` shows them |
//! | [`netlink`] | process events of the kernel; the only `unsafe` code |
//! | [`detector`] | a thread that looks for matching processes, by polling or by events |
//! | [`identity`] | the machine id of the host |
//! | [`client`] | a small Kubernetes client: list, watch, patch |
//! | [`watch`] | the ConfigMap of this agent |
//! | [`annotate`] | the patch of the Node |
//! | [`agent`] | the event loop that connects them |
//! | [`probe`] | readiness, asked over a Unix socket |
//! | [`program`] | start, `--oneshot`, exit codes |

pub mod agent;
pub mod annotate;
pub mod args;
pub mod backoff;
pub mod client;
pub mod detector;
pub mod identity;
pub mod logging;
pub mod matcher;
pub mod netlink;
pub mod oneshot;
pub mod probe;
pub mod procfs;
pub mod program;
pub mod watch;
