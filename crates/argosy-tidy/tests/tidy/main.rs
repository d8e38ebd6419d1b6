//! What a machine can check about the code and the papers around it.
//!
//! Every check is a pure function over paths and texts that returns complaints, so that each is seen
//! to fail on a planted violation; one test per check runs it over the repository.

mod build;
mod doors;
mod gate;
mod habits;
mod markdown;
mod modules;
mod packages;
mod repo;
mod rooms;
mod rust;
mod size;

/// Fails with all complaints at once, one a line.
#[track_caller]
fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}
