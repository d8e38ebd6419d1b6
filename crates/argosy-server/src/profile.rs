//! What no superset can settle: where two clients need different words, the profile decides.
//!
//! It changes words and shapes only. What a caller may do is never decided here.

use argosy_core::resource::{Kind, Strategy};
use argosy_core::status::Phase;
use serde::{Deserialize, Serialize};

/// Which document's words to use where they disagree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// The full journeys.
    #[default]
    Full,
    /// The MVP journeys: two phases.
    Mvp,
    /// What existing system clients expect: ids are uids, PATCH replaces.
    Upstream,
}

impl Profile {
    /// Every profile.
    pub const ALL: [Profile; 3] = [Profile::Full, Profile::Mvp, Profile::Upstream];

    /// The word in the header.
    pub const fn as_str(self) -> &'static str {
        match self {
            Profile::Full => "full",
            Profile::Mvp => "mvp",
            Profile::Upstream => "upstream",
        }
    }

    /// Reads the word in the header.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.as_str() == text)
    }

    /// The word people see.
    pub(crate) const fn phase(self, phase: Phase) -> &'static str {
        match (self, phase) {
            (Profile::Mvp, Phase::Pending | Phase::Terminating) => Phase::NotReady.as_str(),
            (_, phase) => phase.as_str(),
        }
    }

    /// The phases that people mean by a word.
    ///
    /// # Errors
    /// The sentence that lists the words there are.
    pub(crate) fn phases(self, word: &str, kind: Kind) -> Result<Vec<Phase>, String> {
        let spaced = if word == "NotReady" { Phase::NotReady.as_str() } else { word };
        let meant: Vec<Phase> =
            Phase::ALL.into_iter().filter(|phase| self.phase(*phase) == spaced).collect();
        if !meant.is_empty() {
            return Ok(meant);
        }
        let mut words: Vec<&str> = Vec::new();
        for phase in Phase::ALL {
            if !words.contains(&self.phase(phase)) {
                words.push(self.phase(phase));
            }
        }
        let scope = match (self, kind) {
            (Profile::Mvp, Kind::NodePool) => " for MVP",
            (Profile::Full | Profile::Mvp | Profile::Upstream, _) => "",
        };
        Err(format!("Invalid phase value '{word}'. Supported values{scope}: {}", words.join(", ")))
    }

    /// How a PATCH that does not say treats what it does not mention.
    pub(crate) const fn strategy(self) -> Strategy {
        match self {
            Profile::Full | Profile::Mvp => Strategy::Merge,
            Profile::Upstream => Strategy::Replace,
        }
    }
}

#[cfg(test)]
mod tests;
