//! What more than one control-plane process needs: an engine that they share.

pub mod postgres;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
