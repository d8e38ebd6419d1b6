//! `argosy-agent run`: Runs the agent until it is told to stop.
