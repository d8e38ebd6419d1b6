//! What could not be said yet, on disk: bounded, checksummed, the least important dropped first.
