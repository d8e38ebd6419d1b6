//! What an agent can do: cordon, drain, diagnose, terminate.
