//! What can be tried with a sick node before another takes its place.
