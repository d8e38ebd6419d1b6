//! Who this machine is: its ids, its names, and what its cloud says about it.
