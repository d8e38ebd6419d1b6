//! The agent's configuration: file, environment and flags, checked as a whole.
