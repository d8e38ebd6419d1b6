//! How the machine around the GPUs is: processors, memory, disks, network and InfiniBand, from `/proc` and `/sys`.

pub(crate) mod read;
