//! Whatever goes wrong becomes one error body.

pub(crate) mod rpc;

use crate::auth::AuthError;
use crate::body::BodyError;
use crate::convert;
use argosy_api::error::{self, Code, FieldProblem, Problem};
use argosy_control::{Error, StoreError};
use argosy_core::field::{Constraint, FieldError};
use argosy_core::resource::Kind;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Response, StatusCode};
use jiff::Timestamp;

/// Why a request is refused: the body, but for what only the request knows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault(Box<Problem>);

impl Fault {
    pub(crate) fn new(code: &Code, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self(Box::new(Problem {
            kind: code.uri(),
            title: code.title.to_owned(),
            status: code.status,
            code: code.code.to_owned(),
            error: detail.clone(),
            detail,
            hint: Some(code.hint.to_owned()),
            ..Problem::default()
        }))
    }

    /// Fields that are wrong; the first one's sentence leads.
    pub(crate) fn fields(errors: Vec<FieldError>) -> Self {
        Error::Invalid(errors).into()
    }

    /// One field that is wrong.
    pub(crate) fn field(error: FieldError) -> Self {
        Self::fields(vec![error])
    }

    /// The same with one word in `error`, as the seeds' clients switch on, and the sentence in
    /// `message`.
    fn word(mut self, word: &str) -> Self {
        self.0.message = Some(std::mem::replace(&mut self.0.error, word.to_owned()));
        self
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(&error::FORBIDDEN, detail).word("PermissionDenied")
    }

    /// The body, complete.
    ///
    /// Sentences repeat what was sent, and end on terminals: nothing in them can move the cursor, colour
    /// the screen or turn the line around.
    pub(crate) fn problem(self, instance: &str, request_id: &str, now: Timestamp) -> Problem {
        let mut problem = *self.0;
        let Problem { detail, error, message, errors, budgets, .. } = &mut problem;
        let sentences = errors.iter_mut().flat_map(|error| [&mut error.field, &mut error.message]);
        let of_budgets = budgets.iter_mut().flat_map(|budget| {
            let by = budget.out.iter_mut().map(|out| &mut out.by);
            by.chain(&mut budget.frees).chain([&mut budget.message])
        });
        let sentences = sentences.chain(of_budgets);
        for sentence in [detail, error].into_iter().chain(message).chain(sentences) {
            if sentence.chars().any(is_odd) {
                *sentence = plain(sentence);
            }
        }
        Problem {
            instance: instance.to_owned(),
            trace_id: request_id.to_owned(),
            timestamp: now.to_string(),
            ..problem
        }
    }

    /// The answer.
    pub(crate) fn respond(self, instance: &str, id: &str, now: Timestamp) -> Response<Body> {
        let problem = self.problem(instance, id, now);
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() =
            StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if [error::UNAVAILABLE.status, error::TOO_MANY.status].contains(&problem.status) {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if problem.status == error::UNAUTHENTICATED.status {
            headers.insert("www-authenticate", HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let sentence = error.to_string();
        match error {
            Error::Invalid(errors) => {
                let mut fault = Fault::new(&error::VALIDATION, sentence);
                fault.0.errors = errors.into_iter().map(field_problem).collect();
                fault
            }
            Error::NeedsCluster(_) => Fault::new(&error::NEEDS_CLUSTER, sentence),
            Error::NotFound { kind, reference, cluster } => not_found(kind, reference, cluster),
            Error::ClusterNotFound { reference } => {
                let mut fault = Fault::new(&error::NOT_FOUND, sentence);
                fault.0.detail = format!("Cluster '{reference}' not found");
                fault.0.cluster_id = Some(reference);
                fault
            }
            Error::Deleted { reference, tombstone } => {
                let word = format!("{}NotFound", tombstone.kind);
                let mut fault = Fault::new(&error::NOT_FOUND, sentence).word(&word);
                match tombstone.kind {
                    Kind::Cluster => fault.0.id = Some(reference),
                    Kind::NodePool => fault.0.nodepool_id = Some(reference),
                }
                fault
            }
            Error::Forbidden(_) => Fault::forbidden(sentence),
            Error::NameTaken { .. } => Fault::new(&error::NAME_TAKEN, sentence),
            Error::Deleting { .. } | Error::NotDeleting { .. } => {
                Fault::new(&error::BAD_STATE, sentence)
            }
            Error::Changed { current, .. } => {
                let mut fault = Fault::new(&error::CHANGED, sentence);
                fault.0.current_revision = Some(current.0);
                fault
            }
            Error::KeyReused => Fault::new(&error::KEY_REUSED, sentence),
            Error::Gone { .. } => Fault::new(&error::GONE, sentence),
            Error::NodeNotFound(node) => {
                let mut fault = missing(&error::NODE_NOT_FOUND, "Node", &node);
                fault.0.node_id = Some(node);
                fault
            }
            Error::CommandNotFound(id) => missing(&error::NOT_FOUND, "Command", &id),
            Error::PolicyNotFound(name) => missing(&error::NOT_FOUND, "Policy", &name),
            Error::InstanceNotFound(id) => missing(&error::NOT_FOUND, "Instance", &id),
            Error::OrphanNotFound { .. } => Fault::new(&error::NOT_FOUND, sentence),
            Error::ProviderNotFound(_) => Fault::new(&error::NOT_FOUND, sentence),
            Error::IdentityConflict(_) => Fault::new(&error::IDENTITY_CONFLICT, sentence),
            Error::Precondition(_) => Fault::new(&error::BAD_STATE, sentence),
            Error::OverBudget(impacts) => {
                let mut fault = Fault::new(&error::OVER_BUDGET, sentence);
                fault.0.budgets = impacts.iter().map(convert::safety::impact).collect();
                fault
            }
            Error::TooMany(_) => Fault::new(&error::TOO_MANY, sentence),
            Error::Store(store) => store.into(),
            Error::Invariant(_) => {
                tracing::error!(cause = %sentence, "a request would have broken an invariant");
                internal()
            }
        }
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        let sentence = error.to_string();
        match error {
            StoreError::Full(_) => Fault::new(&error::FULL, sentence),
            StoreError::Unavailable(_) => Fault::new(&error::UNAVAILABLE, sentence),
            // Somebody else was first, again and again, or is now in charge: later is different.
            StoreError::Conflict(_) | StoreError::Fenced => {
                Fault::new(&error::UNAVAILABLE, "it is being changed too often; try again")
            }
            StoreError::Refused(_) => {
                tracing::error!(cause = %sentence, "the store refused");
                internal()
            }
        }
    }
}

impl From<AuthError> for Fault {
    fn from(error: AuthError) -> Self {
        let code = match error {
            AuthError::Missing => &error::UNAUTHENTICATED,
            AuthError::Invalid(_) => &error::BAD_CREDENTIALS,
            AuthError::Expired => &error::TOKEN_EXPIRED,
        };
        Fault::new(code, error.to_string()).word("Unauthenticated")
    }
}

impl From<BodyError> for Fault {
    fn from(error: BodyError) -> Self {
        let code = match error {
            BodyError::TooLarge { .. } => &error::TOO_LARGE,
            BodyError::TooSlow(_) => &error::TOO_SLOW,
            BodyError::Broken | BodyError::Malformed(_) => &error::MALFORMED,
        };
        Fault::new(code, error.to_string())
    }
}

/// What people are told when the fault is ours: no more than that.
pub(crate) fn internal() -> Fault {
    Fault::new(&error::INTERNAL, "the server failed to carry out the request")
}

/// Something of the node plane that is not there.
fn missing(code: &Code, noun: &str, id: &str) -> Fault {
    let mut fault = Fault::new(code, format!("{noun} not found"));
    fault.0.detail = format!("{noun} '{id}' not found");
    fault.0.id = Some(id.to_owned());
    fault
}

/// Whether a character does more than stand there: controls, and marks that turn text around.
fn is_odd(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if is_odd(c) {
            plain.extend(c.escape_default());
        } else {
            plain.push(c);
        }
    }
    plain
}

fn not_found(kind: Kind, reference: String, cluster: Option<String>) -> Fault {
    let mut fault = Fault::new(&error::NOT_FOUND, format!("{kind} not found"));
    fault.0.detail = format!("{kind} '{reference}' not found");
    match kind {
        Kind::Cluster => fault.0.id = Some(reference),
        Kind::NodePool => fault.0.nodepool_id = Some(reference),
    }
    fault.0.cluster_id = cluster;
    fault
}

fn field_problem(error: FieldError) -> FieldProblem {
    let constraint = |constraint| match constraint {
        Constraint::Required => "required",
        Constraint::Min => "min",
        Constraint::Max => "max",
        Constraint::MinLength => "min_length",
        Constraint::MaxLength => "max_length",
        Constraint::Pattern => "pattern",
        Constraint::Enum => "enum",
        Constraint::Format => "format",
        Constraint::Unique => "unique",
    };
    FieldProblem {
        field: error.field,
        message: error.message,
        value: error.value,
        constraint: error.constraint.map(|rule| constraint(rule).to_owned()),
    }
}

#[cfg(test)]
mod tests;
