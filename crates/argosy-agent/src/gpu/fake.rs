//! GPUs that are made up, with faults on request: for tests and for machines that have none.
