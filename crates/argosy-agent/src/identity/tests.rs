use super::{Identity, is_own};
use crate::host::Roots;

#[test]
fn an_id_must_be_this_machines_own() {
    let check = |id: &str, expected: bool| assert_eq!(is_own(id), expected, "{id}");
    check("4C4C4544-0042-3510-8052-B4C04F4E4E32", true);
    check("cd2d49dd0a4a4810b66a5e55f400943c", true);
    check("00000000-0000-0000-0000-000000000000", false);
    check("FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", false);
    check("03000200-0400-0500-0006-000700080009", false);
    check("Not Settable", false);
    check("", false);
    check(&"1a".repeat(40), false);
}

#[test]
fn a_machine_says_who_it_is() {
    let directory = std::env::temp_dir().join(format!("argosy-identity-{}", std::process::id()));
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("proc/sys/kernel/hostname", "gpu-17.example\n");
    write("proc/sys/kernel/osrelease", "6.8.0-nvidia\n");
    write("proc/sys/kernel/random/boot_id", "b007-1\n");
    write("etc/machine-id", "cd2d49dd0a4a4810b66a5e55f400943c\n");
    let read = || Identity::read(&Roots::under(&directory));
    let identity = read();
    assert_eq!(identity.node_id.as_deref(), Some("gpu-17.example"));
    assert_eq!(identity.kernel_version, "6.8.0-nvidia");
    assert_eq!(identity.boot_id, "b007-1");
    assert_eq!(identity.machine_id, "cd2d49dd0a4a4810b66a5e55f400943c");
    assert_eq!(identity.agent_version, env!("CARGO_PKG_VERSION"));
    // The firmware knows better, unless it says nothing of use.
    write("sys/class/dmi/id/product_uuid", "00000000-0000-0000-0000-000000000000\n");
    assert_eq!(read().machine_id, "cd2d49dd0a4a4810b66a5e55f400943c");
    write("sys/class/dmi/id/product_uuid", "4C4C4544-0042-3510-8052-B4C04F4E4E32\n");
    assert_eq!(read().machine_id, "4c4c4544-0042-3510-8052-b4c04f4e4e32");
    // A name that cannot be a node's is not made one.
    write("proc/sys/kernel/hostname", "(none)\n");
    assert_eq!((read().node_id, read().hostname.as_str()), (None, "(none)"));
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn this_machine_has_a_name_and_a_boot() {
    let identity = Identity::read(&Roots::default());
    assert!(!identity.hostname.is_empty() && !identity.kernel_version.is_empty());
    assert!(!identity.boot_id.is_empty());
    assert!(identity.internal_ip.is_none_or(|ip| !ip.is_loopback()));
}
