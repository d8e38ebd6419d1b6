//! What a command ends with: an exit code, and on failure what happened, why, and what to do.

use std::fmt;

/// The exit codes. Scripts rely on them; `argosy help exit-codes` prints them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Ok,
    Failed,
    Changes,
    NotFound,
    Auth,
    Conflict,
    Refused,
    Unreachable,
    Timeout,
    Usage,
    Interrupted,
}

impl Exit {
    /// Every code with its meaning, in the order of the codes.
    pub(crate) const ALL: [(Exit, &'static str); 11] = [
        (Exit::Ok, "it worked"),
        (Exit::Failed, "it failed"),
        (Exit::Changes, "there are changes (`diff`, `apply --dry-run`)"),
        (Exit::NotFound, "there is no such thing"),
        (Exit::Auth, "not signed in, or not allowed"),
        (Exit::Conflict, "somebody else was first, or the name is taken"),
        (Exit::Refused, "refused for safety: a question, and nobody at a terminal to answer it"),
        (Exit::Unreachable, "the server cannot be reached"),
        (Exit::Timeout, "it took longer than `--timeout`"),
        (Exit::Usage, "the command line or a file is wrong"),
        (Exit::Interrupted, "interrupted by Ctrl-C"),
    ];

    pub(crate) const fn code(self) -> u8 {
        match self {
            Exit::Ok => 0,
            Exit::Failed => 1,
            Exit::Changes => 2,
            Exit::NotFound => 3,
            Exit::Auth => 4,
            Exit::Conflict => 5,
            Exit::Refused => 6,
            Exit::Unreachable => 7,
            Exit::Timeout => 8,
            Exit::Usage => 64,
            Exit::Interrupted => 130,
        }
    }
}

/// Why a command did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// One sentence: what did not work.
    pub(crate) what: String,
    /// Each a line: the cause, the fields that are wrong.
    pub(crate) why: Vec<String>,
    /// Each a line: a command to run, a value to correct.
    pub(crate) fix: Vec<String>,
    /// What to quote when asking the people who run the server.
    pub(crate) request_id: Option<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self { exit, what: what.into(), why: Vec::new(), fix: Vec::new(), request_id: None }
    }

    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::new(Exit::Usage, what)
    }

    pub(crate) fn failed(what: impl Into<String>) -> Self {
        Self::new(Exit::Failed, what)
    }

    #[must_use]
    pub(crate) fn why(mut self, why: impl fmt::Display) -> Self {
        self.why.push(why.to_string());
        self
    }

    #[must_use]
    pub(crate) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix.push(fix.into());
        self
    }
}

/// As it is printed, without colour.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Whoever pressed Ctrl-C made no error.
        let prefix = if self.exit == Exit::Interrupted { "" } else { "error: " };
        write!(f, "{prefix}{}", self.what)?;
        for why in &self.why {
            write!(f, "\n  why: {why}")?;
        }
        for fix in &self.fix {
            write!(f, "\n  fix: {fix}")?;
        }
        match &self.request_id {
            Some(id) => write!(f, "\n  request id: {id}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
