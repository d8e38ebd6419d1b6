//! Faults on request in a running agent: one line of JSON over a socket that only its owner can reach.
//!
//! Flow: `run --allow-inject` listens at `<data-dir>/inject.sock`; `argosy-agent inject` connects, writes one
//! `Injection` as a line of JSON, and reads one line: `{"accepted":true}`, or why not.
//!
//! What a newcomer gets wrong: on real GPUs nothing is ever made to look broken. An injection becomes a
//! `Signal` with the metric `injected`, and every reading stays what the driver said.

use crate::gpu::Inventory;
use crate::gpu::fake::injection::Injection;
use crate::signal::{GpuRef, Signal, SignalKind};
use argosy_core::recovery::RecoveryAction;
use jiff::Timestamp;
use rustix::process::getuid;
use serde::{Deserialize, Serialize};
use std::future::poll_fn;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

/// The name of the socket in the data directory.
pub const SOCKET: &str = "inject.sock";

/// The longest request. A line of the kernel, escaped, is the longest thing that can be injected; a longer
/// request is not one of ours.
pub const REQUEST_LEN_MAX: usize = 6 * argosy_core::kernel::LINE_LEN_MAX + 1_024;

/// How long one who connected may take: whoever holds the line must not keep others from it.
const TALK_MAX: Duration = Duration::from_secs(2);

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Answer {
    accepted: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    error: String,
}

/// Why nothing was injected.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// Nobody listens.
    #[error(
        "no agent listens at {}; start it with `argosy-agent run --allow-inject`, and name the same --data-dir",
        path.display()
    )]
    NobodyListens {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It was there and did not answer.
    #[error("the agent did not answer: {0}")]
    Silent(io::Error),
    /// It said no.
    #[error("the agent refused: {0}")]
    Refused(String),
}

/// Why an injection has no meaning where the GPUs are real.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSignal {
    /// It changes a reading, and readings of real GPUs are not changed.
    #[error("`{0}` is a state and not a finding: it can be injected into made-up GPUs only")]
    OnlyFake(Injection),
    /// There is no such GPU.
    #[error("there is no GPU {0} in this machine")]
    NoSuchGpu(u32),
}

type Talk = Pin<Box<dyn Future<Output = Option<Asked>> + Send>>;

/// Something that somebody wants to happen, and waits to hear of.
pub struct Asked {
    /// What.
    pub injection: Injection,
    stream: UnixStream,
}

impl Asked {
    /// Tells whoever asked what came of it. Waits for a moment only.
    pub async fn answer(mut self, injected: Result<(), String>) {
        answer(&mut self.stream, injected).await;
    }
}

/// What is asked for, one after another.
///
/// *Guarantees:* `next` is cancel-safe: what was accepted is given out once.
pub struct Injections {
    listener: UnixListener,
    path: PathBuf,
    talk: Option<Talk>,
}

impl Injections {
    /// Listens at this path. A socket that was left there by an agent that is gone is taken away.
    pub fn listen(path: &Path) -> io::Result<Self> {
        match std::os::unix::net::UnixStream::connect(path) {
            Ok(_) => {
                return Err(io::Error::new(
                    io::ErrorKind::AddrInUse,
                    "another agent listens there; give each its own --data-dir",
                ));
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                std::fs::remove_file(path)?;
            }
            // The usual case: nothing is there. Whatever else it is, `bind` says it better.
            Err(_) => {}
        }
        let listener = UnixListener::bind(path)?;
        // Between the two calls the directory's own mode guards it, and afterwards the peer's user does.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(Self { listener, path: path.to_owned(), talk: None })
    }

    /// The next one. Waits for as long as nobody asks.
    pub async fn next(&mut self) -> Asked {
        poll_fn(|cx| {
            loop {
                if let Some(talk) = &mut self.talk {
                    match talk.as_mut().poll(cx) {
                        Poll::Pending => return Poll::Pending,
                        Poll::Ready(said) => {
                            self.talk = None;
                            if let Some(asked) = said {
                                return Poll::Ready(asked);
                            }
                        }
                    }
                }
                match self.listener.poll_accept(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok((stream, _))) => self.talk = Some(Box::pin(talk(stream))),
                    // Out of file descriptors, most likely: an injection is not worth a loop that spins.
                    Poll::Ready(Err(_)) => return Poll::Pending,
                }
            }
        })
        .await
    }
}

impl Drop for Injections {
    fn drop(&mut self) {
        // If it stays, the next agent takes it away.
        let _left = std::fs::remove_file(&self.path);
    }
}

async fn talk(mut stream: UnixStream) -> Option<Asked> {
    let heard = match timeout(TALK_MAX, hear(&mut stream)).await {
        Ok(heard) => heard,
        Err(_) => Err("the request did not end".to_owned()),
    };
    match heard {
        Ok(injection) => Some(Asked { injection, stream }),
        Err(error) => {
            answer(&mut stream, Err(error)).await;
            None
        }
    }
}

async fn answer(stream: &mut UnixStream, injected: Result<(), String>) {
    let answer = Answer { accepted: injected.is_ok(), error: injected.err().unwrap_or_default() };
    let mut line = serde_json::to_vec(&answer).unwrap_or_default();
    line.push(b'\n');
    // Who does not wait for the answer gets what was asked for all the same.
    let _unheard = timeout(TALK_MAX, stream.write_all(&line)).await;
}

async fn hear(stream: &mut UnixStream) -> Result<Injection, String> {
    let peer = stream.peer_cred().map_err(|error| error.to_string())?.uid();
    if peer != getuid().as_raw() && peer != 0 {
        return Err("only root and the agent's own user may inject".to_owned());
    }
    let mut request = Vec::new();
    let mut chunk = [0; 4 * 1024];
    while !request.contains(&b'\n') {
        let count = stream.read(&mut chunk).await.map_err(|error| error.to_string())?;
        request.extend_from_slice(chunk.get(..count).unwrap_or_default());
        if count == 0 {
            break;
        }
        if REQUEST_LEN_MAX < request.len() {
            return Err(format!("a request may have {REQUEST_LEN_MAX} bytes"));
        }
    }
    let line = request.split(|byte| *byte == b'\n').next().unwrap_or_default();
    serde_json::from_slice(line).map_err(|error| format!("this is no injection: {error}"))
}

/// Asks the agent that listens at `path`. It blocks, for seconds at most.
pub fn send(path: &Path, injection: &Injection) -> Result<(), SendError> {
    let mut stream = std::os::unix::net::UnixStream::connect(path)
        .map_err(|source| SendError::NobodyListens { path: path.to_owned(), source })?;
    let patience = Some(TALK_MAX.saturating_mul(2));
    let mut said = || -> io::Result<Answer> {
        stream.set_read_timeout(patience)?;
        stream.set_write_timeout(patience)?;
        let mut line = serde_json::to_vec(injection)?;
        line.push(b'\n');
        stream.write_all(&line)?;
        let mut answer = String::new();
        let limit = u64::try_from(REQUEST_LEN_MAX).unwrap_or(u64::MAX);
        BufReader::new((&stream).take(limit)).read_line(&mut answer)?;
        Ok(serde_json::from_str(&answer)?)
    };
    match said().map_err(SendError::Silent)? {
        Answer { accepted: true, .. } => Ok(()),
        Answer { error, .. } => Err(SendError::Refused(error)),
    }
}

/// What an injection says about real GPUs: a signal that is marked; `None` for `heal`, which ends nothing
/// here because nothing was changed.
pub fn signal(
    injection: &Injection,
    inventory: &Inventory,
    now: Timestamp,
) -> Result<Option<Signal>, NoSignal> {
    let gpu = match injection.gpu() {
        None => None,
        Some(index) => {
            let known = inventory.gpus.iter().find(|gpu| gpu.index == index);
            let gpu = known.ok_or(NoSignal::NoSuchGpu(index))?;
            let serial = gpu.serial.clone().unwrap_or_default();
            Some(GpuRef { index, uuid: gpu.uuid.clone(), serial })
        }
    };
    let of = |kind| Signal::once(kind, now, format!("injected: {injection}"));
    let driver = |reason| of(SignalKind::DriverError).with("reason", reason);
    let signal = match injection {
        Injection::Heal { .. } => return Ok(None),
        Injection::Process { .. } | Injection::Mig { .. } | Injection::Line { .. } => {
            return Err(NoSignal::OnlyFake(injection.clone()));
        }
        Injection::Xid { code, .. } => of(SignalKind::Xid).with("xid_code", code),
        Injection::Lost { .. } => driver("GpuLost"),
        Injection::Missing { .. } => driver("GpuMissing"),
        Injection::Hang { .. } => driver("ProbeHung"),
        Injection::DriverError { code } => driver("DriverError").with("code", code),
        Injection::EccCorrected { count, .. } => {
            of(SignalKind::EccSbe).with("ecc_sbe_count", count)
        }
        Injection::EccUncorrected { count, .. } => {
            of(SignalKind::EccDbe).with("ecc_dbe_count", count)
        }
        Injection::RowRemapPending { .. } => of(SignalKind::Memory).with("row_remap_pending", 1),
        Injection::RowRemapFailed { .. } => of(SignalKind::Memory).with("row_remap_failure", 1),
        Injection::Temperature { celsius, .. } => {
            of(SignalKind::Thermal).with("temperature", celsius)
        }
        Injection::Throttle { reason, .. } => {
            let kind =
                if reason.contains("Power") { SignalKind::Power } else { SignalKind::Thermal };
            of(kind).with("throttle", reason)
        }
        Injection::NvlinkDown { links, .. } => of(SignalKind::Nvlink).with("nvlinks_down", links),
        Injection::NvlinkErrors { count, .. } => {
            of(SignalKind::Nvlink).with("nvlink_errors", count)
        }
        Injection::PcieReplays { count, .. } => of(SignalKind::Pcie).with("pcie_replays", count),
        Injection::PcieWidth { width, .. } => of(SignalKind::Pcie).with("pcie_width", width),
        Injection::Recovery { action, .. } => {
            let word =
                RecoveryAction::from_number(*action).map_or("unknown", RecoveryAction::as_str);
            let mut signal = driver("RecoveryAction").with("recovery_action", word);
            signal.recovery_action = Some(*action);
            signal
        }
    };
    let signal = signal.with("injected", true);
    Ok(Some(gpu.into_iter().fold(signal, Signal::on)))
}

#[cfg(test)]
mod tests;
