//! A real `argosy server` per test: the program as it is shipped, its own data, a free port.
//!
//! What a newcomer gets wrong: a server ends with its `Server`, also when the test panics, so keep the
//! value alive for as long as the test needs the process.

pub(crate) mod api;
pub(crate) mod cloud;
pub(crate) mod command;
mod patient;

pub(crate) use api::{Api, Reply, conditions, subset};
pub(crate) use command::{Ran, argosy, run};
pub(crate) use patient::await_until as await_until_within;

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_argosy");

/// How long anything may take before a test gives up. Generous: it is only reached by what is broken, and on a
/// busy machine with two cores everything takes several times as long as it should.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// Asks again until there is an answer; the only way to poll. `what` is named when time is up.
pub(crate) async fn await_until<T>(what: &str, condition: impl AsyncFnMut() -> Option<T>) -> T {
    await_until_within(PATIENCE, what, condition).await
}

/// Where a server keeps what it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Embedded,
    Postgres,
}

/// The dialect of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    Full,
    Mvp,
    Upstream,
}

impl Profile {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Mvp => "mvp",
            Self::Upstream => "upstream",
        }
    }

    /// The phase in the answer to a create.
    pub(crate) const fn first_phase(self) -> &'static str {
        match self {
            Self::Full | Self::Upstream => "Pending",
            Self::Mvp => "Not Ready",
        }
    }

    /// The phase while a resource is being deleted.
    pub(crate) const fn last_phase(self) -> &'static str {
        match self {
            Self::Full | Self::Upstream => "Terminating",
            Self::Mvp => "Not Ready",
        }
    }
}

/// What a server is started with.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    engine: Engine,
    profile: Profile,
    config: String,
    files: Vec<(String, String)>,
    flags: Vec<String>,
    token: Option<String>,
    store: Option<String>,
    wrapper: Vec<String>,
    failpoint: Option<String>,
}

impl Setup {
    /// A server with an instant simulated cloud that repeats failed work quickly.
    pub(crate) fn new(engine: Engine, profile: Profile) -> Self {
        Self {
            engine,
            profile,
            config: "sentinel: { backoff_first: 50ms, backoff_max: 200ms }\n".to_owned(),
            files: Vec::new(),
            flags: vec!["--simulated-cloud=instant".to_owned()],
            token: None,
            store: None,
            wrapper: Vec::new(),
            failpoint: None,
        }
    }

    /// The usual one where engine and profile do not matter.
    pub(crate) fn embedded() -> Self {
        Self::new(Engine::Embedded, Profile::Full)
    }

    /// More of the configuration file. Paths in it are relative to the server's directory.
    pub(crate) fn config(mut self, yaml: &str) -> Self {
        self.config.push_str(yaml);
        self.config.push('\n');
        self
    }

    /// The configuration file as it is, without what `new` put there.
    pub(crate) fn only_config(mut self, yaml: &str) -> Self {
        self.config = format!("{yaml}\n");
        self
    }

    /// A file in the server's directory.
    pub(crate) fn file(mut self, name: &str, text: &str) -> Self {
        self.files.push((name.to_owned(), text.to_owned()));
        self
    }

    /// As `tokens`, but teams do not matter: what a caller may not touch is for adapters to find.
    pub(crate) fn tokens_without_teams(self, entries: Value) -> Self {
        let mut setup = self.tokens(entries);
        setup.config = setup.config.replace("tokens.yaml }", "tokens.yaml, authorization: none }");
        setup
    }

    /// Callers by token: entries of a file of tokens, each with the token itself in `token`.
    pub(crate) fn tokens(self, mut entries: Value) -> Self {
        for entry in entries.as_array_mut().expect("a list") {
            let token = entry["token"].take();
            let token = token.as_str().expect("a token");
            let hash = argosy_server::auth::hash_token(token);
            let entry = entry.as_object_mut().expect("an entry");
            entry.remove("token");
            entry.insert("sha256".to_owned(), Value::String(hash));
        }
        self.file("tokens.yaml", &entries.to_string()).config("auth: { tokens_file: tokens.yaml }")
    }

    /// Without a simulated cloud: only adapters outside do anything.
    pub(crate) fn without_cloud(mut self) -> Self {
        self.flags.retain(|flag| !flag.starts_with("--simulated-cloud"));
        self
    }

    /// What requests carry unless they say otherwise.
    pub(crate) fn token(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    /// On this store, instead of one of its own.
    pub(crate) fn on_store(mut self, url: &str) -> Self {
        self.store = Some(url.to_owned());
        self
    }

    /// Run by another program, which is given the server's command line after these words.
    pub(crate) fn wrapped_in(mut self, words: &[&str]) -> Self {
        self.wrapper = words.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// Makes the directory and the database, and starts the server in them.
    pub(crate) async fn start(self) -> Server {
        let mut server = self.prepare().await;
        server.launch().await.unwrap_or_else(|log| panic!("the server did not start:\n{log}"));
        server
    }

    /// Makes the directory and the database, and starts nothing.
    pub(crate) async fn prepare(self) -> Server {
        let dir = TestDir::new();
        std::fs::write(dir.join("argosy.yaml"), &self.config).expect("a writable directory");
        for (name, text) in &self.files {
            std::fs::write(dir.join(name), text).expect("a writable directory");
        }
        let store = match (&self.store, self.engine) {
            (Some(store), _) => store.clone(),
            (None, Engine::Embedded) => "embedded".to_owned(),
            (None, Engine::Postgres) => argosy_scaleout::testing::database().await,
        };
        let api = Api::new("127.0.0.1:0", self.token.clone());
        Server { setup: self, dir, store, process: None, api }
    }
}

/// A running server; also the way to talk to it.
pub(crate) struct Server {
    setup: Setup,
    dir: TestDir,
    store: String,
    process: Option<Process>,
    api: Api,
}

impl Deref for Server {
    type Target = Api;

    fn deref(&self) -> &Api {
        &self.api
    }
}

impl Server {
    pub(crate) fn profile(&self) -> Profile {
        self.setup.profile
    }

    /// `http://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.process().address)
    }

    /// `127.0.0.1:PORT`.
    pub(crate) fn address(&self) -> &str {
        &self.process().address
    }

    /// The server's directory; the store's is `data` in it.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Everything it has logged since it was last started.
    pub(crate) fn log(&self) -> String {
        self.process().log.read()
    }

    /// Ends the process as a power cut would.
    pub(crate) fn kill9(&mut self) {
        drop(self.process.take());
    }

    /// Sends the process a signal, by name.
    pub(crate) fn signal(&self, name: &str) {
        self.process().signal(name);
    }

    /// The address of the store, as the server was given it.
    pub(crate) fn store(&self) -> &str {
        &self.store
    }

    /// Asks the process to end, and waits until it has; its exit code.
    pub(crate) async fn stop(&mut self) -> Option<i32> {
        let mut process = self.process.take().expect("a running server");
        process.signal("TERM");
        process.ended().await
    }

    /// Changes a file of the server's directory while it is down.
    pub(crate) fn edit(&self, name: &str, change: impl FnOnce(String) -> String) {
        assert!(self.process.is_none(), "the server is running");
        let path = self.dir.join(name);
        let text = std::fs::read_to_string(&path).expect("a file");
        std::fs::write(&path, change(text)).expect("a writable file");
    }

    /// The number of the process.
    pub(crate) fn process_id(&self) -> u32 {
        self.process().child.id()
    }

    /// From the next start on, it is given this flag.
    pub(crate) fn with_flag(&mut self, flag: &str) {
        self.setup.flags.push(flag.to_owned());
    }

    /// From the next start on, it is not given this flag.
    pub(crate) fn without_flag(&mut self, flag: &str) {
        self.setup.flags.retain(|given| given != flag);
    }

    /// From the next start on, the server is run by nobody but us.
    pub(crate) fn unwrap(&mut self) {
        self.setup.wrapper.clear();
    }

    /// Waits until the process has ended by itself; its exit code, and what it logged.
    pub(crate) async fn ended(&mut self) -> (Option<i32>, String) {
        let mut process = self.process.take().expect("a running server");
        (process.ended().await, process.log.read())
    }

    /// From the next start on, the process aborts at this failpoint, or at none.
    pub(crate) fn fail_at(&mut self, failpoint: Option<&str>) {
        self.setup.failpoint = failpoint.map(str::to_owned);
    }

    /// Starts it, at the address it had before if it had one. `Err` is all it wrote if it ended
    /// before it listened.
    pub(crate) async fn launch(&mut self) -> Result<(), String> {
        let address = self.api.address();
        let process = Process::start(&self.setup, self.dir.path(), &self.store, address).await?;
        if process.address != address {
            self.api = Api::new(&process.address, self.setup.token.clone());
        }
        self.process = Some(process);
        Ok(())
    }

    /// Starts it again at the same address, on what it left behind.
    pub(crate) async fn restart(&mut self) {
        self.kill9();
        // Another process may have been given our port for a moment.
        await_until("the server starts again", async || self.launch().await.ok()).await;
    }

    fn process(&self) -> &Process {
        self.process.as_ref().expect("a running server")
    }
}

/// What a process wrote to standard error.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Arc<Mutex<String>>);

impl Log {
    pub(crate) fn read(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn push(&self, line: &str) {
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        text.push_str(line);
        text.push('\n');
    }
}

/// A process that is killed when the test is done with it.
pub(crate) struct Process {
    child: Child,
    pub(crate) address: String,
    pub(crate) log: Log,
}

impl Process {
    async fn start(setup: &Setup, dir: &Path, store: &str, listen: &str) -> Result<Self, String> {
        let words = setup.wrapper.iter().map(String::as_str).chain([PROGRAM]).collect::<Vec<_>>();
        let (program, rest) = words.split_first().expect("at least the program");
        let mut command = Command::new(program);
        if let Some(failpoint) = &setup.failpoint {
            command.env("ARGOSY_FAILPOINT", failpoint);
        }
        command
            .args(rest)
            .args(["server", "--config", "argosy.yaml", "--data-dir", "data"])
            .args(["--listen", listen, "--store", store, "--profile", setup.profile.name()])
            .args(&setup.flags)
            .current_dir(dir);
        Self::spawn(command, "listening address=").await
    }

    /// Starts a process that says its address in a line of its output, after `announcement`; `Err` is
    /// all it wrote if it ends first.
    pub(crate) async fn spawn(mut command: Command, announcement: &str) -> Result<Self, String> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program can be run");
        let log = Log::default();
        let (tell, mut told) = mpsc::channel(1);
        follow(child.stdout.take().expect("piped"), &log, announcement, tell.clone());
        follow(child.stderr.take().expect("piped"), &log, announcement, tell);
        let mut process = Self { child, address: String::new(), log: log.clone() };
        match tokio::time::timeout(PATIENCE, told.recv()).await {
            Ok(Some(address)) => {
                process.address = address;
                Ok(process)
            }
            Ok(None) | Err(_) => Err(log.read()),
        }
    }

    /// Sends it a signal, by name.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill -s {name} {id}");
    }

    /// Waits until it has ended; its exit code.
    pub(crate) async fn ended(&mut self) -> Option<i32> {
        let status =
            await_until("the process ends", async || self.child.try_wait().expect("our own child"));
        status.await.code()
    }
}

/// Keeps what a process writes, and tells what comes after the announcement.
fn follow(
    output: impl Read + Send + 'static,
    log: &Log,
    announcement: &str,
    tell: mpsc::Sender<String>,
) {
    let (log, announcement) = (log.clone(), announcement.to_owned());
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            log.push(&line);
            let address = line.split_once(&announcement).map(|(_, rest)| rest);
            let end = |c: char| c.is_whitespace() || c == ',';
            if let Some(address) = address.and_then(|rest| rest.split(end).next()) {
                let _ = tell.try_send(address.to_owned());
            }
        }
    });
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the server's log:\n{}", self.log.read());
        }
    }
}

/// A directory that is removed with the value.
pub(crate) struct TestDir(PathBuf);

impl TestDir {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("argosy-it-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a writable directory");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A member of a JSON text, by a path of names.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("no text at {pointer} in {value:#}"))
}
