//! The handling of HTTP requests: URLs, query options, media types, and the service that `kube::Client`
//! calls.

mod accept;
mod answer;
mod guard;
mod options;
mod protobuf;
mod route;
mod server;
mod service;

pub(crate) use accept::{Accept, Representation, metadata_only, represent};
pub(crate) use answer::{Answer, Reply};
pub(crate) use options::Options;
pub(crate) use protobuf::{MEDIA_TYPE as PROTOBUF, decode as decode_protobuf};
pub(crate) use route::{Route, Target, parse as parse_route};
pub use server::{HttpServer, serve};
pub(crate) use service::full;
pub use service::{ApiService, BoxError, ResponseBody};
