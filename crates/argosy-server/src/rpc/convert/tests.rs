use super::{cut, metric, node, node_time, nth, number, seconds, word};
use argosy_api::rpc::{TimestampView, navarch as theirs, node as ours};
use argosy_core::command::{CommandKind, Outcome};
use argosy_core::health::{EventType, HealthState, MESSAGE_LEN_MAX, Metric, System};
use argosy_core::node::NodeStatus;
use buffa::{EnumValue, Enumeration, MessageFieldView};
use jiff::SignedDuration;

/// The names of a wire's numbers are our words for them.
fn check_words<E: Enumeration>(prefix: &str, first: i32, words: &[&str]) {
    for (at, word) in (first..).zip(words) {
        let value = E::from_i32(at).unwrap_or_else(|| panic!("{prefix} has no {at}"));
        let name = value.proto_name().strip_prefix(prefix).unwrap();
        // What we call unknown, ours calls unspecified.
        let unset = at == 0 && ["UNKNOWN", "UNSPECIFIED"].contains(&name);
        assert!(unset || name.eq_ignore_ascii_case(word), "{at} is {name}, not {word}");
    }
    let beyond = first + i32::try_from(words.len()).unwrap();
    assert!(prefix.contains("COMMAND_STATE") || E::from_i32(beyond).is_none(), "{prefix}{beyond}");
}

#[test]
fn numbers_mean_the_same_on_both_wires_and_in_the_core() {
    let status = NodeStatus::ALL.map(NodeStatus::as_str);
    check_words::<theirs::NodeStatus>("NODE_STATUS_", 0, &status);
    check_words::<ours::NodeStatus>("NODE_STATUS_", 0, &status);
    let health = HealthState::ALL.map(HealthState::as_str);
    check_words::<theirs::HealthStatus>("HEALTH_STATUS_", 0, &health);
    check_words::<ours::HealthStatus>("HEALTH_STATUS_", 0, &health);
    let kinds = CommandKind::ALL.map(CommandKind::as_str);
    check_words::<theirs::NodeCommandType>("NODE_COMMAND_TYPE_", 1, &kinds);
    check_words::<ours::CommandType>("COMMAND_TYPE_", 1, &kinds);
    let events: Vec<&str> = EventType::ALL.iter().map(|kind| kind.as_str()).collect();
    let (navarchs, added) = events.split_at(events.len() - 2);
    assert_eq!(added, ["sxid", "host"]);
    check_words::<theirs::HealthEventType>("HEALTH_EVENT_TYPE_", 0, navarchs);
    check_words::<ours::HealthEventType>("HEALTH_EVENT_TYPE_", 0, &events);
    let systems: Vec<&str> = System::ALL
        .iter()
        .map(|system| system.as_str().trim_start_matches("DCGM_HEALTH_WATCH_"))
        .collect();
    check_words::<theirs::HealthWatchSystem>("HEALTH_WATCH_SYSTEM_", 0, &systems);
    check_words::<ours::HealthSystem>("HEALTH_SYSTEM_", 0, &systems);
}

#[test]
fn a_number_that_the_wire_does_not_have_means_nothing() {
    let sxid = EnumValue::<theirs::HealthEventType>::from(10);
    assert_eq!(nth(EventType::ALL, sxid), None);
    assert_eq!(nth(EventType::ALL, EnumValue::<theirs::HealthEventType>::from(-1)), None);
    let xid = EnumValue::<theirs::HealthEventType>::from(1);
    assert_eq!(nth(EventType::ALL, xid), Some(EventType::Xid));
    assert_eq!(number(EventType::ALL, &EventType::Sxid), 10);
}

#[test]
fn measurements_are_what_they_look_like() {
    for (text, expected) in [
        ("79", Metric::Int(79)),
        ("-1", Metric::Int(-1)),
        ("91.5", Metric::Float(91.5)),
        ("1e3", Metric::Float(1000.0)),
        ("99999999999999999999", Metric::Float(1e20)),
        ("true", Metric::Bool(true)),
        ("false", Metric::Bool(false)),
        ("NaN", Metric::Text("NaN".to_owned())),
        ("-inf", Metric::Text("-inf".to_owned())),
        ("1e999", Metric::Text("1e999".to_owned())),
        ("0x1f", Metric::Text("0x1f".to_owned())),
        ("", Metric::Text(String::new())),
    ] {
        assert_eq!(metric(text), expected, "{text}");
    }
}

#[test]
fn a_nodes_clock_is_brought_to_what_a_clock_can_show() {
    let read = |seconds, nanos| {
        let time = TimestampView { seconds, nanos, ..Default::default() };
        node_time(&MessageFieldView::some(time), || "time".to_owned())
            .map(|time| time.unwrap().to_string())
    };
    for (seconds, nanos, expected) in [
        (1_700_000_000, 5, "2023-11-14T22:13:20.000000005Z"),
        (-1, 999_999_999, "1970-01-01T00:00:00Z"),
        (-62_135_596_800, 0, "1970-01-01T00:00:00Z"),
        (253_402_300_799, 7, "2200-01-01T00:00:00Z"),
    ] {
        assert_eq!(read(seconds, nanos).unwrap(), expected, "{seconds}.{nanos}");
    }
    for (seconds, nanos) in
        [(253_402_300_800, 0), (i64::MIN, 0), (i64::MAX, 0), (0, -1), (0, 1_000_000_000)]
    {
        let error = read(seconds, nanos).unwrap_err();
        assert_eq!(error.message, "time is not a time between the years 1 and 9999");
    }
    assert_eq!(node_time(&MessageFieldView::unset(), String::new), Ok(None));
}

#[test]
fn an_interval_is_one_that_a_timer_accepts() {
    for (interval, expected) in [
        (SignedDuration::from_millis(500), 1),
        (SignedDuration::ZERO, 1),
        (SignedDuration::from_secs(-5), 1),
        (SignedDuration::from_secs(30), 30),
        (SignedDuration::MAX, u32::MAX),
    ] {
        assert_eq!(seconds(interval), expected, "{interval:?}");
    }
}

#[test]
fn texts_have_an_end() {
    let long = "é".repeat(MESSAGE_LEN_MAX);
    assert_eq!(cut(&long).len(), MESSAGE_LEN_MAX);
    assert_eq!(cut(&format!("x{long}")).len(), MESSAGE_LEN_MAX - 1);
    assert_eq!(cut("short"), "short");
    let check = |text: &str| {
        let read = word(text, || "zone".to_owned());
        read.map(str::to_owned).map_err(|error| error.message)
    };
    assert_eq!(check("us-east1-b"), Ok("us-east1-b".to_owned()));
    let message = "zone is 257 bytes long; at most 256 are allowed".to_owned();
    assert_eq!(check(&"x".repeat(257)), Err(message));
    for text in ["a\nb", "\u{1b}[31m", "\u{0}"] {
        let message = "zone may not hold control characters".to_owned();
        assert_eq!(check(text), Err(message), "{text:?}");
    }
}

#[test]
fn how_a_command_ended_follows_from_what_the_node_says() {
    use ours::{CommandState as State, DrainOutcome as Drain};
    let id = "0190b3a2-7c4e-7d11-8a5b-2f3c4d5e6f70";
    let read = |state: State, outcome: Drain, progress_percent: u32, result_json: &str| {
        let (state, outcome) = (state.into(), outcome.into());
        let command_id = id;
        node::ack(&ours::CommandAckView {
            command_id,
            state,
            outcome,
            progress_percent,
            result_json,
            ..Default::default()
        })
    };
    let unset = Drain::DRAIN_OUTCOME_UNSPECIFIED;
    for (state, outcome, expected) in [
        (State::COMMAND_STATE_ACKNOWLEDGED, unset, None),
        (State::COMMAND_STATE_RUNNING, Drain::DRAIN_OUTCOME_DRAINED, None),
        (State::COMMAND_STATE_COMPLETED, unset, Some(Outcome::Completed)),
        (State::COMMAND_STATE_COMPLETED, Drain::DRAIN_OUTCOME_DRAINED, Some(Outcome::Drained)),
        (State::COMMAND_STATE_COMPLETED, Drain::DRAIN_OUTCOME_FORCED, Some(Outcome::Forced)),
        (State::COMMAND_STATE_COMPLETED, Drain::DRAIN_OUTCOME_TIMED_OUT, Some(Outcome::TimedOut)),
        (State::COMMAND_STATE_FAILED, unset, Some(Outcome::Failed)),
        (State::COMMAND_STATE_FAILED, Drain::DRAIN_OUTCOME_TIMED_OUT, Some(Outcome::TimedOut)),
        (State::COMMAND_STATE_FAILED, Drain::DRAIN_OUTCOME_CANCELLED, Some(Outcome::Cancelled)),
        (State::COMMAND_STATE_FAILED, Drain::DRAIN_OUTCOME_DRAINED, Some(Outcome::Failed)),
    ] {
        let (_, ack) = read(state, outcome, 0, "").unwrap();
        assert_eq!((ack.outcome, ack.progress), (expected, None), "{state:?} {outcome:?}");
    }
    let done = State::COMMAND_STATE_COMPLETED;
    for (read, field) in [
        (read(State::COMMAND_STATE_UNSPECIFIED, unset, 0, ""), "state"),
        (read(State::COMMAND_STATE_EXPIRED, unset, 0, ""), "state"),
        (read(done, unset, 101, ""), "progress_percent"),
        (read(done, unset, 0, "{"), "result_json"),
        (read(done, unset, 0, &"[".repeat(1000)), "result_json"),
        (read(done, unset, 0, &format!("\"{}\"", "x".repeat(65_536))), "result_json"),
    ] {
        assert_eq!(read.unwrap_err().field, field);
    }
    let (_, ack) = read(done, unset, 100, r#"{"passed":true}"#).unwrap();
    assert_eq!(ack.result, Some(serde_json::json!({"passed": true})));
    let nameless = ours::CommandAckView { command_id: "1", ..Default::default() };
    assert_eq!(node::ack(&nameless).unwrap_err().field, "command_id");
}

#[test]
fn r2_i4_unknown_is_not_zero_and_an_older_agent_measures_all() {
    use argosy_api::rpc::unmeasured;
    use buffa::view::RepeatedView;
    let heartbeat = |cpu: u32, gpu: u32| {
        let gpu = ours::GpuMetricsView { index: 2, unmeasured: gpu, ..Default::default() };
        let metrics = ours::NodeMetricsView {
            memory_usage_percent: 12.5,
            gpus: RepeatedView::new(vec![gpu]),
            unmeasured: cpu,
            ..Default::default()
        };
        let beat =
            ours::HeartbeatView { metrics: MessageFieldView::some(metrics), ..Default::default() };
        node::heartbeat(&beat).unwrap().sample.unwrap()
    };
    let old = heartbeat(0, 0);
    assert_eq!((old.cpu_percent, old.memory_percent), (Some(0.0), Some(12.5)));
    let gpu = old.gpus[0];
    assert_eq!((gpu.index, gpu.utilization, gpu.temperature), (2, Some(0.0), Some(0)));
    assert_eq!((gpu.ecc_corrected, gpu.memory_used, gpu.power), (Some(0), Some(0), Some(0)));
    let mig = heartbeat(unmeasured::CPU, unmeasured::GPU_UTILIZATION);
    assert_eq!((mig.cpu_percent, mig.memory_percent), (None, Some(12.5)));
    assert_eq!((mig.gpus[0].utilization, mig.gpus[0].power), (None, Some(0)));
    let all = heartbeat(u32::MAX, u32::MAX).gpus[0];
    assert_eq!((all.index, all.temperature, all.ecc_uncorrected), (2, None, None));
}
