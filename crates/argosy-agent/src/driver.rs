//! Carries out what the agent decided: the only part that waits.
