//! The product in virtual time: the real services and agents in a made-up world, by seed.
//!
//! What a newcomer gets wrong: nothing of what Argosy decides is played here. The services, the loops and the
//! agents are those of the product; made up are the machines, the network, the cloud, the disk and the time.

pub mod dice;

pub mod explain;

pub mod outcome;

pub mod report;
pub mod run;

mod oracle;
mod world;

pub mod scenario;
pub mod workload;
