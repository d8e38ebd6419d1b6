//! The services and the loops: read, decide through core, commit, act.
//!
//! Nothing here knows HTTP: the same services serve the API, the command line, tests and simulation.

pub mod clock;

pub mod ids;

pub mod task;

pub mod error;

pub mod provider;

pub mod notify;

pub mod scheduler;

pub mod extension;

pub mod resource;

pub mod watch;

pub mod adapter;

pub mod audit;

pub mod pulse;

pub mod node;

pub mod command;

pub mod instance;

pub mod policy;

pub mod safety;

pub mod recovery;

pub mod stats;

pub mod census;

mod loops;

mod pool;

mod office;

mod control;

pub use argosy_store::{Error as StoreError, Revision, failpoint, view::Stored};
pub use control::{Control, Outside, Settings};
pub use error::Error;
pub use loops::machines::MachineSettings;
