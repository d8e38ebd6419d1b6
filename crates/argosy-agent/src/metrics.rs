//! The agent's own figures for Prometheus, on request.
