//! A library with NVML's face and scripted behaviour: tests of the agent load it in place of the driver's.
//!
//! What a newcomer gets wrong: this crate is used twice in one test. The test links it, for the types of a
//! `Script`; the agent's child loads it, as a shared library, and finds the script by an environment variable.

mod face;
mod script;

pub use script::{Behaviour, Fault, Gpu, Process, SCRIPT_ENV, Script, library};
