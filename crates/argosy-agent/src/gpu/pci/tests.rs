use super::*;

#[test]
fn only_display_controllers_of_nvidia_count() {
    let sys = std::env::temp_dir().join(format!("argosy-pci-{}", std::process::id()));
    let rows = [
        ("0000:18:00.0", "0x10de\n", "0x030200\n"),
        ("0000:2a:00.0", "0x10de\n", "0x030000\n"),
        // An NVSwitch, another maker's card, a network card, garbage.
        ("0000:05:00.0", "0x10de\n", "0x068000\n"),
        ("0000:03:00.0", "0x1a03\n", "0x030000\n"),
        ("0000:06:00.0", "0x15b3\n", "0x020700\n"),
        ("nonsense", "\u{0}", ""),
    ];
    for (place, vendor, class) in rows {
        let device = sys.join("bus/pci/devices").join(place);
        std::fs::create_dir_all(&device).unwrap();
        std::fs::write(device.join("vendor"), vendor).unwrap();
        std::fs::write(device.join("class"), class).unwrap();
    }
    assert_eq!(nvidia_gpus(&sys), 2);
    std::fs::remove_dir_all(&sys).unwrap();
    assert_eq!(nvidia_gpus(&sys), 0);
}
