//! Turns `proto/` into Rust when the feature `rpc` is on. No `protoc` is needed: `protox` is one.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    #[cfg(feature = "rpc")]
    generate()?;
    Ok(())
}

#[cfg(feature = "rpc")]
fn generate() -> Result<(), Box<dyn std::error::Error>> {
    const FILES: [&str; 2] = ["navarch/control_plane.proto", "argosy/v1/node.proto"];
    let out = std::path::PathBuf::from(std::env::var("OUT_DIR")?);
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true).include_source_info(true).open_files(FILES)?;
    let descriptors = out.join("descriptors.bin");
    std::fs::write(&descriptors, compiler.encode_file_descriptor_set())?;
    let mut messages = connectrpc_build::CodeGenConfig::default();
    // Nothing here passes a message on, so what is not known would be kept for nobody.
    messages.preserve_unknown_fields = false;
    messages.emit_register_fn = false;
    connectrpc_build::Config::new()
        .buffa_config(messages)
        .generate_json(true)
        .files(&FILES)
        .descriptor_set(descriptors)
        // The directive that would be printed names a file this script writes: it would run each time.
        .emit_rerun_directives(false)
        .include_file("rpc.rs")
        .compile()?;
    Ok(())
}
