use super::{Flood, KEYS_MAX};
use crate::signal::{GpuRef, Signal, SignalKind};
use jiff::{SignedDuration, Timestamp};

fn at(seconds: f64) -> Timestamp {
    Timestamp::from_microsecond((seconds * 1e6) as i64).unwrap()
}

fn xid(code: u32, gpu: u32, seconds: f64) -> Signal {
    Signal::once(SignalKind::Xid, at(seconds), "x").with("xid_code", code).on(GpuRef {
        index: gpu,
        uuid: format!("GPU-{gpu}"),
        serial: String::new(),
    })
}

fn told(signals: &[Signal]) -> Vec<String> {
    let told = |signal: &Signal| {
        let code = signal.metrics.get("xid_code").cloned().unwrap_or_default();
        let times = (signal.first.as_millisecond(), signal.last.as_millisecond());
        format!("{code} ×{} {}..{}", signal.count, times.0, times.1)
    };
    signals.iter().map(told).collect()
}

#[test]
fn n7_a_thousand_a_second_are_one_at_once_and_one_a_window() {
    let mut flood = Flood::new(SignedDuration::from_secs(30));
    let mut out = Vec::new();
    // 100 seconds of 1,000 faults a second.
    for n in 0..100_000 {
        let seconds = f64::from(n) / 1000.0;
        out.extend(flood.due(at(seconds)));
        out.extend(flood.on(xid(79, 3, seconds), at(seconds)));
    }
    out.extend(flood.finish());
    assert_eq!(
        told(&out),
        [
            "79 ×1 0..0",
            "79 ×29999 1..29999",
            "79 ×30000 30000..59999",
            "79 ×30000 60000..89999",
            "79 ×10000 90000..99999",
        ]
    );
    assert_eq!(out.iter().map(|signal| u64::from(signal.count)).sum::<u64>(), 100_000);
}

#[test]
fn another_code_gpu_or_severity_is_news() {
    let mut flood = Flood::default();
    let memory = |severity: &str| {
        Signal::once(SignalKind::Host, at(0.0), "x")
            .with("signal", "memory-error")
            .with("severity", severity)
    };
    let news = [
        xid(79, 3, 0.0),
        xid(48, 3, 0.0),
        xid(79, 4, 0.0),
        memory("corrected"),
        memory("uncorrected"),
    ];
    for signal in news {
        assert!(flood.on(signal.clone(), at(0.0)).is_some(), "{signal:?}");
        assert!(flood.on(signal.clone(), at(0.1)).is_none(), "{signal:?}");
    }
}

#[test]
fn after_a_quiet_window_the_next_goes_out_at_once() {
    let mut flood = Flood::new(SignedDuration::from_secs(30));
    assert_eq!(flood.next_due(), None);
    assert!(flood.on(xid(79, 3, 0.0), at(0.0)).is_some());
    assert!(flood.on(xid(79, 3, 1.0), at(1.0)).is_none());
    assert_eq!(flood.next_due(), Some(at(30.0)));
    assert!(flood.due(at(29.9)).is_empty());
    assert_eq!(told(&flood.due(at(30.0))), ["79 ×1 1000..1000"]);
    assert!(flood.on(xid(79, 3, 31.0), at(31.0)).is_none(), "it has just been said");
    assert_eq!(told(&flood.due(at(60.0))), ["79 ×1 31000..31000"]);
    assert!(flood.due(at(90.0)).is_empty());
    assert_eq!(flood.next_due(), None);
    assert!(flood.on(xid(79, 3, 91.0), at(91.0)).is_some());
}

#[test]
fn a_clock_set_back_does_not_hold_signals() {
    let mut flood = Flood::new(SignedDuration::from_secs(30));
    assert!(flood.on(xid(79, 3, 5000.0), at(5000.0)).is_some());
    assert!(flood.on(xid(79, 3, 5001.0), at(5001.0)).is_none());
    assert_eq!(flood.due(at(100.0)).len(), 1);
}

#[test]
fn garbage_of_many_codes_is_counted_together() {
    let mut flood = Flood::default();
    let codes = u32::try_from(KEYS_MAX).unwrap() + 1000;
    let sent = (0..codes).filter_map(|code| flood.on(xid(code, 0, 1.0), at(1.0))).count();
    assert_eq!(sent, KEYS_MAX + 1, "one more speaks for all the rest");
    let rest = flood.due(at(31.0));
    assert_eq!(rest.iter().map(|signal| signal.count).sum::<u32>(), 999);
    assert!(flood.on(Signal::once(SignalKind::Thermal, at(31.0), "hot"), at(31.0)).is_some());
}
