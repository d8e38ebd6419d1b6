//! `argosy policy`: the rules that say which nodes are sick.

mod args;

mod show;

use crate::failure::{Exit, Failure};
use crate::output::{Format, clean, document, note, print};
use crate::policy_file::{self, PolicyFile};
use crate::session::Session;
use crate::view::to_value;
use argosy_api::client::WriteOptions;
use argosy_api::node::NodeEvent;
use argosy_api::policy::{BacktestRequest, ExplainRequest, Policy, PolicyPut};
use argosy_core::nearest::nearest;
use argosy_core::policy::{DEFAULT_POLICY, PolicySpec};
use args::{Apply, Backtest, Check, Delete, Explain, Test, Verbs};
use serde_json::{Value, json};

pub(super) use args::Verb;

/// `argosy policy`
pub(super) async fn run(session: &Session, verb: Verb) -> Result<Exit, Failure> {
    match verb.verb {
        Verbs::Check(args) => check(session, &args),
        Verbs::Test(args) => test(session, &args),
        Verbs::Explain(args) => explain(session, &args).await,
        Verbs::Backtest(args) => backtest(session, &args).await,
        Verbs::Apply(args) => apply(session, &args).await,
        Verbs::List => {
            let list = session.client.policies().await.map_err(|error| session.failure(error))?;
            match session.format {
                Format::Json | Format::Yaml => answer(session, &to_value(&list)),
                Format::Name => print(&list.items.iter().map(name_line).collect::<String>()),
                Format::Table | Format::Wide => print(&show::list(session, &list.items)),
            }
            Ok(Exit::Ok)
        }
        Verbs::Get(args) => {
            let policy = get(session, &args.name).await?;
            match session.format {
                Format::Json | Format::Yaml => answer(session, &to_value(&policy)),
                Format::Name => print(&name_line(&policy)),
                Format::Table | Format::Wide => print(&show::policy(session, &policy)),
            }
            Ok(Exit::Ok)
        }
        Verbs::Delete(args) => delete(session, &args).await,
    }
}

fn answer(session: &Session, value: &Value) {
    print(&document(value, session.format == Format::Yaml));
}

fn name_line(policy: &Policy) -> String {
    format!("policy/{}\n", clean(&policy.name))
}

fn check(session: &Session, args: &Check) -> Result<Exit, Failure> {
    let file = PolicyFile::read(&args.file)?;
    let policy = file.compile(file.named(None))?;
    let odd = policy.warnings().iter().map(|warning| file.line(warning));
    let warnings: Vec<String> = file.warnings.iter().cloned().chain(odd).collect();
    let (rules, cases) = (file.spec.rules.len(), file.cases.len());
    match session.format {
        Format::Json | Format::Yaml => answer(
            session,
            &json!({
                "kind": "PolicyCheck",
                "name": file.named(None),
                "rules": rules,
                "tests": cases,
                "warnings": warnings,
            }),
        ),
        Format::Table | Format::Wide | Format::Name => {
            for warning in &warnings {
                note(&format!("warning: {warning}"));
            }
            let path = clean(&args.file.display().to_string());
            note(&format!("{path} is fine: {}", count(rules, "rule")));
        }
    }
    Ok(Exit::Ok)
}

fn test(session: &Session, args: &Test) -> Result<Exit, Failure> {
    let file = PolicyFile::read(&args.file)?;
    let policy = file.compile(file.named(None))?;
    let more = match &args.cases {
        Some(path) => policy_file::cases(path)?,
        None => Vec::new(),
    };
    let cases: Vec<_> = file.cases.iter().chain(&more).collect();
    if cases.is_empty() {
        return Err(Failure::usage("there is nothing to test")
            .fix("write cases under `tests`, or into a file for --cases; see `argosy policy test --help`"));
    }
    let results: Vec<(&str, Result<(), String>)> =
        cases.iter().map(|case| (case.name.as_str(), case.run(&policy))).collect();
    let failed = results.iter().filter(|(_, result)| result.is_err()).count();
    let passed = results.len() - failed;
    match session.format {
        Format::Json | Format::Yaml => {
            let results: Vec<Value> = results
                .iter()
                .map(|(name, result)| json!({ "name": name, "passed": result.is_ok(), "message": result.as_ref().err() }))
                .collect();
            answer(
                session,
                &json!({ "kind": "PolicyTest", "passed": passed, "failed": failed, "results": results }),
            );
        }
        Format::Table | Format::Wide | Format::Name => print(&show::results(session, &results)),
    }
    if failed == 0 {
        note(&format!("{} as expected", count(passed, "case")));
        return Ok(Exit::Ok);
    }
    Err(Failure::failed(format!(
        "{failed} of {} are not as expected",
        count(results.len(), "case")
    )))
}

async fn explain(session: &Session, args: &Explain) -> Result<Exit, Failure> {
    let event = match (args.xid, &args.event) {
        (Some(code), _) => policy_file::xid(code),
        (None, Some(text)) => policy_file::event(text)?,
        (None, None) => return Err(Failure::usage("say what happened: --xid or --event")),
    };
    let policy = match &args.file {
        Some(path) => {
            let file = PolicyFile::read(path)?;
            file.compile(file.named(None))?;
            Some(on_the_wire(&file.spec)?)
        }
        None => None,
    };
    let event: NodeEvent = serde_json::from_value(to_value(&event))
        .map_err(|error| Failure::failed("the event cannot be sent").why(error))?;
    let node_id = args.node.as_deref().map(|node| node.strip_prefix("node/").unwrap_or(node));
    let node_id = node_id.map(str::to_owned);
    let request = ExplainRequest { event, node_id, policy };
    let said = session.client.explain(&request).await.map_err(|error| session.failure(error))?;
    match session.format {
        Format::Json | Format::Yaml => answer(session, &to_value(&said)),
        Format::Name => print(&format!("{}\n", show::word(&said.verdict))),
        Format::Table | Format::Wide => print(&show::verdict(&session.screen, &said.verdict)),
    }
    Ok(Exit::Ok)
}

async fn backtest(session: &Session, args: &Backtest) -> Result<Exit, Failure> {
    let file = PolicyFile::read(&args.file)?;
    file.compile(file.named(None))?;
    let since = args.since.map(|since| {
        let since = session.clock.now().saturating_sub(since.signed());
        since.map(|since| since.to_string()).unwrap_or_default()
    });
    let request = BacktestRequest { policy: on_the_wire(&file.spec)?, since };
    let report = session.client.backtest(&request).await.map_err(|error| session.failure(error))?;
    match session.format {
        Format::Json | Format::Yaml => answer(session, &to_value(&report)),
        Format::Name => {
            let hits = report.only_new.iter().chain(&report.only_current);
            print(&hits.map(|hit| format!("node/{}\n", clean(&hit.node_id))).collect::<String>());
        }
        Format::Table | Format::Wide => print(&show::backtest(session, &report)),
    }
    Ok(Exit::Ok)
}

async fn apply(session: &Session, args: &Apply) -> Result<Exit, Failure> {
    let mut file = PolicyFile::read(&args.file)?;
    if !args.pool.is_empty() {
        file.spec.pools.clone_from(&args.pool);
    }
    let name = file.named(args.name.as_deref()).to_owned();
    let policy = file.compile(&name)?;
    for warning in
        file.warnings.iter().cloned().chain(policy.warnings().iter().map(|w| file.line(w)))
    {
        note(&format!("warning: {warning}"));
    }
    let wanted = on_the_wire(&file.spec)?;
    let current = match session.client.policy(&name).await {
        Ok(policy) => Some(policy),
        Err(error) if error.status() == Some(404) => None,
        Err(error) => return Err(session.failure(error)),
    };
    let put = async |dry_run| {
        // Only if it still is what the changes were shown for.
        let if_match = current.as_ref().map(|policy| policy.revision);
        let options = WriteOptions { dry_run, if_match, ..WriteOptions::default() };
        let put = session.client.put_policy(&name, &wanted, &options).await;
        put.map_err(|error| session.failure(error))
    };
    put(true).await?;
    let changes = show::changes(session, &name, current.as_ref(), &wanted);
    print(&changes.text);
    if changes.count == 0 {
        return Ok(Exit::Ok);
    }
    if args.dry_run {
        return Ok(Exit::Changes);
    }
    let question = format!("Put it in force in {}?", session.target.name);
    session.confirm(&question, args.yes)?;
    let policy = put(false).await?;
    note(&format!("policy {} version {} is in force", clean(&policy.name), policy.version));
    Ok(Exit::Ok)
}

async fn delete(session: &Session, args: &Delete) -> Result<Exit, Failure> {
    let policy = get(session, &args.name).await?;
    let nodes = match policy.spec.pools.as_slice() {
        [] => "every node without a policy of its pool".to_owned(),
        pools => format!("the nodes of {}", pools.join(", ")),
    };
    let question = format!("Remove the policy {} of {nodes}?", policy.name);
    session.confirm(&question, args.yes)?;
    session.client.delete_policy(&policy.name).await.map_err(|error| session.failure(error))?;
    let instead = match policy.name.as_str() {
        DEFAULT_POLICY => "the built-in one is in force",
        _ => "its nodes are judged by the default",
    };
    note(&format!("policy {} is removed; {instead}", clean(&policy.name)));
    Ok(Exit::Ok)
}

/// One policy; where there is none, with the name that was probably meant.
async fn get(session: &Session, name: &str) -> Result<Policy, Failure> {
    let name = name.strip_prefix("policy/").unwrap_or(name);
    let error = match session.client.policy(name).await {
        Ok(policy) => return Ok(policy),
        Err(error) => error,
    };
    let absent = error.status() == Some(404);
    let mut failure = session.failure(error);
    if absent {
        let list = session.client.policies().await.map(|list| list.items).unwrap_or_default();
        let near = nearest(name, list.iter().map(|policy| policy.name.as_str()));
        failure.fix = vec![match near {
            Some(near) => format!("did you mean `{}`?", clean(near)),
            None => "`argosy policy list` shows which there are".to_owned(),
        }];
    }
    Err(failure)
}

fn on_the_wire(spec: &PolicySpec) -> Result<PolicyPut, Failure> {
    serde_json::from_value(to_value(spec))
        .map_err(|error| Failure::failed("the policy cannot be sent").why(error))
}

/// `1 rule`, `2 rules`.
fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests;
