//! Puts the built dashboard, `dashboard/dist`, into the program, each file also compressed.
//!
//! Where it was not built, one page says so and how: `cargo build` needs no Node.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

const DIST: &str = "../../dashboard/dist";

const NOT_BUILT: &str = "not-built.html";

/// All that a browser is told about the kinds of file that Vite makes. A file of another kind is a mistake
/// that should show when it is built, not when it is used.
const MEDIA: &[(&str, &str)] = &[
    ("css", "text/css; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("ico", "image/x-icon"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("txt", "text/plain; charset=utf-8"),
    ("webmanifest", "application/manifest+json"),
    ("webp", "image/webp"),
    ("woff2", "font/woff2"),
];

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo takes a path that does not exist for one that has always just changed. The folder may stay
    // empty; if it cannot be made, only time is lost.
    let _ = std::fs::create_dir_all(DIST);
    println!("cargo:rerun-if-changed={DIST}");
    println!("cargo:rerun-if-changed={NOT_BUILT}");
    println!("cargo:rerun-if-changed=build.rs");
    let dist = Path::new(DIST);
    let mut files: Vec<(String, PathBuf)> = Vec::new();
    if dist.join("index.html").is_file() {
        collect(dist, "", &mut files)?;
        files.sort();
    } else {
        files.push(("index.html".to_owned(), NOT_BUILT.into()));
    }
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let mut table =
        String::from("/// Every file of the dashboard.\npub(crate) static ASSETS: &[Asset] = &[\n");
    for (number, (path, file)) in files.iter().enumerate() {
        table.push_str(&embed(&out, number, path, file)?);
    }
    table.push_str("];\n");
    std::fs::write(out.join("dashboard.rs"), table)?;
    Ok(())
}

/// Every file below a folder, by its path from the top.
fn collect(
    folder: &Path,
    above: &str,
    files: &mut Vec<(String, PathBuf)>,
) -> Result<(), Box<dyn Error>> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name =
            entry.file_name().into_string().map_err(|name| format!("{name:?}: not UTF-8"))?;
        let path = format!("{above}{name}");
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{path}/"), files)?;
        } else if !name.ends_with(".map") {
            // Source maps are for those who have the sources.
            files.push((path, entry.path()));
        }
    }
    Ok(())
}

/// One line of the table. The file is copied first: what is compressed and what is not are the same.
fn embed(out: &Path, number: usize, path: &str, file: &Path) -> Result<String, Box<dyn Error>> {
    let extension = file.extension().and_then(|text| text.to_str()).unwrap_or_default();
    let media = MEDIA.iter().find(|(known, _)| *known == extension).map(|(_, media)| *media);
    let media = media.ok_or_else(|| format!("{}: add its kind to MEDIA", file.display()))?;
    let body = std::fs::read(file)?;
    std::fs::write(out.join(format!("asset-{number}")), &body)?;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&body)?;
    let gzip = encoder.finish()?;
    let include = |name: String| format!("include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}\"))");
    let compressed = match gzip.len() < body.len() {
        true => {
            std::fs::write(out.join(format!("asset-{number}.gz")), &gzip)?;
            format!("Some({})", include(format!("asset-{number}.gz")))
        }
        false => "None".to_owned(),
    };
    let mut line = String::new();
    writeln!(
        line,
        "    Asset {{ path: {path:?}, media: {media:?}, body: {}, gzip: {compressed} }},",
        include(format!("asset-{number}")),
    )?;
    Ok(line)
}
