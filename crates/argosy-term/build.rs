//! Tells our programs which profile of the workspace they are built with.

use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // `PROFILE` says which profile ours inherits from; only the directory has its own name:
    // <target>/<profile>/build/<package>/out.
    let out = std::env::var("OUT_DIR").unwrap_or_default();
    let named = Path::new(&out).ancestors().nth(3).and_then(Path::file_name);
    let profile = named.and_then(|name| name.to_str()).unwrap_or("unknown");
    println!("cargo:rustc-env=ARGOSY_PROFILE={profile}");
}
