//! The error body: RFC 9457, with the members every known client looks for.
//!
//! Each error has a code from `CODES`; the code decides status, title and what to do next, so the
//! same mistake reads the same everywhere.

use crate::safety::BudgetImpact;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use utoipa::ToSchema;

/// Why a request was not carried out, and what to do about it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Where the code is explained: a place on the reference page.
    #[serde(rename = "type")]
    #[schema(format = "uri-reference")]
    pub kind: String,
    /// The code in words.
    pub title: String,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    pub status: u16,
    /// What is wrong with this request, in a sentence.
    pub detail: String,
    /// The path of the request.
    pub instance: String,
    /// One of the codes in `docs/errors.md`.
    #[schema(pattern = "^HYPERFLEET-[A-Z]{3}-[0-9]{3}$")]
    pub code: String,
    /// When it happened.
    #[schema(format = "date-time")]
    pub timestamp: String,
    /// The id of the request, as in the header `X-Request-ID`.
    pub trace_id: String,
    /// The sentence of `detail`, or the one word the seeds' clients switch on.
    pub error: String,
    /// The sentence, where `error` is one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub message: Option<String>,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub hint: Option<String>,
    /// The id in the request, where what it names was not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub id: Option<String>,
    /// The cluster in the request, where it or one of its node pools was not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cluster_id: Option<String>,
    /// The node pool in the request, where it was not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub nodepool_id: Option<String>,
    /// The node in the request, where it was not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub node_id: Option<String>,
    /// The revision the resource is at, where the request named another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    pub current_revision: Option<u64>,
    /// One entry for each field that is wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldProblem>,
    /// The disruption budgets that the request exceeds, with the numbers and what would make room.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetImpact>,
}

/// What is wrong with one field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FieldProblem {
    /// Where: `name`, `spec.region`, `labels.team`, `conditions[2].status`.
    pub field: String,
    /// A sentence.
    pub message: String,
    /// What was sent, if it is short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value, nullable = false)]
    pub value: Option<Value>,
    /// Which rule it broke: `required`, `min`, `max`, `min_length`, `max_length`, `pattern`, `enum`,
    /// `format` or `unique`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub constraint: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for Problem {}

/// One kind of error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// The code.
    pub code: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// The code in words.
    pub title: &'static str,
    /// When it is used.
    pub when: &'static str,
    /// What to do next.
    pub hint: &'static str,
}

macro_rules! codes {
    ($($name:ident = $code:literal $status:literal $title:literal, $when:literal, $hint:literal;)+) => {
        $(
            #[doc = concat!("`", $code, "`: ", $when)]
            pub const $name: Code = Code {
                code: $code,
                status: $status,
                title: $title,
                when: $when,
                hint: $hint,
            };
        )+

        /// Every code, in the order of the table in `docs/errors.md`.
        pub const CODES: &[Code] = &[$($name),+];
    };
}

codes! {
    VALIDATION = "HYPERFLEET-VAL-000" 400 "Validation Failed",
        "A field of the body, a parameter or a header is missing or has a wrong value.",
        "Correct the fields named in `errors` and send the request again.";
    BAD_REQUEST = "HYPERFLEET-VAL-005" 400 "Bad Request",
        "The request does not make sense as a whole: an empty PATCH, an order nobody can sort by.",
        "Compare the request with the reference at /docs.";
    MALFORMED = "HYPERFLEET-VAL-006" 400 "Malformed Request",
        "The body is not JSON, is nested too deep, repeats a key, or has a member nobody knows.",
        "Send one JSON object with the members the reference at /docs lists.";
    BAD_SEARCH = "HYPERFLEET-VAL-007" 400 "Invalid Search Query",
        "The search text cannot be read, or names a field nobody can search by.",
        "Correct the search at the character named in `detail`.";
    NEEDS_CLUSTER = "HYPERFLEET-VAL-008" 422 "Parent Required",
        "A node pool was to be created outside a cluster.",
        "POST it to /api/hyperfleet/v1/clusters/{cluster_id}/nodepools.";
    KEY_REUSED = "HYPERFLEET-VAL-009" 422 "Idempotency Key Reused",
        "The idempotency key was used before, with another request.",
        "Use a new key for a new request.";
    UNAUTHENTICATED = "HYPERFLEET-AUT-001" 401 "Authentication Required",
        "The request carries no credentials.",
        "Send `Authorization: Bearer <token>`.";
    BAD_CREDENTIALS = "HYPERFLEET-AUT-002" 401 "Invalid Credentials",
        "The token is unknown, malformed, or not meant for this server.",
        "Check which token is sent; ask an administrator for a new one.";
    TOKEN_EXPIRED = "HYPERFLEET-AUT-003" 401 "Invalid Token",
        "The token has expired.",
        "Sign in again to get a new token.";
    FORBIDDEN = "HYPERFLEET-AUZ-001" 403 "Permission Denied",
        "The caller's role or team does not allow this.",
        "Ask somebody of the owning team, or an administrator.";
    NO_ENDPOINT = "HYPERFLEET-NTF-000" 404 "Endpoint Not Found",
        "No route has this path.",
        "Check the path against the reference at /docs.";
    NOT_FOUND = "HYPERFLEET-NTF-001" 404 "Resource Not Found",
        "There is no such resource for this caller, or it was deleted.",
        "List the resources to see which there are.";
    NODE_NOT_FOUND = "HYPERFLEET-NTF-002" 404 "Node Not Found",
        "No node of this id is registered, or it is another tenant's.",
        "Register it first: start its agent, or call RegisterNode. `argosy node list` shows which there are.";
    BAD_METHOD = "HYPERFLEET-MTD-001" 405 "Method Not Allowed",
        "The path exists, but not with this method.",
        "Use one of the methods in the header `Allow`.";
    TOO_SLOW = "HYPERFLEET-LMT-003" 408 "Request Timeout",
        "The body did not arrive in time.",
        "Send it again, over a better connection.";
    NAME_TAKEN = "HYPERFLEET-CNF-001" 409 "Resource Conflict",
        "The name is taken, perhaps by a resource that is still being deleted.",
        "Choose another name, or wait until the old one is gone.";
    CHANGED = "HYPERFLEET-CNF-002" 409 "Version Conflict",
        "The resource is no longer at the revision named in `If-Match`.",
        "Read the resource again, decide again, and send its new ETag.";
    BAD_STATE = "HYPERFLEET-CNF-003" 409 "State Conflict",
        "The resource is being deleted and takes no changes, or is not and must be.",
        "GET the resource to see its state.";
    IDENTITY_CONFLICT = "HYPERFLEET-CNF-004" 409 "Identity Conflict",
        "Two machines use one node id, or the id is taken.",
        "Give each machine an id of its own. If the old machine is gone, `argosy node delete` its record first.";
    OVER_BUDGET = "HYPERFLEET-CNF-005" 409 "Disruption Budget Exhausted",
        "The request would take more nodes out of service than a disruption budget allows; `budgets` has the numbers.",
        "Do as `frees` of the budget says, or name fewer nodes. An administrator can add `\"over_budget\": true` and a reason.";
    GONE = "HYPERFLEET-GON-001" 410 "Revision Gone",
        "A watch asked to go on after a revision that is no longer retained.",
        "List again, and watch from the revision of that list.";
    TOO_LARGE = "HYPERFLEET-LMT-002" 413 "Request Too Large",
        "The body is longer than the limit of its route.",
        "Send less.";
    BAD_MEDIA = "HYPERFLEET-MED-001" 415 "Unsupported Media Type",
        "The body is not JSON, by its own `Content-Type` or `Content-Encoding`.",
        "Send JSON, not compressed, with `Content-Type: application/json`.";
    TOO_MANY = "HYPERFLEET-LMT-004" 429 "Too Many Requests",
        "More is under way than is allowed: commands that wait for a node, events of one node, lists at once.",
        "Wait until some of it is done, then try again.";
    INTERNAL = "HYPERFLEET-INT-001" 500 "Internal Server Error",
        "We made a mistake. Nothing of the request was carried out in part.",
        "Report it with the `trace_id`; the server's log has the cause under it.";
    UNAVAILABLE = "HYPERFLEET-SVC-001" 503 "Service Unavailable",
        "The store is out of reach, or the server is starting or stopping.",
        "Try again after the seconds in `Retry-After`.";
    FULL = "HYPERFLEET-SVC-003" 507 "Insufficient Storage",
        "The disk of the store is full. Nothing was written.",
        "Make room on the server's data directory, then try again.";
}

impl Code {
    /// Where the reference page explains the code.
    pub fn uri(&self) -> String {
        format!("/docs#{}", self.code)
    }
}

/// The text of `docs/errors.md`.
pub fn document() -> String {
    let mut text = String::from(
        "# Errors\n\n\
         Every error is a body of type `application/problem+json` (RFC 9457). `code` says what kind it\n\
         is, `detail` what is wrong with this request, `hint` what to do next, `errors` lists each\n\
         wrong field, and `trace_id` finds the request in the server's log.\n\n\
         | code | status | title | when | what to do |\n|---|---|---|---|---|\n",
    );
    for code in CODES {
        text.push_str(&format!(
            "| `{}` | {} | {} | {} | {} |\n",
            code.code, code.status, code.title, code.when, code.hint
        ));
    }
    text
}

#[cfg(test)]
mod tests;
