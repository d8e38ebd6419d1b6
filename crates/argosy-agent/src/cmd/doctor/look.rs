//! One look for each thing that an agent needs or can use.

use super::{Finding, Setup, State};
use crate::clock::{Clock, System};
use crate::config::{Config, ConfigError, FILE};
use crate::gpu::{Gpu, GpuError};
use crate::host::{Roots, Sampler, gpus_on_bus};
use crate::identity::cloud;
use crate::log::{self, Logs, Source};
use futures_util::future::join_all;
use std::io::Read;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long a server may take to answer a doctor.
const SERVER_MAX: Duration = Duration::from_secs(3);

/// How much of an answer is read: its head.
const ANSWER_LEN_MAX: u64 = 8 * 1024;

/// How far a clock may be from the server's before it is worth a word. Dates in HTTP have whole seconds.
const SKEW_MAX_S: i64 = 5;

/// Room for the spool and the journal, with some to spare.
const FREE_BYTES_MIN: u64 = 64 << 20;

/// The most that is read of the loader's list of libraries; usual ones have 100 KiB.
const CACHE_LEN_MAX: u64 = 4 << 20;

/// NVML, the driver, and each GPU.
pub(super) async fn gpus(gpu: Option<Box<dyn Gpu>>, roots: &Roots) -> Vec<Finding> {
    let on_the_bus = gpus_on_bus(roots);
    let Some(mut gpu) = gpu else {
        return vec![Finding::new("nvml", State::None, "not asked for: --gpu none", "")];
    };
    let inventory = match gpu.inventory().await {
        Ok(inventory) => inventory,
        Err(error) => return vec![no_driver(&error, on_the_bus)],
    };
    let version = |version: &Option<String>| version.clone().unwrap_or_else(|| "?".to_owned());
    let seen = format!(
        "driver {}, NVML {}, CUDA up to {}",
        version(&inventory.driver_version),
        version(&inventory.nvml_version),
        version(&inventory.cuda_version)
    );
    let mut findings = vec![Finding::new("nvml", State::Ok, seen, "")];
    match gpu.sweep().await {
        Ok(sweep) => {
            let seen = format!("{} of {} GPUs can be read", sweep.gpus.len(), sweep.count);
            let state = if sweep.unreadable.is_empty() { State::Ok } else { State::Fail };
            findings.push(Finding::new("gpus", state, seen, ""));
            for (index, said) in &sweep.unreadable {
                findings.push(Finding::new(
                    &format!("gpu {index}"),
                    State::Fail,
                    format!("cannot be read: {said}"),
                    unreadable_way_out(said),
                ));
            }
            if sweep.count < on_the_bus {
                findings.push(Finding::new(
                    "bus",
                    State::Warn,
                    format!("the PCI bus shows {on_the_bus} GPUs, the driver {}", sweep.count),
                    "in a container that may be meant; otherwise look for Xid 79 in the kernel's log, or reboot",
                ));
            }
        }
        Err(error) => {
            let way_out = "look at `dmesg | grep NVRM`; a driver that hangs needs a reboot";
            findings.push(Finding::new("gpus", State::Fail, error.to_string(), way_out));
        }
    }
    findings
}

fn unreadable_way_out(said: &str) -> &'static str {
    match said {
        "GPU_IS_LOST" | "GPU_NOT_FOUND" => {
            "it has fallen off the bus: reboot; if it comes back so, call the vendor"
        }
        "NO_PERMISSION" => "let this user read and write /dev/nvidia*",
        said if said.starts_with("ProbeCrashed") => {
            "the driver's library crashed: is it the version of the driver?"
        }
        _ => "reset it with `nvidia-smi --gpu-reset`, or reboot",
    }
}

fn no_driver(error: &GpuError, on_the_bus: u32) -> Finding {
    let finding = |state, way_out: &str| Finding::new("nvml", state, error.to_string(), way_out);
    match error {
        GpuError::Absent { .. } if on_the_bus == 0 => Finding::new(
            "nvml",
            State::None,
            "no NVML, and no NVIDIA GPU on the PCI bus: a machine without GPUs",
            "",
        ),
        GpuError::Absent { .. } => finding(
            State::Fail,
            "GPUs are on the PCI bus: install the driver, or name its library with --nvml-library",
        ),
        GpuError::Driver { code, .. } if code == "LIB_RM_VERSION_MISMATCH" => finding(
            State::Fail,
            "the driver was upgraded and not reloaded: reboot, or reload its modules",
        ),
        GpuError::Driver { code, .. } if code == "DRIVER_NOT_LOADED" => {
            finding(State::Fail, "load it: `modprobe nvidia`; then look at `dmesg | grep NVRM`")
        }
        GpuError::Driver { .. } => finding(State::Fail, "look at `dmesg | grep NVRM`"),
        GpuError::Hung { .. } => finding(
            State::Fail,
            "a call into the driver does not return: drain the machine and reboot",
        ),
        GpuError::Crashed { .. } => {
            finding(State::Fail, "the driver's library crashed: is it the version of the driver?")
        }
    }
}

/// The library that diagnostics need. It is looked for, not loaded: loading it wakes the GPUs.
pub(super) fn cuda(setup: &Setup, wanted: bool) -> Finding {
    const NAME: &str = "libcuda.so.1";
    const USUAL: [&str; 4] = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/local/nvidia/lib64",
    ];
    let usual = USUAL.map(Path::new);
    let mut places = setup.library_path.iter().map(|path| path.as_path()).chain(usual);
    if let Some(place) = places.find(|place| place.join(NAME).exists()) {
        return Finding::new("cuda", State::Ok, place.join(NAME).display().to_string(), "");
    }
    let mut cache = Vec::new();
    let opened = std::fs::File::open(setup.roots.etc.join("ld.so.cache"));
    let _read = opened.and_then(|file| file.take(CACHE_LEN_MAX).read_to_end(&mut cache));
    if cache.windows(NAME.len()).any(|part| part == NAME.as_bytes()) {
        return Finding::new("cuda", State::Ok, format!("{NAME} is known to the loader"), "");
    }
    let seen = format!("{NAME} is not found, so diagnostics cannot use the GPUs");
    match wanted {
        true => Finding::new("cuda", State::Warn, seen, "install the driver's compute libraries"),
        false => Finding::new("cuda", State::None, seen, ""),
    }
}

/// Each source of lines, and whether one of them tells of the kernel.
pub(super) async fn logs(setup: &Setup) -> Vec<Finding> {
    let file = |name: &str| setup.logs.var_log.join(name);
    let sources = [
        ("kmsg", Source::Kmsg),
        ("journal", Source::Journald),
        ("kern.log", Source::Syslog(file("kern.log"))),
        ("messages", Source::Syslog(file("messages"))),
        ("syslog", Source::Syslog(file("syslog"))),
        ("fabric", Source::Program(file("fabricmanager.log"))),
    ];
    let mut findings = Vec::new();
    let mut hears_kernel = false;
    for (name, source) in sources {
        let options = log::Options { sources: Some(vec![source.clone()]), ..setup.logs.clone() };
        let mut logs = Logs::open(options);
        // Some sources open and fail at the first read.
        let _line = timeout(Duration::from_millis(300), logs.next()).await;
        match logs.problems().into_iter().next() {
            None => {
                hears_kernel |= source.tells_of_kernel();
                findings.push(Finding::new(name, State::Ok, format!("{source} can be read"), ""));
            }
            Some(problem) => {
                let (said, way_out) =
                    problem.message.split_once("; ").unwrap_or((&problem.message, ""));
                let state = match problem.kind {
                    log::ProblemKind::Absent => State::None,
                    log::ProblemKind::Forbidden | log::ProblemKind::Failed => State::Warn,
                };
                findings.push(Finding::new(name, state, format!("{source}: {said}"), way_out));
            }
        }
    }
    let (state, seen, way_out) = if hears_kernel {
        (State::Ok, "at least one log tells what the kernel says about GPUs", "")
    } else {
        (
            State::Fail,
            "no log of the kernel can be read: Xids go unseen",
            "run as root, give CAP_SYSLOG for /dev/kmsg, or join the group systemd-journal or adm",
        )
    };
    findings.push(Finding::new("xid", state, seen, way_out));
    findings
}

/// InfiniBand and the clock.
pub(super) fn host(roots: &Roots) -> [Finding; 2] {
    let host = Sampler::new(roots.clone()).sample(System.now());
    let directory = roots.sys.join("class/infiniband");
    let active = host.ports.iter().filter(|port| port.active == Some(true)).count();
    let ports = match host.ports.len() {
        0 => {
            let seen = format!("no port in {}", directory.display());
            Finding::new("infiniband", State::None, seen, "")
        }
        count => {
            let seen = format!("{active} of {count} ports active");
            Finding::new("infiniband", State::Ok, seen, "")
        }
    };
    let clock = match host.clock_synchronised {
        Some(true) => Finding::new("clock", State::Ok, "kept right by systemd-timesyncd", ""),
        Some(false) => {
            Finding::new("clock", State::Warn, "not synchronised", "see `timedatectl status`")
        }
        None => {
            let seen = "systemd-timesyncd does not run; other services leave no word that we know";
            Finding::new("clock", State::None, seen, "")
        }
    };
    [ports, clock]
}

/// Whether it can be written to, by writing to it; one that is not there is not made.
pub(super) fn data_dir(dir: &Path) -> Finding {
    let name = "data dir";
    let shown = dir.display();
    if !dir.is_dir() {
        let seen = format!("{shown} is not there");
        let way_out = "the unit makes it (StateDirectory=), and so does `run` if it may; or name another with --data-dir";
        return Finding::new(name, State::Warn, seen, way_out);
    }
    let probe = dir.join(format!(".doctor-{}", std::process::id()));
    let written = std::fs::write(&probe, b"x");
    let _gone = std::fs::remove_file(&probe);
    if let Err(error) = written {
        let seen = format!("{shown} cannot be written to: {error}");
        let way_out = "nothing survives a restart of the agent: give it to the agent's user, or free some space";
        return Finding::new(name, State::Fail, seen, way_out);
    }
    let free = rustix::fs::statvfs(dir).map(|fs| fs.f_bavail.saturating_mul(fs.f_frsize));
    match free {
        Ok(free) if free < FREE_BYTES_MIN => {
            let seen = format!("{shown} has {} MiB left", free >> 20);
            Finding::new(
                name,
                State::Warn,
                seen,
                "free some space: reports wait there while the server is away",
            )
        }
        Ok(free) => {
            let seen = format!("{shown} can be written to, {} MiB free", free >> 20);
            Finding::new(name, State::Ok, seen, "")
        }
        Err(error) => {
            let seen = format!("{shown} can be written to; its space is unknown: {error}");
            Finding::new(name, State::Ok, seen, "")
        }
    }
}

/// The configuration, and the one to go on with: an empty one if it is not good.
pub(super) fn config(read: Result<Config, ConfigError>, named: Option<&Path>) -> (Finding, Config) {
    let path = named.unwrap_or(Path::new(FILE));
    match read {
        Ok(config) if named.is_some() || path.exists() => {
            (Finding::new("config", State::Ok, format!("{} is good", path.display()), ""), config)
        }
        Ok(config) => {
            let seen = format!("{} is not there: flags and environment alone", path.display());
            (Finding::new("config", State::None, seen, ""), config)
        }
        Err(error) => {
            let way_out =
                "`argosy-agent run` refuses it, too: correct it; the rest is looked at without it";
            (Finding::new("config", State::Fail, error.to_string(), way_out), Config::default())
        }
    }
}

/// Each server.
pub(super) async fn servers(urls: &[String]) -> Vec<Finding> {
    if urls.is_empty() {
        let way_out =
            "name it with `servers` in the configuration, --server, or ARGOSY_AGENT_SERVER";
        return vec![Finding::new("server", State::None, "none is configured", way_out)];
    }
    join_all(urls.iter().map(|url| server(url))).await.concat()
}

/// One server, and how far its clock is from ours.
pub(super) async fn server(url: &str) -> Vec<Finding> {
    let name = "server";
    let Ok(uri) = url.parse::<http::Uri>() else {
        let way_out = "write it as https://HOST[:PORT]";
        return vec![Finding::new(name, State::Fail, format!("`{url}` is no address"), way_out)];
    };
    let (Some(host), Some(scheme @ ("http" | "https"))) = (uri.host(), uri.scheme_str()) else {
        let way_out = "write it as https://HOST[:PORT]";
        return vec![Finding::new(name, State::Fail, format!("`{url}` is no address"), way_out)];
    };
    let is_plain = scheme == "http";
    let port = uri.port_u16().unwrap_or(if is_plain { 80 } else { 443 });
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let failed = |why: String| {
        let way_out = "is the name right, the server up, and a firewall in between?";
        vec![Finding::new(name, State::Fail, format!("{url}: {why}"), way_out)]
    };
    let mut stream = match timeout(SERVER_MAX, TcpStream::connect((bare, port))).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return failed(error.to_string()),
        Err(_) => return failed(format!("no answer within {SERVER_MAX:?}")),
    };
    if !is_plain {
        let seen = format!("{bare}:{port} takes connections; TLS and token are tried by `run`");
        return vec![Finding::new(name, State::Ok, seen, "")];
    }
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let mut answer = Vec::new();
    let asked = async {
        stream.write_all(request.as_bytes()).await?;
        stream.take(ANSWER_LEN_MAX).read_to_end(&mut answer).await
    };
    match timeout(SERVER_MAX, asked).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => return failed(error.to_string()),
        Err(_) => return failed(format!("no answer within {SERVER_MAX:?}")),
    }
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.lines().next().unwrap_or_default().to_owned();
    if !status.starts_with("HTTP/1.") {
        return failed("what answers there is no web server".to_owned());
    }
    let mut findings = vec![if status.contains(" 200") {
        Finding::new(name, State::Ok, format!("{url}/healthz answers"), "")
    } else {
        let way_out = "is that the address of the control plane?";
        Finding::new(name, State::Fail, format!("{url}/healthz says {status}"), way_out)
    }];
    findings.extend(skew(&answer));
    findings
}

fn skew(answer: &str) -> Option<Finding> {
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("date").then(|| value.trim().to_owned())
    };
    let date = answer.lines().take_while(|line| !line.is_empty()).find_map(header)?;
    let theirs = jiff::fmt::rfc2822::parse(&date).ok()?.timestamp();
    let seconds = System.now().duration_since(theirs).as_secs();
    Some(if seconds.abs() <= SKEW_MAX_S {
        Finding::new("clock skew", State::Ok, "this clock and the server's agree", "")
    } else {
        let seen = format!("this clock is {seconds} s ahead of the server's");
        Finding::new("clock skew", State::Warn, seen, "start a time service; see `timedatectl`")
    })
}

pub(super) fn token(file: Option<&Path>, setup: &Setup) -> Finding {
    let name = "token";
    let credential = setup.credentials.as_ref().map(|directory| directory.join("token"));
    let readable = |path: &Path| match std::fs::read_to_string(path) {
        Ok(text) if text.trim().is_empty() => Err(format!("{} is empty", path.display())),
        Ok(_) => Ok(format!("in {}", path.display())),
        Err(error) => Err(format!("{}: {error}", path.display())),
    };
    let found = match (file, credential, setup.token_in_environment) {
        (Some(file), _, _) => readable(file),
        (None, Some(path), _) if path.exists() => readable(&path),
        (None, _, true) => Ok("in the environment, ARGOSY_TOKEN".to_owned()),
        (None, _, false) => {
            let way_out = "only needed if the server asks for one: a token of the role `node`, by LoadCredential=token:PATH, --token-file or ARGOSY_TOKEN";
            return Finding::new(name, State::None, "none is given", way_out);
        }
    };
    match found {
        Ok(seen) => Finding::new(name, State::Ok, seen, ""),
        Err(seen) => Finding::new(
            name,
            State::Fail,
            seen,
            "write it there, readable by the agent's user alone",
        ),
    }
}

pub(super) async fn cloud(setup: &Setup) -> Finding {
    match cloud::ask(&setup.roots, &setup.cloud).await {
        Some(cloud) => {
            let rest = [&cloud.region, &cloud.zone, &cloud.instance_type];
            let rest: Vec<&str> = rest.into_iter().flatten().map(String::as_str).collect();
            let seen = format!("{} {}", cloud.provider, rest.join(" "));
            Finding::new("cloud", State::Ok, seen, "")
        }
        None => {
            let way_out =
                "if it is in a cloud, say --provider, --region, --zone and --instance-type";
            Finding::new("cloud", State::None, "no metadata service answers", way_out)
        }
    }
}

pub(super) fn unit(setup: &Setup) -> Finding {
    const UNIT: &str = "argosy-agent.service";
    let installed =
        setup.units.iter().map(|directory| directory.join(UNIT)).find(|unit| unit.exists());
    let runs = setup.roots.sys.join("fs/cgroup/system.slice").join(UNIT).exists();
    match (installed, runs) {
        (_, true) => Finding::new("systemd", State::Ok, format!("{UNIT} runs"), ""),
        (Some(path), false) => Finding::new(
            "systemd",
            State::Warn,
            format!("{} is installed and does not run", path.display()),
            "`systemctl enable --now argosy-agent`, then `journalctl -u argosy-agent`",
        ),
        (None, false) => {
            let way_out = "see packaging/systemd/argosy-agent.service";
            Finding::new("systemd", State::None, format!("{UNIT} is not installed"), way_out)
        }
    }
}
