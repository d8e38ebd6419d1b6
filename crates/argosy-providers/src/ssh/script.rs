//! What is run on a host. Each script is whole in itself: it takes the host's lock, checks whose the host is,
//! and finishes or undoes what it began, also if nobody listens any more.

use super::survey::Claim;
use crate::boot::{self, AgentSource, Boot, Layout, Sha256};
use crate::shell::{line, quote};
use argosy_core::instance::InstanceId;
use argosy_core::machine::Purchase;

/// How a script ended, where it says no.
pub(super) mod code {
    /// The file that arrived is not the one that was sent.
    pub(in crate::ssh) const CHECKSUM: i32 = 65;
    /// The token was this host's, and was given back.
    pub(in crate::ssh) const RELEASED: i32 = 66;
    /// The attempt was called off.
    pub(in crate::ssh) const OFF: i32 = 68;
    /// Somebody else has the host.
    pub(in crate::ssh) const TAKEN: i32 = 67;
    /// There is no such claim.
    pub(in crate::ssh) const NONE: i32 = 69;
    /// The agent does not end, or something is left of it.
    pub(in crate::ssh) const LEFT: i32 = 70;
    /// The agent could not be installed, and nothing is left of it.
    pub(in crate::ssh) const UNDONE: i32 = 72;
    /// Somebody else works on the host.
    pub(in crate::ssh) const BUSY: i32 = 75;
}

/// For how long a host remembers claims that are over, in minutes: a call that was under way for longer than a
/// day is not answered any more.
const RELEASED_MINUTES: u32 = 24 * 60;

/// For how long a script waits for another one, in seconds.
const LOCK_SECONDS: u32 = 20;

/// Says what a host is. Changes nothing, needs no rights.
pub(super) fn survey(layout: &Layout) -> String {
    let claims = quote(&layout.claims());
    let unit = quote(&layout.unit());
    format!(
        "d={claims}\n\
         echo 'argosy-survey 1'\n\
         now=$(date +%s)\n\
         if [ -e \"$d/claim.json\" ]; then printf 'claim %s\\n' \"$(cat \"$d/claim.json\")\"; fi\n\
         for f in \"$d\"/released/*.json; do\n\
         if [ -e \"$f\" ]; then\n\
         printf 'released %s %s\\n' \"$((now - $(stat -c %Y \"$f\")))\" \"$(cat \"$f\")\"\n\
         fi\n\
         done\n\
         if [ -e {unit} ]; then echo unit; fi\n\
         if [ -e \"$d/installing\" ]; then echo installing; fi\n\
         printf 'active %s\\n' \"$(systemctl is-active argosy-agent.service 2>/dev/null)\"\n\
         echo end"
    )
}

/// Says whether an agent is there already.
pub(super) fn has_agent(layout: &Layout, sha256: &Sha256) -> String {
    format!("if [ -e {} ]; then echo there; fi", quote(&staged(layout, sha256)))
}

/// Takes an agent from its input. It gets its name when it has arrived whole, and not before.
pub(super) fn stage(layout: &Layout, sha256: &Sha256) -> String {
    let place = staged(layout, sha256);
    let folder = place.rsplit_once('/').map(|(folder, _)| folder).unwrap_or_default();
    format!(
        "set -eu\n\
         umask 022\n\
         mkdir -p {folder}\n\
         find {folder} -name '.part.*' -mmin +60 -exec rm -f '{{}}' +\n\
         new=$(mktemp {part})\n\
         trap 'rm -f \"$new\"' EXIT\n\
         trap 'exit 1' HUP INT TERM PIPE\n\
         cat >\"$new\"\n\
         if ! printf '%s  %s\\n' {sum} \"$new\" | sha256sum -c - >/dev/null 2>&1; then\n\
         echo 'what arrived is not the agent' >&2\n\
         exit {checksum}\n\
         fi\n\
         chmod 0755 \"$new\"\n\
         sync \"$new\" || true\n\
         mv -f \"$new\" {place}",
        folder = quote(folder),
        part = quote(&format!("{folder}/.part.XXXXXX")),
        sum = quote(sha256.as_str()),
        checksum = code::CHECKSUM,
        place = quote(&place),
    )
}

/// Claims the host and starts its agent; undone by the host itself if it fails.
pub(super) fn claim(
    boot: &Boot,
    staged_as: Option<&Sha256>,
    purchase: &Purchase,
    claim: &Claim,
    layout: &Layout,
) -> String {
    let agent = layout.agent();
    let bring = match (&boot.agent, staged_as) {
        (AgentSource::Url { url, sha256 }, _) => boot::fetch(&agent, url, sha256),
        (AgentSource::File(_), Some(sha256)) => place(layout, sha256),
        (AgentSource::File(_), None) => String::new(),
    };
    let text = serde_json::to_string(claim).unwrap_or_default();
    let (start, taken, released) = (open(layout), code::TAKEN, code::RELEASED);
    format!(
        "{start}\
         if [ -e \"$d/released/{token}.json\" ]; then echo 'it was given back' >&2; exit {released}; fi\n\
         if [ -e \"$d/released/{attempt}.off\" ]; then echo 'it was called off' >&2; exit {off}; fi\n\
         ours=no\n\
         if [ -e \"$d/claim.json\" ]; then\n\
         if ! grep -q {token} \"$d/claim.json\"; then echo 'somebody has it' >&2; exit {taken}; fi\n\
         ours=yes\n\
         elif [ -e {unit} ]; then echo 'there is an agent that nobody claims' >&2; exit {taken}; fi\n\
         exec 3>&2\n\
         undo() {{\n\
         why=$?\n\
         trap - EXIT\n\
         rm -f \"$d/installing\"\n\
         if [ $why = 0 ]; then exit 0; fi\n\
         tail -n 3 \"$d/bootstrap.log\" >&3 || true\n\
         if [ $ours = yes ]; then exit {undone}; fi\n\
         {strip}\
         rm -f \"$d/claim.json\"\n\
         exit {undone}\n\
         }}\n\
         trap undo EXIT\n\
         trap '' HUP PIPE\n\
         trap 'exit 1' INT TERM\n\
         printf '%s\\n' {text} >\"$d/claim.json.new\"\n\
         chmod 0644 \"$d/claim.json.new\"\n\
         sync \"$d/claim.json.new\" || true\n\
         : >\"$d/installing\"\n\
         mv -f \"$d/claim.json.new\" \"$d/claim.json\"\n\
         sync \"$d\" || true\n\
         (\n\
         set -eu\n\
         umask 077\n\
         step=start\n\
         trap 'code=$?; [ $code = 0 ] || echo \"failed ($code): $step\"' EXIT\n\
         {setup}{bring}{install}\
         step='run the agent'\n\
         {agent} --version\n\
         step='start the agent'\n\
         systemctl daemon-reload\n\
         systemctl enable argosy-agent.service\n\
         systemctl restart --no-block argosy-agent.service\n\
         ) >\"$d/bootstrap.log\" 2>&1 </dev/null 3>&- 9>&-\n\
         echo argosy-done || true",
        token = claim.token,
        attempt = claim.attempt(),
        off = code::OFF,
        unit = quote(&layout.unit()),
        undone = code::UNDONE,
        strip = strip(layout),
        text = quote(&text),
        setup = boot.setup(purchase),
        install = boot.install(purchase, layout, &agent),
        agent = quote(&agent),
    )
}

/// Calls off an attempt at a claim that did not come back: it has claimed the host by now, or never will.
pub(super) fn call_off(claim: &Claim, layout: &Layout) -> String {
    let (start, attempt) = (open(layout), claim.attempt());
    format!("{start}: >\"$d/released/{attempt}.off\"\nsync \"$d/released\" || true")
}

/// Gives the host back: its agent is stopped, its files are removed, and the claim at last.
pub(super) fn release(instance: &InstanceId, layout: &Layout) -> String {
    let (start, check) = (open(layout), check(instance));
    format!(
        "{start}{check}\
         {strip}\
         token=$(sed -n 's/.*\"token\":\"\\([0-9a-f-]*\\)\".*/\\1/p' \"$d/claim.json\")\n\
         rm -f \"$d/installing\" \"$d/bootstrap.log\"\n\
         touch \"$d/claim.json\"\n\
         mv -f \"$d/claim.json\" \"$d/released/${{token:-unknown}}.json\"\n\
         sync \"$d\" || true\n\
         echo argosy-gone || true",
        strip = strip(layout),
    )
}

/// Boots the host, if it is still this instance's.
pub(super) fn reboot(instance: &InstanceId, layout: &Layout) -> String {
    let (start, check) = (open(layout), check(instance));
    format!("{start}{check}echo argosy-reboots\nsystemctl reboot 9>&-")
}

/// The end of what the agent and its installation wrote.
pub(super) fn console(instance: &InstanceId, layout: &Layout) -> String {
    let claims = quote(&layout.claims());
    let check = check(instance);
    format!(
        "d={claims}\n{check}\
         {{ cat \"$d/bootstrap.log\" 2>/dev/null\n\
         journalctl --unit argosy-agent.service --lines 300 --no-pager --output short-iso 2>&1\n\
         }} | tail -c 65536"
    )
}

/// Where an agent waits to be installed.
fn staged(layout: &Layout, sha256: &Sha256) -> String {
    format!("{}/agents/{}", layout.claims(), sha256.as_str())
}

/// Lines that put a staged agent in its place.
fn place(layout: &Layout, sha256: &Sha256) -> String {
    let agent = layout.agent();
    let folder = agent.rsplit_once('/').map(|(folder, _)| folder).unwrap_or_default();
    let new = format!("{agent}.new");
    format!(
        "step='check the agent'\n\
         mkdir -p {folder}\n\
         cp {staged} {new}\n\
         printf '%s  %s\\n' {sum} {new} | sha256sum -c -\n\
         chmod 0755 {new}\n\
         mv -f {new} {agent}\n",
        folder = quote(folder),
        staged = quote(&staged(layout, sha256)),
        sum = quote(sha256.as_str()),
        new = quote(&new),
        agent = quote(&agent),
    )
}

/// Lines that take the host's lock.
fn open(layout: &Layout) -> String {
    format!(
        "set -eu\n\
         umask 022\n\
         d={claims}\n\
         mkdir -p \"$d/released\" \"$d/agents\"\n\
         find \"$d/released\" -type f -mmin +{RELEASED_MINUTES} -exec rm -f '{{}}' +\n\
         exec 9>\"$d/lock\"\n\
         if ! flock -w {LOCK_SECONDS} 9; then echo 'somebody else works on it' >&2; exit {busy}; fi\n",
        claims = quote(&layout.claims()),
        busy = code::BUSY,
    )
}

/// Lines that go on only if the host is an instance's.
fn check(instance: &InstanceId) -> String {
    let named = quote(&format!("\"instance\":\"{instance}\","));
    let none = code::NONE;
    format!(
        "if ! grep -qF {named} \"$d/claim.json\" 2>/dev/null; then\n\
         echo 'there is no such claim' >&2\nexit {none}\nfi\n"
    )
}

/// Lines that stop the agent and remove all of it but the claim; they fail if anything is left.
fn strip(layout: &Layout) -> String {
    let left = code::LEFT;
    let files = [layout.unit(), layout.config(), layout.token(), layout.ca(), layout.agent()];
    let new: Vec<String> = files.iter().map(|file| format!("{file}.new")).collect();
    let files = line(files.iter().chain(&new).map(String::as_str));
    let (data, etc) = (quote(&layout.data()), quote(&layout.etc()));
    format!(
        "systemctl disable --now argosy-agent.service >/dev/null 2>&1 9>&- || true\n\
         case \"$(systemctl is-active argosy-agent.service 2>/dev/null || true)\" in\n\
         active|activating|reloading|deactivating)\n\
         echo 'the agent does not end' >&2; exit {left};;\n\
         esac\n\
         for f in {files}; do rm -f \"$f\" || true; done\n\
         rm -rf {data} \"$d/agents\" || true\n\
         rmdir {etc} 2>/dev/null || true\n\
         systemctl daemon-reload >/dev/null 2>&1 9>&- || true\n\
         for f in {files} {data}; do\n\
         if [ -e \"$f\" ]; then echo \"$f cannot be removed\" >&2; exit {left}; fi\n\
         done\n"
    )
}

#[cfg(test)]
mod tests;
