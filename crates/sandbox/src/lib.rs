//! A Kubernetes API in memory: what runs 5-Spot with nothing to install, and gives its tests virtual time
//! and faults.

pub mod actors;
mod api;
mod apply;
pub mod clock;
pub mod conformance;
mod discovery;
mod door;
mod error;
pub mod faults;
pub mod ids;
mod kinds;
mod object;
mod patch;
pub mod schema;
mod select;
mod service_state;
mod settle;
mod state;
mod store;
mod strategy;
mod tables;
mod types;
mod verbs;

pub use api::{Api, ApiConfig};
pub use clock::Clock;
pub use door::{ApiService, BoxError, HttpServer, ResponseBody, serve};
pub use error::ApiError;
