//! Health policies: rules in CEL over one event, first match by priority.

use argosy_core::health::{Event, Sighting, Verdict};
use argosy_core::node::Node;
use argosy_core::policy::PolicySpec;
use jiff::Timestamp;

/// A compiled policy. It cannot fail on its own syntax.
#[derive(Debug)]
pub struct HealthPolicy {}

/// What a policy is asked about.
pub struct Judged<'a> {
    /// What happened.
    pub event: &'a Event,
    /// Where, as the node was before it.
    pub node: &'a Node,
    /// What was seen of the same GPU on other nodes.
    pub elsewhere: &'a [Sighting],
    /// By our clock.
    pub now: Timestamp,
}

/// What is wrong with one rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct RuleError {
    /// `rules[3].condition`.
    pub field: String,
    /// Counted from 1, in the text of that field, where one place is to blame.
    pub line: Option<usize>,
    /// Counted from 1, in characters.
    pub column: Option<usize>,
    /// What is wrong and what would be right.
    pub message: String,
}

impl HealthPolicy {
    /// Compiles a policy.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn compile(name: &str, version: u32, spec: &PolicySpec) -> Result<Self, Vec<RuleError>> {
        let _ = (name, version, spec);
        todo!()
    }

    /// What the policy says. A rule that fails ends the search: the verdict is its error, whatever
    /// rules after it would have said.
    pub fn judge(&self, judged: &Judged<'_>) -> Verdict {
        let _ = judged;
        todo!()
    }

    /// The policy that is there when nobody wrote one: it follows the Xid catalogue.
    pub fn default_spec() -> PolicySpec {
        todo!()
    }
}
