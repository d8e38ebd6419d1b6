//! `argosy-agent`, the program on each GPU machine.

fn main() {}
