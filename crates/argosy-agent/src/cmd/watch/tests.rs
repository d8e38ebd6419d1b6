use super::*;
use crate::gpu::fake::Fake;
use crate::gpu::fake::injection::Injection;
use jiff::Timestamp;
use std::str::FromStr;

fn machine() -> (Inventory, Sweep) {
    let mut fake = Fake::parse("2xH100", "watch").unwrap();
    for fault in
        ["process:4711 gpu:0 name:python3", "throttle:HwThermalSlowdown gpu:1", "lost gpu:1"]
    {
        fake.inject(&Injection::from_str(fault).unwrap()).unwrap();
    }
    (fake.inventory().unwrap(), fake.sweep(Timestamp::UNIX_EPOCH).unwrap())
}

#[test]
fn a_picture_has_a_line_for_each_gpu_that_is_there_or_should_be() {
    let (inventory, sweep) = machine();
    let wide = picture(&inventory, Ok(&sweep), &Screen::plain(), false);
    let lines: Vec<&str> = wide.lines().collect();
    assert_eq!(lines.len(), 4, "{wide}");
    assert!(lines[0].starts_with("2 × H100 80GB HBM3, "), "{wide}");
    assert!(lines[1].starts_with("GPU  NAME"), "{wide}");
    assert!(lines[2].contains("python3"), "{wide}");
    assert!(lines[3].contains("GPU_IS_LOST"), "{wide}");
    for width in [30, 50, 80, 120] {
        let narrow = picture(&inventory, Ok(&sweep), &Screen::sized(Some(width), Some(24)), true);
        for line in narrow.lines() {
            assert!(line.chars().count() <= usize::from(width), "{width}: {line}");
        }
        assert!(narrow.contains("TEMP"), "what matters most stays: {narrow}");
    }
}

#[test]
fn a_driver_that_does_not_answer_is_said_and_not_shown_as_zero() {
    let hung = GpuError::Hung { call: "sweep".to_owned(), after: GPU_MAX, gpu: Some(3) };
    let text = picture(&Inventory::default(), Err(&hung), &Screen::plain(), true);
    assert!(text.contains("did not answer") && text.contains("doctor"), "{text}");
}

#[test]
fn times_are_read_and_silly_ones_are_refused() {
    let rows = [
        ("1s", Some(1_000)),
        ("500ms", Some(500)),
        ("2", Some(2_000)),
        ("1m", Some(60_000)),
        ("0s", None),
        ("1ms", None),
        ("2h", None),
        ("-1s", None),
        ("99999999999999999999s", None),
        ("18446744073709551615m", None),
        ("", None),
    ];
    for (text, expected) in rows {
        assert_eq!(every(text).ok(), expected.map(Duration::from_millis), "{text}");
    }
}
