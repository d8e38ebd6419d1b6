use super::*;

#[test]
fn the_first_word_is_a_node_unless_it_is_a_fault() {
    let rows = [
        ("xid-79", Some((None, "xid-79"))),
        ("xid:79 gpu:3", Some((None, "xid:79 gpu:3"))),
        ("node/a-1 silent", Some((Some("a-1"), "silent"))),
        ("atlas.h100-1k xid:48 gpu:5", Some((Some("atlas.h100-1k"), "xid:48 gpu:5"))),
        ("a-1", None),
        ("a-1 nonsense", None),
    ];
    for (line, expected) in rows {
        let wish = wish(line.split(' ').map(str::to_owned).collect()).ok();
        let wish = wish.as_ref().map(|wish| (wish.node.as_deref(), wish.fault.as_str()));
        assert_eq!(wish, expected, "{line}");
    }
}
