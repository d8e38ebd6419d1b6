//! `argosy-agent probe`: The child that asks the driver; started by the agent, not by people.
