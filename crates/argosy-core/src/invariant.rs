//! What must hold of any stored resource; asked by tests, and by the server before it commits.

use crate::resource::Resource;

/// The first thing that is wrong with a resource, or with the step from `before` to `after`.
///
/// I6: generation, report generations and report times never go backwards. I7: deletion is not
/// undone; kind, name, tenant, owner and creation never change; `Reconciled` is True only if every
/// report it rests on is of this generation.
pub fn check(before: Option<&Resource>, after: &Resource) -> Result<(), String> {
    let _ = (before, after);
    todo!()
}
