//! The command line as a script sees it: text, exit codes, no server.

use argosy_store::embedded::Embedded;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a command came to: `argosy` run in an empty home, with nothing on standard input.
struct Outcome {
    code: Option<i32>,
    out: String,
    err: String,
}

fn argosy(home: &Path, line: &str) -> Outcome {
    let output = Command::new(env!("CARGO_BIN_EXE_argosy"))
        .args(line.split_whitespace())
        .env_clear()
        .env("HOME", home)
        .current_dir(home)
        .stdin(Stdio::null())
        .output()
        .expect("the program was built with this test");
    Outcome {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
    }
}

/// An empty directory for one test, gone afterwards.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("argosy-cli-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a place for the test");
        Self(dir)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).expect("a file for the test");
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn check(home: &Home, rows: &[(&str, i32, &str)]) {
    for (line, code, text) in rows {
        let outcome = argosy(&home.0, line);
        let said = format!("{}{}", outcome.out, outcome.err);
        assert_eq!(outcome.code, Some(*code), "argosy {line}\n{said}");
        assert!(said.contains(text), "argosy {line}\n{said}\nlacks {text}");
    }
}

#[test]
fn a_wrong_command_line_is_64_and_says_what_was_meant() {
    let home = Home::new("usage");
    check(
        &home,
        &[
            ("", 64, "Usage: argosy"),
            ("clutser list", 64, "similar subcommand"),
            ("cluster lst", 64, "similar subcommand"),
            ("cluster get", 64, "<NAME>"),
            ("cluster list --oops", 64, "--oops"),
            ("cluster list -o xml", 64, "possible values: table, wide, json, yaml, name"),
            ("wait alpha", 64, "write cluster/NAME or nodepool/CLUSTER/NAME"),
            ("wait cluster/alpha --for soon", 64, "condition=TYPE[=STATUS]"),
            ("wait cluster/alpha --timeout 5", 64, "like 500ms, 10s or 30m"),
            ("nodepool create workers", 64, "add -c CLUSTER"),
            ("cluster patch alpha", 64, "there is nothing to change"),
            ("cluster create alpha --set region", 64, "`region` is not of the form KEY=VALUE"),
            ("cluster list --server example", 64, "write http://HOST:PORT or https://HOST"),
            ("apply -f nothing.yaml", 64, "cannot read nothing.yaml"),
            ("node cordon", 64, "name them, or select them with --pool"),
            ("node cordon a --pool h100", 64, "not both"),
            ("node cordon -l rack", 64, "KEY=VALUE or KEY!=VALUE"),
            ("node list --status SICK", 64, "possible values: UNKNOWN, ACTIVE"),
            ("node diagnose a --test everything", 64, "possible values: quick, memory, bandwidth"),
            ("node diagnose a --seconds 0", 64, "1..=3600"),
            ("node drain a --drain-for 5", 64, "like 500ms, 10s or 30m"),
            ("node delete a --force", 64, "--reason"),
            ("node dran a", 64, "similar subcommand"),
            ("why disk/a", 64, "write node/ID, cluster/NAME"),
            ("top a --pool h100", 64, "not both"),
            ("pause", 64, "--reason"),
            ("safety close fleet", 64, "--reason"),
            ("command list --state done", 64, "possible values: pending"),
            ("policy explain", 64, "--xid"),
            ("policy explain --xid 79 --event {}", 64, "cannot be used with"),
            ("policy explain --event {} --server http://127.0.0.1:1", 64, "event_type is missing"),
            ("policy check nothing.yaml", 64, "cannot read nothing.yaml"),
            ("policy backtest -f nothing.yaml --since 5", 64, "like 500ms, 10s or 30m"),
            ("help clutser", 64, "did you mean `cluster`?"),
            ("token new --name a --role adapter", 64, "--adapter"),
        ],
    );
}

#[test]
fn help_and_version_are_answers() {
    let home = Home::new("help");
    check(
        &home,
        &[
            ("--help", 0, "One control plane for GPU fleets"),
            ("--version", 0, "argosy "),
            ("version", 0, "argosy "),
            ("help", 0, "Commands:"),
            ("help cluster create", 0, "Create a cluster"),
            ("help exit-codes", 0, "   64  "),
            ("np --help", 0, "Examples:"),
            ("clusters ls --help", 0, "Examples:"),
        ],
    );
}

#[test]
fn an_unreachable_server_is_7() {
    let home = Home::new("unreachable");
    // Port 1 is reserved and nobody listens there.
    check(
        &home,
        &[
            ("cluster list --server http://127.0.0.1:1", 7, "fix: start one here with `argosy up`"),
            ("cluster get a --server http://127.0.0.1:1", 7, "cannot reach the server"),
            ("doctor --server http://127.0.0.1:1", 7, "FAIL server"),
            ("audit verify --server http://127.0.0.1:1", 7, "cannot reach the server"),
            ("cluster delete a --yes --server http://127.0.0.1:1", 7, "cannot reach the server"),
            ("node list --server http://127.0.0.1:1", 7, "cannot reach the server"),
            ("node drain a b --reason x --yes --server http://127.0.0.1:1", 7, "cannot reach"),
            ("why a --server http://127.0.0.1:1", 7, "cannot reach the server"),
            ("top --server http://127.0.0.1:1", 7, "cannot reach the server"),
            ("pause --reason x --server http://127.0.0.1:1", 7, "cannot reach the server"),
            ("policy list --server http://127.0.0.1:1", 7, "cannot reach the server"),
            ("policy explain --xid 79 --server http://127.0.0.1:1", 7, "cannot reach the server"),
        ],
    );
}

#[test]
fn policies_are_checked_and_tested_without_a_server() {
    let home = Home::new("policy");
    let rule = |condition: &str| {
        format!("rules:\n  - name: hot\n    condition: {condition}\n    result: degraded\n")
    };
    let hot = rule("has(event.metrics.temperature) && event.metrics.temperature >= 85");
    home.write("good.yaml", &hot);
    home.write("odd.yaml", &rule("event.event_type == 'termal'"));
    home.write("bad.yaml", &rule("event.metric.temperature > 85"));
    home.write("worse.yaml", &rule("event.message.startWith('x')"));
    home.write("navarch.yaml", &format!("version: v1\nextends: base\n{hot}"));
    let case = |expect: &str| {
        format!(
            "tests: [{{event: {{event_type: thermal, metrics: {{temperature: 90}}}}, expect: {expect}}}]\n"
        )
    };
    home.write("tested.yaml", &format!("{hot}{}", case("{result: degraded, rule: hot}")));
    home.write("fails.yaml", &case("healthy"));
    check(
        &home,
        &[
            ("policy check good.yaml", 0, "good.yaml is fine: 1 rule"),
            ("policy check good.yaml -o json", 0, "\"rules\": 1"),
            ("policy check odd.yaml", 0, "warning: odd.yaml:3:16: rules[0].condition: can never"),
            (
                "policy check bad.yaml",
                64,
                "bad.yaml:3:21: rules[0].condition: `event` has no `metric`",
            ),
            (
                "policy check worse.yaml",
                64,
                "worse.yaml:3:39: rules[0].condition: unknown function",
            ),
            (
                "policy check navarch.yaml",
                0,
                "warning: navarch.yaml:2:1: the key `extends` is ignored",
            ),
            ("policy test good.yaml", 64, "there is nothing to test"),
            ("policy test tested.yaml", 0, "1 case as expected"),
            (
                "policy test tested.yaml --cases fails.yaml",
                1,
                "expected healthy, and is degraded by hot",
            ),
            ("policy test tested.yaml --cases fails.yaml -o json", 1, "\"failed\": 1"),
            ("policy test tested.yaml --cases good.yaml", 64, "good.yaml:1:1: unknown key `rules`"),
        ],
    );
}

#[test]
fn a_wrong_configuration_names_the_line_and_the_nearest_key() {
    let home = Home::new("config");
    home.write("good.yaml", "listen: 127.0.0.1:9000\nsentinel:\n  resync_ready: 5m\n");
    home.write("typo.yaml", "listen: 127.0.0.1:9000\nsentinel:\n  resync_redy: 5m\n");
    home.write("open.yaml", "listen: 0.0.0.0:9000\n");
    home.write(
        "graph.yaml",
        "adapters:\n  cluster:\n    - name: a\n      runner: external\n      depends_on: [b]\n",
    );
    check(
        &home,
        &[
            ("config check good.yaml", 0, "good.yaml is fine"),
            ("config check --config good.yaml", 0, "good.yaml is fine"),
            ("config check typo.yaml", 64, "typo.yaml:3: unknown key `resync_redy`"),
            ("config check typo.yaml", 64, "did you mean `resync_ready`?"),
            ("server --config typo.yaml", 64, "did you mean `resync_ready`?"),
            ("config check open.yaml", 64, "authentication is `none`"),
            ("server --listen 0.0.0.0:9000", 64, "authentication is `none`"),
            ("config check graph.yaml", 64, "adapter `a` of Cluster"),
            ("config check missing.yaml", 64, "cannot read missing.yaml"),
            ("config check", 64, "<FILE>"),
            ("config print --config good.yaml", 0, "file good.yaml"),
            ("config print --listen 127.0.0.1:1", 0, "flag --listen"),
        ],
    );
}

#[test]
fn the_printed_defaults_are_a_configuration() {
    let home = Home::new("defaults");
    let printed = argosy(&home.0, "config print --defaults");
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    home.write("argosy.yaml", &printed.out);
    check(&home, &[("config check argosy.yaml", 0, "argosy.yaml is fine")]);
}

#[test]
fn contexts_are_kept_and_chosen() {
    let home = Home::new("context");
    check(
        &home,
        &[
            ("context set prod", 64, "add --server URL"),
            ("context set prod --server https://fleet.example --token-env TOKEN", 0, ""),
            ("context set local --server http://127.0.0.1:1", 0, ""),
            ("context list", 0, "environment variable TOKEN"),
            ("context show", 0, "https://fleet.example"),
            ("cluster list", 4, "environment variable TOKEN, which is not set"),
            ("context use lcoal", 3, "there is no context `lcoal`"),
            ("context use local", 0, "using local"),
            ("cluster list", 7, "http://127.0.0.1:1"),
            ("context remove prod", 6, "add --yes if that is what you want"),
            ("context remove prod --yes", 0, ""),
            ("cluster list --context prod", 3, "there is no context `prod`"),
        ],
    );
}

#[test]
fn a_new_token_is_shown_once_and_stored_as_a_hash() {
    let home = Home::new("token");
    let outcome = argosy(&home.0, "token new --name alice --role operator --team ml");
    assert_eq!(outcome.code, Some(0));
    let token = outcome.err.split_whitespace().find(|word| word.starts_with("argosy_")).unwrap();
    assert_eq!(token.len(), "argosy_".len() + 64);
    assert!(!outcome.out.contains(token), "{}", outcome.out);
    for part in ["name: alice", "role: operator", "sha256: ", "- ml"] {
        assert!(outcome.out.contains(part), "{}\nlacks {part}", outcome.out);
    }
}

#[test]
fn completions_and_man_pages_come_from_the_commands() {
    let home = Home::new("pages");
    check(
        &home,
        &[
            ("completions bash", 0, "_argosy"),
            ("completions zsh", 0, "#compdef argosy"),
            ("completions fish", 0, "complete -c argosy"),
            ("completions tcsh", 64, "possible values: bash, zsh, fish"),
            ("man pages", 0, "the man pages are in pages"),
        ],
    );
    assert!(home.0.join("pages/argosy-cluster-create.1").exists());
}

#[test]
fn a_store_is_backed_up_while_it_is_used_and_restored_while_it_is_not() {
    let home = Home::new("backup");
    let store = Embedded::open(&home.0.join("data")).unwrap();
    check(
        &home,
        &[
            ("backup --data-dir nowhere --to b.db", 3, "there is no store in nowhere"),
            ("backup --data-dir data --to a.db", 0, "a.db holds the store of data"),
            ("restore --from a.db --data-dir data --force --yes", 1, "is in use by another argosy"),
            ("restore --from missing.db --data-dir new", 1, "missing.db cannot be restored"),
        ],
    );
    drop(store);
    check(
        &home,
        &[
            ("backup --data-dir data --to b.db", 0, "b.db holds the store of data"),
            ("backup --data-dir data --to b.db", 1, "b.db"),
            ("restore --from b.db --data-dir new", 0, "new holds what was in b.db"),
            ("restore --from b.db --data-dir new", 1, "b.db cannot be restored"),
            ("restore --from b.db --data-dir new --force", 6, "Replace the store in new?"),
            ("restore --from b.db --data-dir new --force --yes", 0, "new holds what was in b.db"),
        ],
    );
    Embedded::open(&home.0.join("new")).unwrap();
}

#[test]
fn piped_output_has_no_colour() {
    let home = Home::new("colour");
    for line in ["--help", "config print", "help exit-codes"] {
        let outcome = argosy(&home.0, line);
        assert!(!outcome.out.contains('\u{1b}'), "argosy {line}");
    }
    let outcome = argosy(&home.0, "config print --color always");
    assert!(outcome.out.contains('\u{1b}'), "{}", outcome.out);
}

#[test]
fn simulations_say_what_is_wrong_before_anything_is_played() {
    let home = Home::new("sim");
    home.write("typo.yaml", "name: mine\nduraton: 1h\n");
    home.write("binary.yaml", "name: \u{0}\n");
    home.write("server.yaml", "sentinel:\n  resync_redy: 5m\n");
    home.write("policy.yaml", "rules: 7\n");
    check(
        &home,
        &[
            ("sim", 64, "Usage: argosy sim"),
            ("sim run", 64, "<NAME|FILE>"),
            ("sim runn x", 64, "similar subcommand"),
            ("sim run no-such-scenario", 3, "there is no scenario `no-such-scenario`"),
            ("sim run basic-flet", 3, "did you mean `basic-fleet`?"),
            ("sim run nothing.yaml", 64, "cannot read nothing.yaml"),
            ("sim run ./nothing", 64, "cannot read ./nothing"),
            ("sim run x --seed one", 64, "--seed"),
            ("sim run x --seeds 5..1", 64, "the first comes after the last; write 1..5"),
            ("sim run x --seeds 1..99999999999", 64, "more than 100000"),
            ("sim run x --seeds some", 64, "like 1..1000"),
            ("sim run x --seed 1 --seeds 1..2", 64, "cannot be used with"),
            ("sim run x --jobs 0", 64, "0 is not in 1..=1024"),
            ("sim run x --jobs 1025", 64, "1025 is not in 1..=1024"),
            ("sim run x --time-limit 5", 64, "like 500ms, 10s or 30m"),
            ("sim run x -o xml", 64, "possible values: table, wide, json"),
            ("sim run typo.yaml", 64, "typo.yaml:2:1"),
            ("sim run typo.yaml", 64, "did you mean `duration`?"),
            ("sim compare x", 64, "there is nothing to compare with"),
            ("sim compare x y z", 64, "no more were expected"),
            ("sim compare x --policy a --policy b --policy c", 64, "--policy is given 3 times"),
            ("sim explain no-such-scenario --seed 1", 3, "there is no scenario"),
            ("sim validate", 64, "<FILE>"),
            ("sim validate nothing.yaml", 1, "cannot read nothing.yaml"),
            ("sim validate typo.yaml", 1, "typo.yaml:2:1"),
            ("sim validate typo.yaml nothing.yaml", 1, "2 of 2 files are not scenarios"),
            ("sim run basic-fleet --config server.yaml", 64, "did you mean `resync_ready`?"),
            ("sim run basic-fleet --policy policy.yaml", 64, "policy.yaml is not a policy"),
            ("sim run basic-fleet --policy nothing.yaml", 64, "cannot read nothing.yaml"),
            ("sim list", 0, "basic-fleet"),
            ("sim list -o json", 0, "\"name\": \"basic-fleet\""),
            ("sim list -o json", 0, "\"summary\": \""),
            ("sim run --help", 0, "Examples:"),
        ],
    );
}
