//! What is played: a scenario by name or file, and the product as somebody has configured it.

use crate::cmd::server::serve;
use crate::config::{load_under, policy};
use crate::failure::{Exit, Failure};
use crate::output::{clean, note};
use crate::policy_file::PolicyFile;
use argosy_core::nearest::nearest;
use argosy_core::policy::DEFAULT_POLICY;
use argosy_sim::report::About;
use argosy_sim::run::Product;
use argosy_sim::scenario::{Scenario, TEXT_LEN_MAX, read, shipped};
use clap::Args;
use serde_json::{Map, Value};
use std::io::Read;
use std::path::{Path, PathBuf};

/// How the product is configured, for commands that play one side.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct Configured {
    /// The server's configuration file; what the scenario says is laid over it.
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// A health policy, as `argosy policy apply` takes it, instead of the configured one.
    #[arg(long, value_name = "FILE")]
    pub(super) policy: Option<PathBuf>,
    /// Play every heartbeat, also where nothing can come of it. Slower by far.
    #[arg(long)]
    pub(super) every_beat: bool,
}

/// A scenario, and the product that is tried on it.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) scenario: Scenario,
    pub(super) product: Product,
    pub(super) about: About,
}

impl Given {
    /// Reads everything, and complains about all of it before anything is played.
    pub(super) fn read(reference: &str, configured: &Configured) -> Result<Self, Failure> {
        let (mut scenario, source) = scenario(reference)?;
        let product = product(reference, &scenario, configured)?;
        scenario.every_beat |= configured.every_beat;
        let mut options = Vec::new();
        for (flag, file) in [("--config", &configured.config), ("--policy", &configured.policy)] {
            if let Some(file) = file {
                options.extend([flag.to_owned(), file.display().to_string()]);
            }
        }
        if configured.every_beat {
            options.push("--every-beat".to_owned());
        }
        let summary = scenario.summary.clone();
        let about =
            About { reference: reference.to_owned(), options, summary, source, ..About::default() };
        Ok(Self { scenario, product, about })
    }
}

/// The scenario that a name or a path means, and its text.
fn scenario(reference: &str) -> Result<(Scenario, String), Failure> {
    if let Some(shipped) = shipped::find(reference) {
        return Ok((parsed(shipped.text, reference)?, shipped.text.to_owned()));
    }
    let path = Path::new(reference);
    // A plain word that is no file was meant as a name.
    if !path.exists() && path.extension().is_none() && path.components().count() == 1 {
        return Err(unknown(reference));
    }
    let text = content(path)?;
    Ok((parsed(&text, reference)?, text))
}

fn unknown(reference: &str) -> Failure {
    let names = shipped::list().iter().map(|shipped| shipped.name);
    let what = format!("there is no scenario `{}`", clean(reference));
    let failure = Failure::new(Exit::NotFound, what);
    let failure = match nearest(reference, names.clone()) {
        Some(near) => failure.fix(format!("did you mean `{near}`?")),
        None => failure,
    };
    let names: Vec<&str> = names.collect();
    failure.fix(format!("there are {}; a file is given by its path", names.join(", ")))
}

/// The text of a scenario file.
pub(super) fn content(path: &Path) -> Result<String, Failure> {
    let name = clean(&path.display().to_string());
    let unreadable =
        |error: std::io::Error| Failure::usage(format!("cannot read {name}")).why(error);
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(TEXT_LEN_MAX as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if TEXT_LEN_MAX < bytes.len() {
        return Err(Failure::usage(format!("{name} is longer than {TEXT_LEN_MAX} bytes"))
            .why("a scenario describes machines by rules, not one by one"));
    }
    String::from_utf8(bytes).map_err(|_| Failure::usage(format!("{name} is not text")))
}

/// Reads the text of a scenario. Warnings are printed, complaints are all in the failure.
pub(super) fn parsed(text: &str, name: &str) -> Result<Scenario, Failure> {
    match read(text, name) {
        Ok((scenario, warnings)) => {
            for warning in warnings {
                note(&format!("warning: {}", clean(&warning.to_string())));
            }
            Ok(scenario)
        }
        Err(errors) => {
            let failure = Failure::usage(format!("{} is not a scenario", clean(name)));
            Err(errors
                .iter()
                .fold(failure, |failure, error| failure.why(clean(&error.to_string()))))
        }
    }
}

/// The product as the configuration file, the scenario and the flags make it.
pub(super) fn product(
    reference: &str,
    scenario: &Scenario,
    configured: &Configured,
) -> Result<Product, Failure> {
    let none = Map::new();
    let patch = match &scenario.config {
        Value::Object(patch) => patch,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            &none
        }
    };
    let name = clean(reference);
    let config = load_under(configured.config.as_deref(), patch, &format!("{name}: config"))?;
    let spec = match &configured.policy {
        Some(path) => {
            let file = PolicyFile::read(path)?;
            for warning in &file.warnings {
                note(&format!("warning: {warning}"));
            }
            file.compile(DEFAULT_POLICY)?;
            Some(file.spec)
        }
        None => policy(&config)?,
    };
    Ok(Product { settings: serve::settings(&config)?, policies: spec.into_iter().collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_that_comes_with_the_program_fits_the_configuration() {
        for shipped in shipped::list() {
            let given = Given::read(shipped.name, &Configured::default());
            let given = given.unwrap_or_else(|failure| panic!("{}: {failure}", shipped.name));
            assert_eq!(given.scenario.name, shipped.name);
            assert_eq!(given.about.summary, shipped.summary);
            assert_eq!(given.about.source, shipped.text);
        }
    }

    #[test]
    fn what_changes_a_run_is_part_of_the_command_that_replays_it() {
        let configured = Configured { every_beat: true, ..Configured::default() };
        let given = Given::read("basic-fleet", &configured).unwrap();
        assert!(given.scenario.every_beat);
        assert_eq!(
            given.about.command("run", 3),
            "argosy sim run basic-fleet --seed 3 --every-beat"
        );
    }
}
