//! Typed identifiers, from one list, so that an id of one noun cannot be passed for another's.

use serde::{Deserialize, Serialize};
use std::fmt;
use uuid::Uuid;

macro_rules! uuid_ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps a UUID that was made for this noun.
            pub const fn new(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// The UUID inside.
            pub const fn uuid(&self) -> Uuid {
                self.0
            }

            /// Reads the hyphenated form; anything else is not an id.
            pub fn parse(text: &str) -> Option<Self> {
                // 36 characters: the other spellings `Uuid` accepts would give one id several names.
                (text.len() == 36).then(|| Uuid::try_parse(text).ok()).flatten().map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    )+};
}

uuid_ids! {
    /// A cluster or a node pool, for ever: names are reused, this is not.
    ResourceId,
    /// A command to a node, for ever.
    CommandId,
}

#[cfg(test)]
mod tests;
