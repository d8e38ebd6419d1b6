//! How fast we may ask: a token bucket for each kind of call, as EC2 itself keeps them.

use crate::rest::Bucket;
use std::time::Duration;

/// How many calls at once, and how many a second after that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// How many at once.
    pub burst: u32,
    /// How many a second in the long run.
    pub per_s: f64,
}

/// How fast an account may be asked. The default is what EC2 and Route 53 give to every account; whoever
/// had them raised can say so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// RunInstances.
    pub launches: Rate,
    /// Everything else that changes something.
    pub changes: Rate,
    /// Everything that only looks.
    pub reads: Rate,
    /// Route 53, which counts all calls together.
    pub dns: Rate,
}

impl Default for Rates {
    fn default() -> Self {
        Self {
            launches: Rate { burst: 5, per_s: 2.0 },
            changes: Rate { burst: 50, per_s: 5.0 },
            reads: Rate { burst: 100, per_s: 20.0 },
            dns: Rate { burst: 5, per_s: 5.0 },
        }
    }
}

/// How long a call may wait for its turn. Whoever would wait longer is told so, and comes back.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(30);

impl Rate {
    pub(super) fn bucket(self) -> Bucket {
        Bucket::new(self.per_s, self.burst)
    }
}
