//! The contract: wire types, the error body, the route table, the OpenAPI document made from them,
//! and (feature `client`) the HTTP client that speaks it.
//!
//! Nothing here knows the rules of the fleet: a change of the rules cannot change the wire by
//! accident. Times are text, because the wire is.

mod word;

pub mod error;

pub mod resource;

pub mod status;

pub mod audit;

pub mod node;

pub mod command;

pub mod instance;

pub mod policy;

pub mod recovery;
pub mod safety;

pub mod fleet;

pub mod route;

pub mod openapi;

#[cfg(feature = "client")]
pub mod client;

#[cfg(feature = "rpc")]
pub mod rpc;

/// Compares a committed file with what the code prints; `UPDATE=1` rewrites it.
#[cfg(test)]
fn golden(path: &str, printed: &str) {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, printed).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(committed == printed, "{path} is out of date: run the tests once with UPDATE=1");
}
