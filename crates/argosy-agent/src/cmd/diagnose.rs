//! `argosy-agent diagnose`: Tests the GPUs of this machine.
