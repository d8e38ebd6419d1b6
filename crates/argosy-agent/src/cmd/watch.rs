//! `argosy-agent watch`: Shows the GPUs of this machine, live.
