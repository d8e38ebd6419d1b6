//! The dashboard's files inside the program; `build.rs` puts them there.

use argosy_server::dashboard::Asset;

include!(concat!(env!("OUT_DIR"), "/dashboard.rs"));
