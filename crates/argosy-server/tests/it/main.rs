//! The API through its router, on the in-memory engine: what is answered, and to whom.

#[cfg(test)]
mod world;

#[cfg(test)]
mod answers;

#[cfg(test)]
mod walk;

#[cfg(test)]
mod watch;

#[cfg(test)]
mod budget;

#[cfg(test)]
mod client;

#[cfg(test)]
mod instance;

#[cfg(test)]
mod node;

#[cfg(test)]
mod overload;

#[cfg(test)]
mod rpc;

#[cfg(test)]
mod fleet;
