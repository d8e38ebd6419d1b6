use super::*;
use crate::cmd::node::fixture::{HOSTILE, harmless, node, screen, times};

fn args(by: By, gpus: bool) -> Top {
    Top { nodes: Vec::new(), filter: Filter::default(), gpus, by, once: true }
}

fn measured(id: &str, util: f32, temperature: i16, power: u16, used_gib: u64) -> Node {
    let gpus = json!([{
        "index": 0, "name": "NVIDIA H100", "utilization": util, "temperature": temperature,
        "power": power, "memory_used": used_gib << 30, "memory_total": 80_u64 << 30,
    }]);
    node(id, json!({ "gpus": gpus }))
}

#[test]
fn a_picture_has_totals_nodes_and_gpus() {
    let nodes = vec![
        node("gpu-1", json!({ "metrics": { "cpu_percent": 3.0, "memory_percent": 9.0 } })),
        node("gpu-2", json!({ "status": "CORDONED", "gpus": [], "last_heartbeat": null })),
    ];
    assert_eq!(
        draw(&screen(None), &args(By::Util, true), nodes, times(), false),
        "\
2 nodes (1 ACTIVE, 1 CORDONED), 2 GPUs, 85% busy, 80/160 GiB, 1.0 kW
NODE   POOL  STATUS    GPUS     UTIL  MEMORY   TEMP  POWER  CPU  HEARD
gpu-1  h100  ACTIVE    2x H100  85%   80/160G  71C   1000W  3%   4s
  0                    H100     80%   40/80G   61C   500W
  1                    H100     90%   40/80G   71C   500W
gpu-2  h100  CORDONED  -        -     -        -     -      -    -
"
    );
}

#[test]
fn the_highest_is_first_and_who_says_nothing_last() {
    let fleet = || {
        vec![
            node("mute", json!({ "gpus": [] })),
            measured("b", 10.0, 90, 300, 70),
            measured("a", 99.0, 50, 700, 10),
            measured("c", 50.0, 60, 500, 40),
        ]
    };
    let rows = [
        (By::Util, "a c b mute"),
        (By::Temp, "b c a mute"),
        (By::Power, "a c b mute"),
        (By::Memory, "b c a mute"),
        (By::Node, "a b c mute"),
    ];
    for (by, expected) in rows {
        let mut nodes = fleet();
        sort(&mut nodes, by);
        let ids: Vec<&str> = nodes.iter().map(|node| node.id.as_str()).collect();
        assert_eq!(ids.join(" "), expected, "{by:?}");
    }
}

#[test]
fn a_picture_fits_the_terminal() {
    let nodes: Vec<Node> = (0..100).map(|place| node(&format!("gpu-{place}"), json!({}))).collect();
    let screen = Screen::sized(Some(80), Some(24));
    let picture = draw(&screen, &args(By::Node, true), nodes, times(), true);
    assert!(picture.lines().all(|line| line.chars().count() <= 80), "{picture}");
    let shown = screen.in_place(&picture, "the last line");
    assert_eq!(shown.matches('\n').count(), 23, "{shown}");
    assert!(shown.contains("… and 281 more lines"), "{shown}");
    assert!(shown.starts_with("\u{1b}[H") && shown.ends_with("\u{1b}[J"));
}

#[test]
fn odd_measurements_break_nothing() {
    for percent in [-5.0, 250.0, f32::INFINITY] {
        let text = busy(percent, true);
        assert!(text.ends_with("  0%") || text.ends_with("100%"), "{text}");
    }
    assert_eq!(busy(50.0, true), "▇▇▇▇····  50%");
    assert_eq!(kilowatts(999), "999 W");
    assert_eq!(kilowatts(41_280), "41.2 kW");
    assert_eq!(totals(&[]), "no nodes, 0 GPUs");
}

#[test]
fn j14_a_picture_of_hostile_texts_is_harmless() {
    let hostile = json!({
        "pool": HOSTILE, "last_heartbeat": HOSTILE, "gpus": [{ "index": 0, "name": HOSTILE }],
    });
    for width in [None, Some(80)] {
        let nodes = vec![node(HOSTILE, hostile.clone())];
        harmless(&draw(&screen(width), &args(By::Util, true), nodes, times(), true));
    }
}
