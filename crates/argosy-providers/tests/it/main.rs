//! Workload systems as they are: the real programs, started by the tests.

#[cfg(test)]
mod harness;

#[cfg(test)]
mod slurm;

#[cfg(test)]
mod kubernetes;
