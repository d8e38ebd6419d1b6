//! The command line of `argosy-agent`: one file for each command.

pub mod diagnose;
pub mod doctor;
pub mod inject;
pub mod probe;
pub mod run;
pub mod scan;
pub mod watch;
