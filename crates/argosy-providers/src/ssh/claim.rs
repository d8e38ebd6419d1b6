//! Claims one host: sends it the agent, and has it install and start it by itself.

use super::line::{As, Silence, last_line};
use super::script::{self, code};
use super::survey::{Claim, Tenancy};
use super::{ASK_MAX, Host, Hosts, Settings, door, refused, returned, unreadable};
use crate::aside::aside;
use crate::boot::{AgentSource, Sha256};
use argosy_core::machine::{Machine, MachineState, Purchase, Trouble};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// How an attempt at one host ended without a machine.
pub(super) enum Tried {
    /// Nothing was done: another host may do.
    Elsewhere(Trouble),
    /// No other host may be tried.
    Over(Trouble),
}

/// What changes when a file does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileMark {
    inode: u64,
    len: u64,
    modified_ns: (i64, i64),
}

/// How long an agent may take to be sent: 30 MB over a slow line.
const STAGE_MAX: Duration = Duration::from_secs(300);
/// How long a claim may take, without setup commands, which have five minutes each.
const CLAIM_MAX: Duration = Duration::from_secs(120);
/// How long a setup command may take; see `boot`.
const SETUP_MAX: Duration = Duration::from_secs(310);

impl Hosts {
    /// Sees to it that a host has the agent's file, whole.
    async fn stage(&self, host: &Host) -> Result<Option<Sha256>, Trouble> {
        let AgentSource::File(path) = &self.settings.boot.agent else { return Ok(None) };
        let sha256 = self.checksum(path).await?;
        let door = door(host);
        let looked = script::has_agent(&self.layout, &sha256);
        let said = self.caller.script(&door, As::Guest, &looked, ASK_MAX).await;
        let said = said.map_err(|silence| self.silent(host, &silence))?;
        if said.stdout.lines().any(|line| line == "there") {
            return Ok(Some(sha256));
        }
        let take = script::stage(&self.layout, &sha256);
        let said = self.caller.feed(&door, As::Root, &take, path, STAGE_MAX).await;
        let said = said.map_err(|silence| self.silent(host, &silence))?;
        match said.code {
            0 => Ok(Some(sha256)),
            code::CHECKSUM => {
                let name = &host.name;
                Err(Trouble::Unreachable(format!("{name}: the agent did not arrive whole")))
            }
            _ => Err(refused(host, &said)),
        }
    }

    /// The checksum of the agent's file, as it is now.
    async fn checksum(&self, path: &Path) -> Result<Sha256, Trouble> {
        let known = self.desk().agent.clone();
        let file = path.to_owned();
        let found = aside(move || {
            let facts = std::fs::metadata(&file)?;
            let modified_ns = (facts.mtime(), facts.mtime_nsec());
            let mark = FileMark { inode: facts.ino(), len: facts.len(), modified_ns };
            match known {
                Some((before, sha256)) if before == mark => Ok((mark, sha256)),
                Some(_) | None => Ok((mark, Sha256::of_file(&file)?)),
            }
        });
        let found = found.await.map_err(|cause| Trouble::Invalid {
            field: "agent".to_owned(),
            message: format!("the agent {} cannot be read: {cause}", path.display()),
        })?;
        let sha256 = found.1.clone();
        self.desk().agent = Some(found);
        Ok(sha256)
    }

    /// Claims one host and has its agent started.
    pub(super) async fn claim(&self, host: &Host, purchase: &Purchase) -> Result<Machine, Tried> {
        let staged = self.stage(host).await.map_err(Tried::Elsewhere)?;
        let claim = Claim::new(purchase, &self.settings.boot.server, self.clock.now());
        let mut told = purchase.clone();
        told.order.zone = host.zone.clone();
        // What the pool says of its nodes wins over what the host says of itself.
        let own = host.labels.iter().filter(|(key, _)| !purchase.labels.contains_key(*key));
        told.labels.extend(own.map(|(key, value)| (key.clone(), value.clone())));
        let Settings { boot, .. } = &self.settings;
        let script = script::claim(boot, staged.as_ref(), &told, &claim, &self.layout);
        let setup = u32::try_from(boot.setup_commands.len()).unwrap_or(u32::MAX);
        let time_max = CLAIM_MAX.saturating_add(SETUP_MAX.saturating_mul(setup));
        let (memory, name, asked) = (self.memory.clone(), host.name.clone(), claim.clone());
        let noted = aside(move || memory.asks(&name, &asked)).await;
        noted.map_err(|cause| Tried::Over(unreadable(cause)))?;
        let said = self.caller.script(&door(host), As::Root, &script, time_max).await;
        let said = match said {
            Ok(said) => said,
            Err(silence @ Silence::Broken(_)) => {
                return Err(Tried::Over(self.broken(host, &silence)));
            }
            Err(silence) => {
                self.answered(host, None).await.map_err(Tried::Over)?;
                return Err(Tried::Elsewhere(self.silent(host, &silence)));
            }
        };
        let name = &host.name;
        let why = last_line(&said.stderr);
        let (tenancy, tried) = match said.code {
            0 => (Some(Tenancy::Claimed(claim.clone())), None),
            code::TAKEN => {
                let message = format!("{name} was taken a moment ago");
                let code = "HostTaken".to_owned();
                (None, Some(Tried::Elsewhere(Trouble::Capacity { code, message })))
            }
            code::RELEASED => (None, Some(Tried::Over(returned(purchase)))),
            code::OFF => {
                let message = format!("{name}: the claim was called off by somebody else");
                (None, Some(Tried::Over(Trouble::Throttled { retry_after_s: None, message })))
            }
            code::BUSY => {
                let message = format!("{name}: somebody else works on it");
                (None, Some(Tried::Elsewhere(Trouble::Throttled { retry_after_s: None, message })))
            }
            code::UNDONE => {
                let message = format!(
                    "{name}: the agent could not be installed, and nothing is left of it there: {why}"
                );
                let code = "BootstrapFailed".to_owned();
                (Some(Tenancy::Free), Some(Tried::Elsewhere(Trouble::Capacity { code, message })))
            }
            // Its files or its process are left, and so is the claim: it can be found and returned.
            code::LEFT => {
                let message = format!("{name}: the agent could not be installed, and stays: {why}");
                return Err(Tried::Over(Trouble::Unsure(message)));
            }
            // Ended by a signal: nobody knows where.
            signal if 128 <= signal => {
                let message = format!("{name}: the claim was ended by signal {}", signal - 128);
                return Err(Tried::Over(Trouble::Unsure(message)));
            }
            _ => (None, Some(Tried::Elsewhere(refused(host, &said)))),
        };
        self.answered(host, tenancy).await.map_err(Tried::Over)?;
        tried.map_or(Ok(self.show(host, &claim, MachineState::Starting)), Err)
    }
}
