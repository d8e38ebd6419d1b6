//! The one moto of a test program.

use reqwest::Url;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{OnceLock, mpsc};

/// Where it answers. The first call starts it; it ends with the program.
pub(super) fn url() -> Url {
    static URL: OnceLock<Url> = OnceLock::new();
    URL.get_or_init(start).clone()
}

/// The Python that has moto, and AWS's own library.
pub(in crate::aws) fn python() -> PathBuf {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    let installed = python.with_file_name("moto_server").exists();
    assert!(installed, "moto is not installed: run `make test`, which installs it (in .venv)");
    python
}

fn start() -> Url {
    let python = python();
    let (tell, told) = mpsc::sync_channel(1);
    // The kernel ends moto with the thread that started it, so that thread lives as long as the program.
    let run = move || run(&python, &tell);
    std::thread::Builder::new().name("moto".to_owned()).spawn(run).expect("a thread");
    told.recv().expect("moto says where it answers; its last words are above")
}

fn run(python: &PathBuf, tell: &mpsc::SyncSender<Url>) {
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "KILL", "--"])
        .arg(python)
        .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", "0"])
        // A second for every account, and nobody looks at them.
        .env("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|cause| panic!("{command:?}: {cause}"));
    let words = BufReader::new(child.stderr.take().expect("a pipe was asked for"));
    let mut answers = false;
    // Read to the end: a full pipe would stop it.
    for line in words.lines().map_while(Result::ok) {
        if let Some((_, address)) = line.split_once("Running on ")
            && let Ok(url) = Url::parse(address.trim())
        {
            answers = true;
            let _ = tell.send(url);
        }
        if !answers {
            eprintln!("moto: {line}");
        }
    }
    let _ = child.wait();
}
