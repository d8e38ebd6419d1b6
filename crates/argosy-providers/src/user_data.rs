//! What a new machine is told to do when it boots.

use argosy_core::machine::Purchase;
use std::fmt;
use std::sync::Arc;

/// Makes the first words to a new machine: a script, or cloud-init's `#cloud-config`. They may hold the
/// token with which its agent registers, so they show themselves to nobody.
#[derive(Clone)]
pub struct UserData(Arc<dyn Fn(&Purchase) -> String + Send + Sync>);

impl UserData {
    /// Made by a function of what is bought.
    pub fn new(make: impl Fn(&Purchase) -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    pub(crate) fn of(&self, purchase: &Purchase) -> String {
        (self.0)(purchase)
    }
}

/// Nothing: the image has to know by itself.
impl Default for UserData {
    fn default() -> Self {
        Self::new(|_| String::new())
    }
}

impl fmt::Debug for UserData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UserData(…)")
    }
}
