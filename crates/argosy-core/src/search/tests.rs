use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

type Filter = super::Filter<Resource>;
type Order = super::Order<Resource>;

/// A cluster whose every field has something in it.
fn cluster() -> Resource {
    let at = "2026-03-01T12:00:00Z";
    resource(json!({
        "id": "0195a000-0000-7000-8000-000000000001",
        "kind": "Cluster",
        "name": "prod-east",
        "tenant": "acme",
        "spec": {
            "provider": "gcp", "region": "us-east1", "nodeCount": 12, "enabled": true,
            "counter": "7", "note": "It's 50% off_", "zones": ["a", "b"], "none": null,
            "release": { "channelGroup": "stable", "my-flag": "on" },
        },
        "labels": { "team": "platform", "my-key": "x", "app.kubernetes.io/name": "db", "shard": "3" },
        "generation": 2,
        "created": { "at": "2026-01-01T00:00:00Z", "by": "ada" },
        "updated": { "at": at, "by": "bob" },
        "started": at,
        "phase_since": "2026-04-01T00:00:00Z",
        "conditions": [{
            "type": "Reconciled", "status": "True", "reason": "ReconciledAll",
            "observed_generation": 2, "created_time": at, "last_updated_time": at,
            "last_transition_time": at,
        }],
    }))
}

/// A pool on a `platform`, being deleted, about which nothing is known.
fn pool() -> Resource {
    resource(json!({
        "id": "0195a000-0000-7000-8000-000000000002",
        "kind": "NodePool",
        "name": "workers",
        "tenant": "acme",
        "owner": "0195a000-0000-7000-8000-000000000001",
        "spec": { "platform": { "type": "gcp", "gcp": { "region": "us-east1" } }, "nodeCount": "many" },
        "generation": 1,
        "created": { "at": "2026-02-01T00:00:00Z", "by": "ada" },
        "updated": { "at": "2026-02-01T00:00:00Z", "by": "ada" },
        "deletion": { "at": "2026-05-01T00:00:00Z", "by": "eve" },
        "phase_since": "2026-02-01T00:00:00Z",
    }))
}

fn resource(document: Value) -> Resource {
    serde_json::from_value(document).unwrap()
}

/// Which of the two match: `cluster`, `pool`, `both` or `none`.
#[track_caller]
fn check(search: &str, expected: &str) {
    let filter = Filter::parse(search).unwrap_or_else(|error| panic!("{search}: {error}"));
    let matched = match (filter.matches(&cluster()), filter.matches(&pool())) {
        (true, true) => "both",
        (true, false) => "cluster",
        (false, true) => "pool",
        (false, false) => "none",
    };
    assert_eq!(matched, expected, "{search}");
    assert_eq!(Filter::parse(&filter.to_string()), Ok(filter), "{search} printed and read again");
}

#[track_caller]
fn refuse(search: &str, expected: &str) {
    assert_eq!(Filter::parse(search).unwrap_err().to_string(), expected, "{search}");
}

#[test]
fn every_field_can_be_asked() {
    check("id = '0195a000-0000-7000-8000-000000000001'", "cluster");
    check("kind = 'NodePool'", "pool");
    check("name = 'prod-east'", "cluster");
    check("href = '/api/hyperfleet/v1/clusters/0195a000-0000-7000-8000-000000000001'", "cluster");
    check("href like '%/nodepools/0195a000-0000-7000-8000-000000000002'", "pool");
    check("owner_id = '0195a000-0000-7000-8000-000000000001'", "pool");
    check("owner_kind = 'Cluster'", "pool");
    check("generation = 2", "cluster");
    check("created_by = 'ada'", "both");
    check("updated_by = 'bob'", "cluster");
    check("deleted_by = 'eve'", "pool");
    check("provider = 'gcp'", "both");
    check("region = 'us-east1'", "both");
    check("spec.region = 'us-east1'", "cluster");
    check("phase = 'Ready'", "cluster");
    check("status.phase = 'Terminating'", "pool");
    check("created_time < '2026-01-15T00:00:00Z'", "cluster");
    check("created_at < '2026-01-15'", "cluster");
    check("updated_time > '2026-03-15'", "none");
    check("updated_at > '2026-03-15'", "cluster");
    check("deleted_time is null", "cluster");
    check("deleted_time >= 2026-05-01", "pool");
    check("deleted_time <= 2026-05-01T02:00:00+02:00", "pool");
    check("status.conditions.Reconciled = 'True'", "cluster");
    check("status.conditions.Reconciled = true", "cluster");
    check("status.conditions.Reconciled != 'Unknown'", "cluster");
    check("status.conditions.Reconciled.reason = 'ReconciledAll'", "cluster");
    check("status.conditions.Reconciled.observed_generation >= 2", "cluster");
    check("status.conditions.Reconciled.last_updated_time < '2026-06-01T00:00:00Z'", "cluster");
    check("status.conditions.Reconciled.last_transition_time > '2026-06-01T00:00:00Z'", "none");
}

#[test]
fn labels_and_specs_are_reached_by_any_name() {
    check("labels.team='platform'", "cluster");
    check("labels.my-key = 'x'", "cluster");
    check("labels.app.kubernetes.io/name = 'db'", "cluster");
    check("labels.non_existing_label='value'", "none");
    check("spec.nodeCount >= 10", "cluster");
    check("spec.release.channelGroup = 'stable'", "cluster");
    check("spec.release.my-flag = 'on'", "cluster");
    check("spec.zones.1 = 'b'", "cluster");
    check("spec.enabled = true", "cluster");
    check("spec.platform.gcp.region = 'us-east1'", "pool");
}

#[test]
fn every_operator_works_and_keywords_have_no_case() {
    check("name == 'workers'", "pool");
    check("name <> 'workers'", "cluster");
    check("generation BETWEEN 2 AND 3", "cluster");
    check("generation not between 2 and 3", "pool");
    check("created_time between '2026-01-31' and '2026-02-01'", "pool");
    check("name IN ('workers', 'others')", "pool");
    check("name in ['workers','prod-east',]", "both");
    check("name Not In ('workers')", "cluster");
    check("spec.nodeCount in (11, 12)", "cluster");
    check("labels.team IS NOT NULL", "cluster");
    check("labels.team is null", "pool");
    check("name LIKE 'prod-%'", "cluster");
    check("name like '_orkers'", "pool");
    check("name not like '%k%'", "cluster");
    check("created_by ilike 'A_A'", "both");
    check("created_by like 'A_A'", "none");
    check(
        "generation > 1.5 and generation < 1k and generation < 1Ki and generation > -1e3",
        "cluster",
    );
}

#[test]
fn not_and_or_bind_in_this_order() {
    check("not name = 'workers'", "cluster");
    check("not not name = 'workers'", "pool");
    check("not labels.team = 'platform'", "pool");
    check("NOT status.conditions.Reconciled = 'True'", "pool");
    check("not (name = 'workers' or name = 'prod-east')", "none");
    check("not name = 'workers' and name = 'workers'", "none");
    check("name = 'workers' or name = 'prod-east' and kind = 'NodePool'", "pool");
    check("(name = 'workers' or name = 'prod-east') and kind = 'Cluster'", "cluster");
    check("labels.team='platform' and labels.my-key='x'", "cluster");
    check("", "both");
    check(" \t\r\n ", "both");
}

#[test]
fn what_is_not_there_matches_only_null_and_not() {
    check("labels.team != 'other'", "cluster");
    check("labels.team not in ('other')", "cluster");
    check("labels.team not like 'other'", "cluster");
    check("not labels.team = 'other'", "both");
    check("spec.none is null", "both");
    check("spec.zones is not null", "cluster");
    check("spec.nothing.at.all is null", "both");
}

#[test]
fn values_of_another_type_do_not_match_and_do_not_fail() {
    check("spec.nodeCount < 100", "cluster");
    check("spec.nodeCount != 100", "cluster");
    check("spec.nodeCount not in (100)", "cluster");
    check("spec.nodeCount not between 1 and 2", "cluster");
    check("spec.zones = 'a' or spec.zones != 'a' or spec.zones like '%'", "none");
    check("spec.release > 3", "none");
    check("spec.enabled > 3", "none");
    check("spec.counter = 7", "cluster");
    check("spec.counter = 7.0", "cluster");
    check("spec.nodeCount = '12'", "cluster");
    check("spec.nodeCount like '1%'", "cluster");
    check("spec.enabled = 'true'", "cluster");
    check("labels.shard > 2", "cluster");
    check("name > 3 or name <= 3", "none");
    check("name = true", "none");
    check("name in (3, 'workers')", "pool");
}

#[test]
fn quotes_and_escapes_are_read() {
    for quoted in
        [r"'It''s 50% off_'", r"'It\'s 50% off_'", r#""It's 50% off_""#, r"`It's 50% off_`"]
    {
        check(&format!("spec.note = {quoted}"), "cluster");
    }
    check(r"spec.note like '%50\\%%'", "cluster");
    check(r"spec.note like '%off\\_'", "cluster");
    check(r"spec.note like '%of\\_%'", "none");
    check(r"spec.note = 'a\\b'", "none");
    check("name = ''", "none");
    check("name = ''''", "none");
    check("name != 'größe' and name != '日本'", "both");
}

#[test]
fn words_with_few_values_are_checked() {
    check("phase = 'NotReady'", "none");
    check("phase in ('Ready', 'Terminating')", "both");
    refuse(
        "phase = 'ready'",
        "Invalid phase value 'ready'. Supported values: Not Ready, Ready, Pending, Terminating \
         (at character 9)",
    );
    refuse(
        "status.conditions.Reconciled = 'yes'",
        "expected 'True', 'False' or 'Unknown', found the text 'yes' (at character 32)",
    );
    refuse(
        "generation = 'two'",
        "expected a number, because generation is one, found the text 'two' (at character 14)",
    );
    refuse(
        "created_time > 'yesterday'",
        "expected a time like '2026-01-31T12:00:00Z' or '2026-01-31', found the text 'yesterday' \
         (at character 16)",
    );
    refuse(
        "created_time between 1 and 2",
        "expected a time like '2026-01-31T12:00:00Z' or '2026-01-31', found the number 1 \
         (at character 22)",
    );
    refuse(
        "generation like '1%'",
        "generation is a number, and a pattern needs text; compare it by `<` (at character 17)",
    );
}

#[test]
fn an_unknown_field_is_told_the_nearest() {
    refuse("nam = 'x'", "unknown field `nam`; did you mean `name`? (at character 1)");
    refuse(
        "kind = 'Cluster' and label.team = 'x'",
        "unknown field `label.team`; did you mean `labels.team`? (at character 22)",
    );
    refuse(
        "status.phaze = 'Ready'",
        "unknown field `status.phaze`; did you mean `status.phase`? (at character 1)",
    );
    refuse(
        "tenant = 'acme'",
        "unknown field `tenant`; known are id, kind, name, href, owner_id, owner_kind, generation, \
         created_time, created_at, created_by, updated_time, updated_at, updated_by, deleted_time, \
         deleted_by, phase, status.phase, provider, region, labels.<key>, spec.<path> and \
         status.conditions.<Type> (at character 1)",
    );
    refuse("labels.a/-b = 'x'", "`a/-b` cannot be a label's key (at character 1)");
    refuse("spec.a..b = 'x'", "`spec.a..b` has an empty part between dots (at character 1)");
    refuse(
        "status.conditions.ready = 'True'",
        "`ready` cannot be a condition's type; one reads like `Reconciled` (at character 1)",
    );
    refuse(
        "status.conditions.Ready.since = 'x'",
        "a condition has no `since`; it has reason, observed_generation, last_updated_time, \
         last_transition_time, and alone it stands for its status (at character 1)",
    );
}

#[test]
fn a_mistake_is_shown_where_it_is() {
    refuse(
        "name",
        "expected a comparison like `=`, or `in`, `like`, `ilike`, `between`, `is`, found the end (at character 5)",
    );
    refuse("name =", "expected a value, like 'text' or 3, found the end (at character 7)");
    refuse(
        "name = foo",
        "expected a value (text stands in quotes: 'foo'), found `foo` (at character 8)",
    );
    refuse(
        "name = 'a' name = 'b'",
        "expected `and`, `or` or the end, found `name` (at character 12)",
    );
    refuse(
        "name not = 'a'",
        "expected `in`, `like`, `ilike` or `between`, found `=` (at character 10)",
    );
    refuse("name is 'a'", "expected `null`, found the text 'a' (at character 9)");
    refuse("name in 'a'", "expected a list like ('a', 'b'), found the text 'a' (at character 9)");
    refuse("name in ('a']", "expected `,` or `)`, found `]` (at character 13)");
    refuse("name in ()", "expected a value, like 'text' or 3, found `)` (at character 10)");
    refuse("(name = 'a'", "expected `and`, `or` or `)`, found the end (at character 12)");
    refuse("'a' = name", "expected a field, `not` or `(`, found the text 'a' (at character 1)");
    refuse("name = 'ä' and ?", "`?` cannot stand here (at character 16)");
    refuse("name = 'a", "the text that begins here has no closing ' (at character 8)");
    refuse(
        r"name = 'a\n'",
        "a backslash may stand before a quote or another backslash (at character 10)",
    );
    refuse(
        "name ~= 'a.*'",
        "`~` is not supported; `like` compares with a pattern (at character 6)",
    );
    refuse("generation = 1x", "`1x` is not a number; text stands in quotes (at character 14)");
    refuse(
        "generation = 1e999",
        "`1e999` is not a number; text stands in quotes (at character 14)",
    );
}

#[test]
fn injection_is_a_parse_error_j9() {
    refuse("' OR 1=1 --", "the text that begins here has no closing ' (at character 1)");
    refuse("1=1", "expected a field, `not` or `(`, found the number 1 (at character 1)");
    refuse("labels.a'b", "the text that begins here has no closing ' (at character 9)");
    refuse(
        "labels.a'b'",
        "expected a comparison like `=`, or `in`, `like`, `ilike`, `between`, `is`, found the text 'b' (at character 9)",
    );
    refuse("name='a') or (name='b'", "expected `and`, `or` or the end, found `)` (at character 9)");
    refuse("name\0='a'", "`\\0` cannot stand here (at character 5)");
    refuse("name='a\0'", "the control character \\0 cannot be searched (at character 8)");
    refuse(
        "name='a\u{1b}[31m'",
        "the control character \\u{1b} cannot be searched (at character 8)",
    );
    refuse("name='a'; drop table resources", "`;` cannot stand here (at character 9)");
    refuse(
        "name='a' -- and kind='x'",
        "`--` is not a number; text stands in quotes (at character 10)",
    );
}

#[test]
fn length_depth_and_terms_are_limited() {
    let long = format!("name = '{}'", "x".repeat(Filter::LEN_MAX));
    refuse(&long, "the search is 4105 bytes long; at most 4096 are allowed (at character 4096)");

    let nested = |n: usize| format!("{}name='a'{}", "(".repeat(n), ")".repeat(n));
    assert!(Filter::parse(&nested(16)).is_ok());
    refuse(&nested(17), "nested deeper than 16 levels (at character 17)");
    refuse(&"(".repeat(4096), "nested deeper than 16 levels (at character 17)");
    assert!(Filter::parse(&format!("{}name='a'", "not ".repeat(16))).is_ok());
    refuse(&"not ".repeat(1000), "nested deeper than 16 levels (at character 65)");

    let list = |n: usize| format!("name in ({})", vec!["'a'"; n].join(","));
    assert!(Filter::parse(&list(256)).is_ok());
    refuse(&list(257), "more than 256 tests and values (at character 1034)");

    let pattern = |n: usize| format!("name like '{}'", "x".repeat(n));
    assert!(Filter::parse(&pattern(256)).is_ok());
    refuse(
        &pattern(257),
        "the pattern is 257 characters long; at most 256 are allowed (at character 11)",
    );
}

#[test]
fn patterns_match_like_sql() {
    #[track_caller]
    fn row(pattern: &str, text: &str, expected: bool) {
        assert_eq!(Like::new(pattern, false).matches(text), expected, "{text} like {pattern}");
    }
    row("", "", true);
    row("", "a", false);
    row("%", "", true);
    row("%%", "ab", true);
    row("a%", "a", true);
    row("%a", "ba", true);
    row("%a", "ab", false);
    row("a%b%c", "a-b-b-c", true);
    row("a%b%c", "a-c-b", false);
    row("%ab%ab", "abab", true);
    row("%ab%ab", "ab", false);
    row("_", "ä", true);
    row("__", "ä", false);
    row("%_", "", false);
    row("\\%", "%", true);
    row("\\%", "x", false);
    row("a\\", "a\\", true);
    assert!(Like::new("GRÖN%", true).matches("grön-1"));
    assert!(!Like::new("GRÖN%", false).matches("grön-1"));
}

#[test]
fn a_hostile_pattern_costs_its_length_times_the_text() {
    let pattern = format!("{}b", "a%".repeat(127));
    assert!(!Like::new(&pattern, true).matches(&"a".repeat(100_000)));
}

#[test]
fn filters_from_parameters_match_what_they_say() {
    let (cluster, pool) = (cluster(), pool());
    let both = |filter: &Filter| (filter.matches(&cluster), filter.matches(&pool));
    assert_eq!(both(&Filter::everything()), (true, true));
    assert_eq!(both(&Filter::phase_in(&[Phase::Ready, Phase::Pending])), (true, false));
    assert_eq!(both(&Filter::phase_in(&[])), (false, false));
    assert_eq!(both(&Filter::provider("gcp")), (true, true));
    assert_eq!(both(&Filter::region("us-east1")), (true, true));
    assert_eq!(both(&Filter::region("us-west1")), (false, false));
    assert_eq!(both(&Filter::name("prod", false)), (true, false));
    assert_eq!(both(&Filter::name("prod", true)), (false, false));
    assert_eq!(both(&Filter::name("prod-east", true)), (true, false));
    assert_eq!(both(&Filter::name("%", false)), (false, false));
    assert_eq!(both(&Filter::label("team", "platform")), (true, false));
    assert_eq!(both(&Filter::labels("team:platform,my-key:x").unwrap()), (true, false));
    assert_eq!(both(&Filter::labels("team:platform, my-key:y").unwrap()), (false, false));
    assert_eq!(both(&Filter::labels("workload:nonexistent").unwrap()), (false, false));
}

#[test]
fn a_bad_label_filter_gets_the_sentence() {
    for (text, at) in [
        ("", 1),
        ("team", 1),
        (":x", 1),
        ("team:a,", 8),
        ("team:a,b", 8),
        ("a:b:c", 1),
        ("a:b c", 1),
    ] {
        let error = Filter::labels(text).unwrap_err();
        let expected = "Invalid label filter format. Expected format: key:value";
        assert_eq!((error.message.as_str(), error.at), (expected, at), "{text}");
    }
    let many = |n: usize| vec!["a:b"; n].join(",");
    assert!(Filter::labels(&many(64)).is_ok());
    let expected = "more labels than the 64 one may have (at character 257)";
    assert_eq!(Filter::labels(&many(100_000)).unwrap_err().to_string(), expected);
}

#[test]
fn an_index_may_start_from_a_required_label() {
    #[track_caller]
    fn row(search: &str, expected: Option<(&str, &str)>) {
        assert_eq!(Filter::parse(search).unwrap().required_labels().next(), expected, "{search}");
    }
    row("labels.a = 'b'", Some(("a", "b")));
    row("name = 'x' and (labels.a = 'b' and generation > 1)", Some(("a", "b")));
    row("labels.a = 'b' or name = 'x'", None);
    row("not labels.a = 'b'", None);
    row("labels.a != 'b'", None);
    row("labels.a = 3", None);
    row("labels.a in ('b')", None);
    row("", None);
    let scoped = Filter::everything().and(Filter::name("x", true)).and(Filter::label("a", "b"));
    assert_eq!(scoped.required_labels().next(), Some(("a", "b")));
}

#[test]
fn lists_are_ordered_by_fields_and_then_by_id() {
    #[track_caller]
    fn row(order: &str, expected: &str) {
        let mut other = cluster();
        other.id = crate::id::ResourceId::parse("0195a000-0000-7000-8000-000000000003").unwrap();
        let mut all = [(other, "other"), (pool(), "pool"), (cluster(), "cluster")];
        let order = Order::parse(order).unwrap();
        all.sort_by(|(a, _), (b, _)| order.compare(a, b));
        let sorted: Vec<&str> = all.iter().map(|(_, name)| *name).collect();
        assert_eq!(sorted.join(" "), expected);
    }
    row("name", "cluster other pool");
    row("name desc", "pool cluster other");
    row("created_time", "cluster other pool");
    row("", "pool cluster other");
    row("created_at DESC, id asc", "pool cluster other");
    row("id desc", "other pool cluster");
    row("provider,generation", "pool cluster other");
    row("generation desc,name", "cluster other pool");
    row("deleted_time", "pool cluster other");
    row("deleted_time desc", "pool cluster other");
    row("phase", "cluster other pool");
    row("updated_at desc", "cluster other pool");
    row("kind desc", "pool cluster other");
    assert_eq!(Order::parse("  ").unwrap(), Order::default());
}

#[test]
fn an_order_nobody_knows_lists_those_one_can_j10() {
    #[track_caller]
    fn row(order: &str, expected: &str) {
        let error = Order::parse(order).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    row(
        "name,spec",
        "Cannot sort by `spec`. One can sort by id, kind, name, generation, created_time, \
         created_at, updated_time, updated_at, deleted_time, created_by, updated_by, phase, \
         provider, region (at character 6)",
    );
    row("nam", "Cannot sort by `nam`. Did you mean `name`? One can sort by id,");
    row("labels.team", "Cannot sort by `labels.team`");
    row("href", "Cannot sort by `href`");
    row("name,", "Cannot sort by ``");
    row("name up", "expected `asc` or `desc`, found `up`");
    row("name asc desc", "expected `,`, found `desc`");
    row("name; drop table", "expected `asc` or `desc`, found `drop`");
    row("name;--", "Cannot sort by `name;--`. One can");
    row(&["name"; 9].join(","), "at most 8 fields can be sorted by (at character 41)");
    assert!(Order::parse(&"name,".repeat(100_000)).unwrap_err().to_string().len() < 100);
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        "'[a-z0-9 %_é]{0,6}'",
        Just(r"'it''s \\ \'x\''".to_owned()),
        (-5..5_i32).prop_map(|n| n.to_string()),
        (-300..300_i32).prop_map(|n| format!("1.5e{n}")),
        Just("true".to_owned()),
        Just("2026-01-31".to_owned()),
        Just("5Ki".to_owned()),
    ]
}

/// Texts that parse, of every form.
fn search_text() -> impl Strategy<Value = String> {
    let field = prop::sample::select(vec![
        "name",
        "kind",
        "id",
        "owner_id",
        "labels.team",
        "labels.a-b/c",
        "spec.nodeCount",
        "spec.release.channelGroup",
        "provider",
        "region",
    ]);
    let comparison = prop::sample::select(vec!["=", "==", "!=", "<>", "<", "<=", ">", ">="]);
    let not = prop::sample::select(vec!["", "not "]);
    let test = prop_oneof![
        (field.clone(), comparison, value()).prop_map(|(f, c, v)| format!("{f} {c} {v}")),
        (field.clone(), not.clone(), prop::collection::vec(value(), 1..4))
            .prop_map(|(f, not, v)| format!("{f} {not}in [{}]", v.join(","))),
        (field.clone(), not.clone(), value(), value())
            .prop_map(|(f, not, a, b)| format!("{f} {not}between {a} and {b}")),
        (field.clone(), not.clone(), r"'([a-z%_]|\\\\){0,5}'")
            .prop_map(|(f, not, p)| format!("{f} {not}ilike {p}")),
        (field, not.clone()).prop_map(|(f, not)| format!("{f} is {not}null")),
        not.prop_map(|not| format!("{not}phase = 'Ready' or generation > 1")),
        Just("deleted_time < 2026-05-01T02:00:00.123456789+02:00".to_owned()),
        Just("status.conditions.Reconciled = 'false'".to_owned()),
    ];
    test.prop_recursive(5, 24, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|a| format!("not ({a})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) and {b}")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("{a} or ({b})")),
        ]
    })
}

/// Anything: searches, cut and mixed searches, and plain noise.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        search_text(),
        (search_text(), search_text(), any::<prop::sample::Index>()).prop_map(|(a, b, at)| {
            let cut: String = a.chars().take(at.index(a.len() + 1)).collect();
            format!("{cut}{b}")
        }),
        any::<String>(),
        "[()'\"`a-z=<>! .,%_\\[\\]\\\\-]{0,60}",
    ]
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in any_text()) {
        if let Err(error) = Filter::parse(&text) {
            prop_assert!(error.at <= text.chars().count() + 1);
        }
        let _ = Order::parse(&text);
        let _ = Filter::labels(&text);
    }

    #[test]
    fn a_search_never_leaves_its_scope(text in any_text()) {
        let (cluster, pool) = (cluster(), pool());
        let scopes = [
            Filter::parse("kind = 'Cluster'").unwrap(),
            Filter::parse("owner_id = 'x' or labels.team = 'platform'").unwrap(),
            Filter::label("team", "platform"),
            Filter::phase_in(&[]),
        ];
        if let Ok(search) = Filter::parse(&text) {
            for scope in scopes {
                for resource in [&cluster, &pool] {
                    let expected = scope.matches(resource) && search.matches(resource);
                    prop_assert_eq!(scope.clone().and(search.clone()).matches(resource), expected);
                    prop_assert_eq!(search.clone().and(scope.clone()).matches(resource), expected);
                }
            }
        }
    }

    #[test]
    fn a_printed_search_reads_the_same(text in search_text()) {
        let tree = parse::parse::<Resource>(&text).unwrap();
        prop_assert_eq!(parse::parse::<Resource>(&tree.to_string()), Ok(tree));
    }

    #[test]
    fn not_not_is_nothing(text in search_text()) {
        let plain = parse::parse::<Resource>(&text).unwrap();
        let twice = parse::parse::<Resource>(&format!("not not ({text})")).unwrap();
        let once = parse::parse::<Resource>(&format!("not ({text})")).unwrap();
        for resource in [cluster(), pool()] {
            prop_assert_eq!(plain.matches(&resource), twice.matches(&resource));
            prop_assert_ne!(plain.matches(&resource), once.matches(&resource));
        }
    }

    #[test]
    fn an_order_is_total(order in prop::sample::subsequence(vec!["kind", "name", "deleted_time", "phase"], 1..4)) {
        let order = Order::parse(&order.join(" desc,")).unwrap();
        let (a, b) = (cluster(), pool());
        prop_assert_eq!(order.compare(&a, &b), order.compare(&b, &a).reverse());
        prop_assert_ne!(order.compare(&a, &b), Ordering::Equal);
        prop_assert_eq!(order.compare(&a, &a), Ordering::Equal);
    }
}
