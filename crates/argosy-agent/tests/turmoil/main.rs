//! What an event heap cannot show: the real server and the real line over simulated sockets, and torn files.
//!
//! Hosts, sockets, latency and partitions are turmoil's, time is virtual, and everything above the sockets
//! is the product: the accept loop, HTTP/2 with its pings, streams, the agent's line and its core. Tests
//! are named after the faults of the catalogue that they answer.

#[cfg(test)]
mod sea;

#[cfg(test)]
mod line;

#[cfg(test)]
mod file;
