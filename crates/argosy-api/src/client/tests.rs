use super::*;

#[test]
fn names_in_paths_are_escaped() {
    let rows = [
        (Collection::Clusters, "a-b", "/api/hyperfleet/v1/clusters/a-b"),
        (Collection::Clusters, "../x", "/api/hyperfleet/v1/clusters/%2E%2E%2Fx"),
        (Collection::NodePools("c d"), "p", "/api/hyperfleet/v1/clusters/c%20d/nodepools/p"),
        (Collection::AllNodePools, "é", "/api/hyperfleet/v1/nodepools/%C3%A9"),
    ];
    for (collection, id, path) in rows {
        assert_eq!(collection.item(id), path);
    }
}

#[test]
fn events_are_cut_at_empty_lines_however_they_arrive() {
    let text = ": hello\n\nevent: ADDED\ndata: {\"type\":\"ADDED\",\"revision\":7}\n\n\
                event: BOOKMARK\nid: 9\ndata: {\"type\":\"BOOKMARK\",\"revision\":9}\n\n";
    let (mut buffer, mut seen) = (Vec::new(), Vec::new());
    for byte in text.bytes() {
        buffer.push(byte);
        while let Some(block) = take_block(&mut buffer) {
            seen.extend(parse(&block).map(|(id, event)| (event.kind, event.revision, id)));
        }
    }
    assert_eq!(seen, [(WatchKind::Added, 7, None), (WatchKind::Bookmark, 9, Some(9))]);
    assert!(buffer.is_empty());
}
