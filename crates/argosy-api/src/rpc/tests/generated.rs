//! The committed code is what the generator makes of `proto/` today.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const FILES: [&str; 2] = ["navarch/control_plane.proto", "argosy/v1/node.proto"];

/// A directory for one run of the generator, removed in the end.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left behind is in the temporary directory.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Generates everything. No `protoc` is needed: `protox` is one.
fn generate(out: &Path) {
    let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    let mut compiler = protox::Compiler::new([proto]).expect("the directory");
    compiler.include_imports(true).include_source_info(true);
    compiler.open_files(FILES).expect("correct files");
    let descriptors = out.join("descriptors.bin");
    std::fs::write(&descriptors, compiler.encode_file_descriptor_set()).expect("a file");
    let mut messages = connectrpc_build::CodeGenConfig::default();
    // Nothing here passes a message on, so what is not known would be kept for nobody.
    messages.preserve_unknown_fields = false;
    messages.emit_register_fn = false;
    connectrpc_build::Config::new()
        .buffa_config(messages)
        .generate_json(true)
        .files(&FILES)
        .descriptor_set(&descriptors)
        .out_dir(out)
        .emit_rerun_directives(false)
        .include_file("rpc.rs")
        .compile()
        .expect("code");
    std::fs::remove_file(descriptors).expect("it was written");
}

fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    entries
        .map(|entry| {
            let text = std::fs::read_to_string(entry.path()).expect("text");
            (entry.file_name().to_string_lossy().into_owned(), text)
        })
        .collect()
}

#[test]
fn the_generated_code_is_current() {
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rpc/generated");
    let name = format!("argosy-rpc-{}", std::process::id());
    let scratch = Scratch(std::env::temp_dir().join(name));
    std::fs::create_dir_all(&scratch.0).expect("a directory");
    generate(&scratch.0);
    let made = files(&scratch.0);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::remove_dir_all(&committed).expect("the old code goes");
        std::fs::create_dir_all(&committed).expect("a directory");
        for (name, text) in &made {
            std::fs::write(committed.join(name), text).expect("a file");
        }
    }
    let there = files(&committed);
    let names = |files: &BTreeMap<String, String>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&there), names(&made), "run `make docs`");
    for (name, text) in &made {
        assert!(
            there.get(name) == Some(text),
            "{name} differs from what is generated: run `make docs`"
        );
    }
}
