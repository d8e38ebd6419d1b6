//! The driver itself, through NVML. Only ever called in a child process.
