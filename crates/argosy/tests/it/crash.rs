//! Whatever kills the process, nothing acknowledged is lost and nothing is half done.
//!
//! Named after the faults they answer. Several clients write all the time and note what they were
//! told; afterwards the whole history, as the feed and the audit log tell it, must contain it.

mod disk;
mod event;
mod failpoint;
mod history;
mod load;
mod random;
mod scaleout;
mod shutdown;
