//! The agent against a real control plane in this process: the library, and the program that is killed.

#[cfg(test)]
mod harness;

#[cfg(test)]
mod journey;

#[cfg(test)]
mod process;

#[cfg(test)]
mod sight;

#[cfg(test)]
mod swarm;

#[cfg(test)]
#[path = "../../examples/custom_diagnostic.rs"]
#[expect(dead_code, unreachable_pub, reason = "an example is a program of its own")]
mod custom_diagnostic;
