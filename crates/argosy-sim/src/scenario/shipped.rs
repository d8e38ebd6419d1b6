//! The scenarios that come with the program, by name.

/// A scenario that comes with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shipped {
    /// Its name, by which it is run.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Its text, for `scenario::read`.
    pub text: &'static str,
}

/// All of them, in the order in which a newcomer would try them.
#[must_use]
pub fn list() -> &'static [Shipped] {
    &[]
}

/// The one of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Shipped> {
    list().iter().find(|shipped| shipped.name == name)
}
