//! Which build this is: the one that is packaged and measured, or one to be tried or tested.

/// The profile of the workspace that this program was built with.
pub const PROFILE: &str = env!("ARGOSY_PROFILE");

/// What `version` prints: the version, then the profile and what it is for.
pub fn version(program: &str, version: &str) -> String {
    format!("{program} {version}\nprofile: {}\n", note(PROFILE))
}

fn note(profile: &str) -> String {
    match profile {
        "release" => "release".to_owned(),
        "try" => "try (quick to build, slower to run; `make build` builds the packaged program)"
            .to_owned(),
        other => format!("{other} (not for production; `make build` builds the packaged program)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_says_what_it_is_for() {
        assert_eq!(note("release"), "release");
        assert!(note("try").starts_with("try (quick to build, slower to run;"));
        assert!(note("debug").contains("not for production"));
        assert!(version("argosy", "1.2.3").starts_with("argosy 1.2.3\nprofile: "));
    }
}
