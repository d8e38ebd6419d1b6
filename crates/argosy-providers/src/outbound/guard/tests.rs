use super::*;
use proptest::prelude::*;

#[test]
fn only_public_addresses_are_public() {
    let rows = [
        (
            true,
            "8.8.8.8 1.1.1.1 100.63.255.255 100.128.0.0 172.15.255.255 172.32.0.0 223.255.255.255",
        ),
        (true, "2600:: 2a00:1450:4001::1 2001:4860:4860::8888 2003::1"),
        (false, "0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.254"),
        (false, "169.254.169.254 172.16.0.1 172.31.255.255 192.168.0.1 192.0.0.8 198.18.0.1"),
        (false, "224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 203.0.113.9 192.88.99.1"),
        (false, ":: ::1 ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::127.0.0.1 64:ff9b::a00:1 64:ff9b:1::1"),
        (false, "fc00::1 fdff:: fe80::1 febf::1 fec0::1 ff02::1 2002:7f00:1:: 2001::1 2001:db8::1"),
        (false, "100::1 5f00::1 3fff::1"),
    ];
    for (expected, addresses) in rows {
        for address in addresses.split(' ') {
            assert_eq!(public(address.parse().unwrap()), expected, "{address}");
        }
    }
}

#[test]
fn allow_opens_exactly_what_it_names() {
    let rows = [
        ("127.0.0.0/8", "h", "127.9.9.9", true),
        ("127.0.0.0/8", "h", "128.0.0.1", true), // public anyway
        ("127.0.0.0/8", "h", "10.0.0.1", false),
        ("127.0.0.0/8", "h", "::ffff:127.0.0.1", false),
        ("10.1.2.3", "h", "10.1.2.3", true),
        ("10.1.2.3", "h", "10.1.2.4", false),
        ("0.0.0.0/0", "h", "10.1.2.4", true),
        ("0.0.0.0/0", "h", "::1", false),
        ("::1", "h", "::1", true),
        ("fd00::/8", "h", "fdab::1", true),
        ("fd00::/8", "h", "fc00::1", false),
        ("hooks.internal", "Hooks.Internal.", "10.0.0.1", true),
        ("hooks.internal", "evil-hooks.internal", "10.0.0.1", false),
    ];
    for (allow, host, address, expected) in rows {
        let guard = Guard::new(vec![allow.parse().unwrap()]);
        let answer = guard.check(host, address.parse().unwrap());
        assert_eq!(answer.is_ok(), expected, "{allow} {host} {address}");
    }
}

#[test]
fn an_allow_entry_is_an_address_a_network_or_a_name() {
    for text in ["", "10.0.0.0/33", "::/129", "10.0.0.0/x", "a/8", "a b", "http://x", "10.0.0.0/-1"]
    {
        assert!(text.parse::<Allow>().is_err(), "{text}");
    }
    for text in ["10.0.0.0/8", "fd00::/8", "hooks.internal"] {
        assert_eq!(text.parse::<Allow>().unwrap().to_string(), text);
    }
}

/// Every IPv4 address that must not be reached.
fn inside() -> impl Strategy<Value = Ipv4Addr> {
    let nets = RESERVED_V4.to_vec();
    (proptest::sample::select(nets), any::<u32>()).prop_map(|((net, prefix), bits)| {
        let host = u32::MAX.checked_shr(u32::from(prefix)).unwrap_or(0);
        Ipv4Addr::from_bits(net.to_bits() | bits & host)
    })
}

proptest! {
    /// Written as they may be, addresses inside stay inside: as a URL normalizes them, they are
    /// either no literal (and are looked up) or refused.
    #[test]
    fn no_spelling_of_an_inside_address_is_let_through(address in inside(), form in 0..9) {
        let bits = address.to_bits();
        let [a, b, c, d] = address.octets();
        let host = match form {
            0 => address.to_string(),
            1 => bits.to_string(),
            2 => format!("0x{bits:x}"),
            3 => format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
            4 => format!("{a}.{}", bits & 0x00ff_ffff),
            5 => format!("{address}."),
            6 => format!("[::ffff:{address}]"),
            7 => format!("[64:ff9b::{address}]"),
            _ => format!("[2002:{a:02x}{b:02x}:{c:02x}{d:02x}::1]"),
        };
        let url = reqwest::Url::parse(&format!("http://{host}/")).unwrap();
        let literal = url.host_str().unwrap();
        prop_assert!(Guard::new(Vec::new()).check_literal(literal).is_err(), "{literal}");
    }
}
