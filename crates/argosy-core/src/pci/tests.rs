use super::PciAddress;

#[test]
fn every_way_of_writing_an_address_is_the_same_device() {
    for text in
        ["PCI:0000:41:00", "PCI:0000:41:00.0", "0000:41:00", "0000:41:00.0", "00000000:41:00.0"]
    {
        assert_eq!(PciAddress::parse(text).unwrap().to_string(), "0000:41:00.0", "{text}");
    }
    assert_eq!(PciAddress::parse("PCI:0019:01:1E.7").unwrap().to_string(), "0019:01:1e.7");
    assert_eq!(PciAddress::parse("abcdef01:ff:1f.7").unwrap().to_string(), "abcdef01:ff:1f.7");
}

#[test]
fn what_pci_cannot_address_is_refused() {
    for text in [
        "",
        "41",
        "41:00",
        "41:00.0",
        ":41:00.0",
        ":",
        "::",
        ".0",
        "0000:41:",
        "0000:41:20.0",
        "0000:41:00.8",
        "0000:100:00.0",
        "000000000:41:00.0",
        "0:0000:41:00.0",
        "+000:41:00.0",
        "0000:-1:00.0",
        "0000:41:00.0.0",
        "0000:zz:00.0",
        "PCI:PCI:41:00",
        "GPU-1b2c",
    ] {
        assert_eq!(PciAddress::parse(text), None, "{text}");
    }
}

#[test]
fn it_is_stored_as_text() {
    let address = PciAddress::parse("PCI:0000:41:00").unwrap();
    let json = serde_json::to_string(&address).unwrap();
    assert_eq!(json, "\"0000:41:00.0\"");
    assert_eq!(serde_json::from_str::<PciAddress>(&json).unwrap(), address);
    assert!(serde_json::from_str::<PciAddress>("\"here\"").is_err());
}
