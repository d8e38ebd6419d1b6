//! `argosy-agent scan`: Says how this machine is, without any server.
