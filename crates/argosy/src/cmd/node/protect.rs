//! `argosy node protect` and `argosy node unprotect`.

use crate::failure::{Exit, Failure};
use crate::output::{clean, note};
use crate::session::Session;

/// Puts the label on nodes, or takes it off.
pub(super) async fn run(
    session: &Session,
    nodes: &[String],
    protected: bool,
    reason: &str,
) -> Result<Exit, Failure> {
    if reason.trim().is_empty() {
        return Err(Failure::usage("--reason is empty").fix("say why; it is kept in the audit log"));
    }
    for node in nodes {
        let id = node.strip_prefix("node/").unwrap_or(node);
        if let Err(error) = session.client.protect_node(id, protected, reason).await {
            return Err(session.failure(error));
        }
        let is = if protected { "protected" } else { "not protected any more" };
        note(&format!("node {}: {is}", clean(id)));
    }
    Ok(Exit::Ok)
}
