//! Tests of the walk on small made-up clusters.

mod cluster_api;
mod controllers;
mod deletion;
mod fixture;
mod limits;
mod namespace;
mod pods;
mod properties;
