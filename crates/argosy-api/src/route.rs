//! The route table.

/// Where the API of clusters and node pools begins.
pub const BASE: &str = "/api/hyperfleet/v1";
