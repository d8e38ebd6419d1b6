//! Real sshds on this machine, each with a directory that stands for the host it leads to.
//!
//! A host's shell begins in its directory, where `root` is the root of its files. `systemctl` and `journalctl`
//! are small programs that really start and stop the agent: systemd does not run in a sandbox.

use super::*;
use crate::boot::Boot;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// One host and its sshd.
pub(super) struct Station {
    pub(super) dir: PathBuf,
    pub(super) port: u16,
    sshd: Option<Child>,
}

/// Hosts, and the keys to them.
pub(super) struct Park {
    pub(super) dir: PathBuf,
    pub(super) stations: Vec<Station>,
}

const SYSTEMCTL: &str = r#"#!/bin/sh
unit=root/etc/systemd/system/argosy-agent.service
alive() {
  [ -e run.pid ] && kill -0 "$(cat run.pid)" 2>/dev/null &&
    ! grep -q '^State:.Z' "/proc/$(cat run.pid)/status" 2>/dev/null
}
start() {
  alive && return 0
  [ -e $unit ] || return 5
  rm -rf creds
  if grep -q ^LoadCredential= $unit; then
    /bin/mkdir creds && cp "$(sed -n 's/^LoadCredential=token://p' $unit)" creds/token || return 6
    export CREDENTIALS_DIRECTORY="$PWD/creds"
  fi
  command=$(sed -n 's/^ExecStart=//p' $unit)
  eval "exec setsid $command" >>journal 2>&1 </dev/null 3>&- 9>&- &
  echo $! >run.pid
}
stop() {
  alive || return 0
  kill -TERM "$(cat run.pid)"
  while alive; do sleep 0.02; done
  rm -f run.pid
}
case "$*" in
  daemon-reload) ;;
  "enable argosy-agent.service") : >enabled ;;
  "disable --now argosy-agent.service") rm -f enabled; stop ;;
  "restart --no-block argosy-agent.service") stop; start ;;
  "is-active argosy-agent.service") if alive; then echo active; else echo inactive; exit 3; fi ;;
  reboot) stop; [ ! -e enabled ] || start; echo booted >>boots ;;
  *) echo "systemctl: $*?" >&2; exit 1 ;;
esac
"#;

/// Stands in for the agent where only its process matters.
const AGENT: &str = "#!/bin/sh\n[ \"$1\" != --version ] || { echo 0; exit 0; }\n\
                     trap 'kill $!; exit 0' TERM\necho \"began as $5\"\nsleep 600 & wait $!\n";

/// What sshd runs instead of what it was asked for: that, in the place of the host, with a lie if one is told.
/// Which script it is shows in what it says at its end.
fn shell(dir: &Path) -> String {
    format!(
        "#!/bin/sh\n\
         cd {dir}/host || exit 1\n\
         PATH={dir}/bin:$PATH HOME={dir}/host\n\
         export PATH HOME\n\
         echo $PPID >>{dir}/sessions\n\
         case \"$SSH_ORIGINAL_COMMAND\" in\n\
         *\"'-s'\") ;;\n\
         *) if [ -e {dir}/cut-upload ]; then head -c 1000 | sh -c \"$SSH_ORIGINAL_COMMAND\"; kill -9 $PPID; fi\n\
         exec sh -c \"$SSH_ORIGINAL_COMMAND\";;\n\
         esac\n\
         script=$(mktemp {dir}/script.XXXXXX)\n\
         cat >\"$script\"\n\
         kind=other\n\
         for word in survey done gone; do grep -q \"argosy-$word\" \"$script\" && kind=$word; done\n\
         if [ -e {dir}/before-$kind ]; then rm -f \"$script\"; kill -9 $PPID; exit 1; fi\n\
         sh -c \"$SSH_ORIGINAL_COMMAND\" <\"$script\"\n\
         code=$?\n\
         rm -f \"$script\"\n\
         if [ -e {dir}/after-$kind ]; then kill -9 $PPID; fi\n\
         exit $code\n",
        dir = dir.display()
    )
}

impl Park {
    pub(super) fn new(count: usize) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("argosy-sshd-{}-{number}", std::process::id()));
        _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        program(&dir.join("agent"), AGENT);
        keygen(&dir.join("key"));
        let stations = (0..count).map(|number| Station::new(&dir, number)).collect();
        let park = Self { dir, stations };
        park.know_hosts();
        park
    }

    /// Writes the keys that hosts have now.
    pub(super) fn know_hosts(&self) {
        let lines = self.stations.iter().map(|station| {
            let key = std::fs::read_to_string(station.dir.join("host_key.pub")).unwrap();
            format!("[127.0.0.1]:{} {key}", station.port)
        });
        std::fs::write(self.dir.join("known_hosts"), lines.collect::<String>()).unwrap();
    }

    pub(super) fn settings(&self) -> Settings {
        let user = std::env::var("USER").ok().filter(|user| !user.is_empty());
        let host = |(number, station): (usize, &Station)| Host {
            name: format!("gpu-{number}"),
            address: "127.0.0.1".to_owned(),
            port: station.port,
            user: user.clone().unwrap_or_else(|| "root".to_owned()),
            machine_type: "h100".to_owned(),
            cpus: 96,
            gpus: 8,
            zone: "rack-7".to_owned(),
            price_per_hour: Some(1.5),
            labels: BTreeMap::from([("rack".to_owned(), "r7".to_owned())]),
        };
        Settings {
            hosts: self.stations.iter().enumerate().map(host).collect(),
            region: "hall-1".to_owned(),
            key_file: self.dir.join("key"),
            known_hosts: self.dir.join("known_hosts"),
            sudo: false,
            ssh: "ssh".into(),
            ssh_config: None,
            state: self.dir.join("state"),
            boot: Boot {
                server: "http://127.0.0.1:9".to_owned(),
                agent: AgentSource::File(self.dir.join("agent")),
                token: Some(crate::boot::AgentToken::new("a-token-of-agents").unwrap()),
                ca_pem: None,
                extra_args: Vec::new(),
                setup_commands: Vec::new(),
            },
            root: "root".to_owned(),
        }
    }

    pub(super) fn open(&self) -> Hosts {
        Hosts::new(self.settings(), Clock::System).unwrap()
    }

    /// What runs, past the provider: `host/instance` of each agent that lives.
    pub(super) fn running(&self) -> Vec<String> {
        let named = |(number, station): (usize, &Station)| {
            Some(format!("gpu-{number}/{}", station.agent()?))
        };
        self.stations.iter().enumerate().filter_map(named).collect()
    }

    /// Tells every host a lie, or all of them the truth again.
    pub(super) fn mark(&self, name: &str, on: bool) {
        for station in &self.stations {
            station.mark(name, on);
        }
    }
}

impl Station {
    fn new(park: &Path, number: usize) -> Self {
        let dir = park.join(format!("h{number}"));
        for folder in ["bin", "host/root"] {
            std::fs::create_dir_all(dir.join(folder)).unwrap();
        }
        keygen(&dir.join("host_key"));
        std::fs::copy(park.join("key.pub"), dir.join("authorized_keys")).unwrap();
        program(&dir.join("bin/systemctl"), SYSTEMCTL);
        program(&dir.join("bin/journalctl"), "#!/bin/sh\ncat journal\n");
        program(&dir.join("shell"), &shell(&dir));
        let mut station = Self { dir, port: free_port(), sshd: None };
        station.start();
        station
    }

    /// Starts its sshd and waits until it listens.
    pub(super) fn start(&mut self) {
        let dir = self.dir.display();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {dir}/host_key\n\
             AuthorizedKeysFile {dir}/authorized_keys\nForceCommand {dir}/shell\n\
             PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n\
             KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n\
             MaxStartups 100\nMaxSessions 100\nSetEnv HOME={dir}/host\n",
            port = self.port
        );
        std::fs::write(self.dir.join("sshd_config"), config).unwrap();
        // sshd of root wants it, and Debian makes it at boot.
        _ = std::fs::create_dir_all("/run/sshd");
        let log = std::fs::File::create(self.dir.join("sshd.log")).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "/usr/sbin/sshd", "-D", "-e", "-f"]);
        command.arg(self.dir.join("sshd_config")).process_group(0);
        // From 9.8 on it shuts out for a while whom it refused once, and all rules are tried from one address. What was
        // before does not know the word.
        let forgiving = ["-o", "PerSourcePenalties=no"];
        let mut check = Command::new("/usr/sbin/sshd");
        check.arg("-t").args(forgiving).arg("-f").arg(self.dir.join("sshd_config"));
        if check.output().unwrap().status.success() {
            command.args(forgiving);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let mut sshd = command.spawn().unwrap();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let ended = sshd.try_wait().unwrap();
            let log = std::fs::read_to_string(self.dir.join("sshd.log")).unwrap();
            assert!(ended.is_none(), "sshd ended: {log}");
            std::thread::yield_now();
        }
        self.sshd = Some(sshd);
    }

    /// Ends its sshd and every connection to it.
    pub(super) fn stop(&mut self) {
        if let Some(mut sshd) = self.sshd.take() {
            _ = sshd.kill();
            _ = sshd.wait();
        }
        self.hang_up();
    }

    /// Ends every connection.
    pub(super) fn hang_up(&self) {
        let sessions = std::fs::read_to_string(self.dir.join("sessions")).unwrap_or_default();
        _ = std::fs::remove_file(self.dir.join("sessions"));
        for pid in sessions.lines().filter_map(|line| line.parse::<i32>().ok()) {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            if name.starts_with("sshd")
                && let Some(pid) = rustix::process::Pid::from_raw(pid)
            {
                _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }

    pub(super) fn mark(&self, name: &str, on: bool) {
        let path = self.dir.join(name);
        if on {
            std::fs::write(path, "").unwrap();
        } else {
            _ = std::fs::remove_file(path);
        }
    }

    /// The path of a file of the host.
    pub(super) fn file(&self, path: &str) -> PathBuf {
        self.dir.join("host/root").join(path)
    }

    fn pid(&self) -> Option<i32> {
        std::fs::read_to_string(self.dir.join("host/run.pid")).ok()?.trim().parse().ok()
    }

    /// The node whose agent lives here.
    pub(super) fn agent(&self) -> Option<String> {
        let words = std::fs::read(format!("/proc/{}/cmdline", self.pid()?)).ok()?;
        let words: Vec<_> = words.split(|byte| *byte == 0).collect();
        let at = words.iter().position(|word| *word == b"--node-id")?;
        Some(String::from_utf8_lossy(words.get(at + 1)?).into_owned())
    }

    /// Every file of the host, by its path.
    pub(super) fn files(&self) -> Vec<String> {
        fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
            for entry in std::fs::read_dir(dir).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() { walk(&path, found) } else { found.push(path) }
            }
        }
        let mut found = Vec::new();
        walk(&self.file(""), &mut found);
        let root = self.file("");
        let mut names: Vec<String> = found
            .iter()
            .map(|path| path.strip_prefix(&root).unwrap().display().to_string())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Station {
    fn drop(&mut self) {
        self.stop();
        if self.agent().is_some()
            && let Some(pid) = self.pid().and_then(rustix::process::Pid::from_raw)
        {
            _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.dir.join("sshd.log")).unwrap_or_default();
            log.lines().rev().take(15).for_each(|line| eprintln!("sshd: {line}"));
        }
    }
}

impl Drop for Park {
    fn drop(&mut self) {
        self.stations.clear();
        _ = std::fs::remove_dir_all(&self.dir);
    }
}

pub(super) fn program(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Makes a new pair of keys.
pub(super) fn keygen(path: &Path) {
    _ = std::fs::remove_file(path);
    let mut command = Command::new("ssh-keygen");
    command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path);
    assert!(command.status().unwrap().success());
}

/// A port below those that the kernel gives away by itself: nobody is given it before sshd is started.
fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id().wrapping_mul(89);
    let tried = (0..10_000).map(|_| first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)));
    let mut ports = tried.map(|number| 10_000 + u16::try_from(number % 10_000).unwrap());
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}
