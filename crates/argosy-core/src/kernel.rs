//! Faults of GPUs and switches as the kernel log tells them.
//!
//! A line is text from a machine we do not trust to be well, and programs can write into it: a crash
//! report begins with the program's own name, an OOM report holds the name of its cgroup. So a message
//! must *begin* with the driver's mark, and its address must be one, or a tenant could take a node out of
//! service by choosing a name. What follows the code is understood as far as it goes.

mod sign;

use crate::health::MESSAGE_LEN_MAX;
use crate::pci::PciAddress;
use crate::recovery::RecoveryChange;
use serde::{Deserialize, Serialize};

pub use sign::{Sign, sign};

/// What a line of the kernel log says is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelFault {
    /// `NVRM: Xid (PCI:0000:41:00): 79, …`: the driver reports a fault of a GPU.
    Xid(XidFault),
    /// A GPU no longer answers, in words: the driver says so in addition to Xid 79, or instead of it
    /// while it starts.
    OffTheBus {
        /// Which; `None` if the line does not say.
        gpu: Option<PciAddress>,
    },
    /// `nvidia-nvswitch0: SXid (PCI:0000:c4:00.0): 20034, Fatal, Link 30 …`: a fault of a switch.
    Sxid(SxidFault),
}

impl KernelFault {
    /// The Xid, if it is one; a GPU off the bus is Xid 79 in other words.
    pub fn xid(&self) -> Option<u32> {
        match self {
            KernelFault::Xid(xid) => Some(xid.code),
            KernelFault::OffTheBus { .. } => Some(OFF_THE_BUS),
            KernelFault::Sxid(_) => None,
        }
    }

    /// The GPU or switch, as the kernel names it.
    pub fn device(&self) -> Option<PciAddress> {
        match self {
            KernelFault::Xid(xid) => Some(xid.gpu),
            KernelFault::OffTheBus { gpu } => *gpu,
            KernelFault::Sxid(sxid) => Some(sxid.switch),
        }
    }
}

/// A fault of a GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct XidFault {
    /// The Xid.
    pub code: u32,
    /// Which GPU.
    pub gpu: PciAddress,
    /// Which part of it, if it is shared out.
    pub instance: Option<MigInstance>,
    /// The process it happened to, where the driver knows.
    pub pid: Option<u32>,
    /// That process's name, where the driver knows.
    pub process: Option<String>,
    /// What else the line says; at most `MESSAGE_LEN_MAX` bytes.
    pub text: String,
    /// What we can make of the text.
    pub detail: Detail,
}

/// A part of a GPU that is shared out (MIG).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigInstance {
    /// The GPU instance.
    pub gpu: u32,
    /// The compute instance in it, where the driver knows.
    pub compute: Option<u32>,
}

/// What the text of an Xid says to a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Detail {
    /// Nothing.
    Plain,
    /// An NVLink 5 event (Xid 144 to 150).
    Nvlink(NvlinkFault),
    /// The driver's new recovery action (Xid 154).
    Recovery(RecoveryChange),
}

/// An NVLink 5 event: `NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000 …)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NvlinkFault {
    /// The unit that reports: `RLW_REMAP`.
    pub unit: String,
    /// The driver's own word.
    pub fatal: bool,
    /// The fault is kept from the programs of other GPUs.
    pub cross_contained: bool,
    /// Somebody made it up for a test.
    pub injected: bool,
    /// Which link; `None` if it is not about one.
    pub link: Option<u32>,
    /// The words in parentheses: first what was interrupted, then the status, then more.
    pub words: Vec<u32>,
}

impl NvlinkFault {
    /// Bits 20 to 25 of the first word: for a link that went down, why.
    pub fn sub_code(&self) -> Option<u8> {
        u8::try_from(self.words.first()? >> 20 & 0x3f).ok()
    }

    /// The second word: what the unit complains about.
    pub fn status(&self) -> Option<u32> {
        self.words.get(1).copied()
    }
}

/// A fault of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SxidFault {
    /// The SXid.
    pub code: u32,
    /// Which switch.
    pub switch: PciAddress,
    /// The driver's own word, if there is one. The catalogue knows better: a privilege error that
    /// stops a job (12028) is printed as non-fatal.
    pub fatal: Option<bool>,
    /// Which of the switch's links.
    pub link: Option<u32>,
    /// What else the line says; at most `MESSAGE_LEN_MAX` bytes.
    pub text: String,
}

/// The Xid of a GPU that no longer answers on its bus.
pub const OFF_THE_BUS: u32 = 79;
/// The Xid by which the driver says what a GPU needs: `RecoveryAction`.
pub const RECOVERY_CHANGED: u32 = 154;
/// The longest line that is read, in bytes; the rest is ignored. The kernel's own limit for a record.
pub const LINE_LEN_MAX: usize = 8192;
/// The longest name of a process that is kept, in bytes. The kernel's limit is 15.
const PROCESS_LEN_MAX: usize = 64;
/// The most words of an NVLink 5 event that are kept. Drivers write six.
const WORDS_MAX: usize = 16;

/// What one line says, with or without the header of `/dev/kmsg`, `dmesg` or syslog; `None` if it is
/// not about a fault of a GPU or a switch.
///
/// A record may hold several lines, as the journal keeps them. Use `Lines` where a record comes in
/// pieces.
pub fn parse(line: &str) -> Option<KernelFault> {
    Lines::default().read(line)
}

/// Reads a log line by line, for the one message that goes over several lines: the first names the GPU,
/// and the last says that it is off the bus.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// The GPU that the last line of the driver began to speak about.
    named: Option<PciAddress>,
}

impl Lines {
    /// What the line says, in the light of those before it.
    pub fn read(&mut self, line: &str) -> Option<KernelFault> {
        let message = message(line);
        if let Some(said) = message.strip_prefix("NVRM: ") {
            return self.driver(said);
        }
        sxid(message).map(KernelFault::Sxid)
    }

    fn driver(&mut self, said: &str) -> Option<KernelFault> {
        if let Some(rest) = said.strip_prefix("The NVIDIA GPU ") {
            self.named = address_at(rest).map(|(gpu, _)| gpu);
            let off = rest.contains(OFF);
            return off.then(|| KernelFault::OffTheBus { gpu: self.named.take() });
        }
        let (continued, said) = continued(said);
        if continued && !said.contains(OFF) {
            return None;
        }
        let named = self.named.take();
        if continued || said.starts_with(OFF) {
            return Some(KernelFault::OffTheBus { gpu: named });
        }
        if let Some(rest) = said.strip_prefix("Xid (") {
            return xid(rest).map(KernelFault::Xid);
        }
        off_the_bus(said)
    }
}

const OFF: &str = "fallen off the bus";

/// Whether a line goes on with the message that `The NVIDIA GPU …` began; and what it says behind the
/// device's kind, `(PCI ID: 10de:26b5) `.
fn continued(said: &str) -> (bool, &str) {
    let behind = said.strip_prefix("(PCI ID: ").and_then(|rest| rest.split_once(") "));
    let said = match behind {
        Some((kind, rest)) if kind.bytes().all(|b| b.is_ascii_hexdigit() || b == b':') => rest,
        Some(_) | None => said,
    };
    (said.starts_with("installed in this system "), said)
}

/// `GPU 0000:18:00.0: GPU has fallen off the bus.`, or in older drivers `GPU at 0000:18:00.0 has …`.
fn off_the_bus(said: &str) -> Option<KernelFault> {
    let rest = said.strip_prefix("GPU ")?;
    let (gpu, rest) = address_at(rest.strip_prefix("at ").unwrap_or(rest))?;
    let rest = rest.strip_prefix(": GPU").unwrap_or(rest).strip_prefix(" has ")?;
    rest.starts_with(OFF).then_some(KernelFault::OffTheBus { gpu: Some(gpu) })
}

/// What follows `NVRM: Xid (`.
fn xid(text: &str) -> Option<XidFault> {
    let (place, rest) = text.split_once(')')?;
    let (gpu, instance) = gpu(place)?;
    let (code, rest) = code(rest)?;
    let (pid, process, rest) = process(rest);
    let text = first_line(rest);
    let detail = if code == RECOVERY_CHANGED {
        RecoveryChange::parse(text).map_or(Detail::Plain, Detail::Recovery)
    } else {
        nvlink(text).map_or(Detail::Plain, Detail::Nvlink)
    };
    Some(XidFault { code, gpu, instance, pid, process, text: kept(text), detail })
}

/// `PCI:0000:41:00`, and if the GPU is shared out ` GPU-I:05 GPU-CI:00`.
fn gpu(place: &str) -> Option<(PciAddress, Option<MigInstance>)> {
    let mut words = place.split_whitespace();
    let address = PciAddress::parse(words.next()?)?;
    let (mut gpu, mut compute) = (None, None);
    // A newer driver may say more, in the same form; any other form is not the driver.
    for word in words {
        let (key, number) = word.split_once(':')?;
        let number: u32 = number.parse().ok()?;
        match key {
            "GPU-I" => gpu = Some(number),
            "GPU-CI" => compute = Some(number),
            _ => {}
        }
    }
    Some((address, gpu.map(|gpu| MigInstance { gpu, compute })))
}

/// `): 79, …` behind the parenthesis: the code, and what is behind its comma.
fn code(text: &str) -> Option<(u32, &str)> {
    let text = text.trim_start().strip_prefix(':')?.trim_start();
    let end = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let code = digits.parse().ok().filter(|code| *code != 0)?;
    match rest.strip_prefix(',') {
        Some(rest) => Some((code, rest.trim_start())),
        // Anything but a comma or a space makes it another number, or no number.
        None => (rest.is_empty() || rest.starts_with(char::is_whitespace))
            .then(|| (code, rest.trim_start())),
    }
}

/// `pid=1234, name=python3, …`, either of which may be missing, or `<unknown>`, or in quotes.
fn process(text: &str) -> (Option<u32>, Option<String>, &str) {
    let (pid, text) = value(text, "pid=");
    let (name, text) = value(text, "name=");
    let name = name
        .filter(|name| !name.is_empty() && *name != "<unknown>")
        .map(|name| name.get(..name.floor_char_boundary(PROCESS_LEN_MAX)).unwrap_or(name));
    (pid.and_then(|pid| pid.parse().ok()), name.map(str::to_owned), text)
}

/// The value a text begins with if it begins with the key, without quotes; and what is behind it.
fn value<'a>(text: &'a str, key: &str) -> (Option<&'a str>, &'a str) {
    let Some(rest) = text.strip_prefix(key) else { return (None, text) };
    let (value, rest) = rest.split_once(',').unwrap_or((rest, ""));
    (Some(value.trim().trim_matches(['\'', '"'])), rest.trim_start())
}

/// `NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x… 0x…)`.
fn nvlink(text: &str) -> Option<NvlinkFault> {
    let (head, words) = text.split_once('(')?;
    let mut head = head.split_whitespace();
    let unit = head.next().filter(|unit| {
        unit.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    })?;
    let fatal = fatal(head.next()?)?;
    let cross_contained = head.next()?.strip_prefix("XC")? != "0";
    let injected = head.next()?.strip_prefix('i')? != "0";
    // The link is -1 where an event is about all of them.
    let link = head.next().filter(|word| *word == "Link").and_then(|_| head.next()?.parse().ok());
    let words = words
        .split([' ', ')', ','])
        .filter(|word| !word.is_empty())
        .take(WORDS_MAX)
        .map_while(|word| u32::from_str_radix(word.strip_prefix("0x")?, 16).ok())
        .collect();
    Some(NvlinkFault { unit: kept(unit), fatal, cross_contained, injected, link, words })
}

fn fatal(word: &str) -> Option<bool> {
    match word {
        "Fatal" => Some(true),
        "Nonfatal" | "Non-fatal" => Some(false),
        _ => None,
    }
}

/// `nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress …`.
///
/// The lines that follow it repeat the code with raw data (`Severity 0 Engine …`, `Data {0x…`), so
/// they are not counted as more faults.
fn sxid(message: &str) -> Option<SxidFault> {
    let rest = match message.strip_prefix("nvidia-nvswitch") {
        Some(rest) => {
            rest.trim_start_matches(|char: char| char.is_ascii_digit()).strip_prefix(": ")?
        }
        None => message,
    };
    let (place, rest) = rest.strip_prefix("SXid (PCI:")?.split_once(')')?;
    let (code, text) = code(rest)?;
    let text = first_line(text);
    if text.starts_with("Severity ") || text.starts_with("Data {") {
        return None;
    }
    let (word, rest) = text.split_once(',').unwrap_or((text, ""));
    let (fatal, text) = match fatal(word.trim()) {
        Some(fatal) => (Some(fatal), rest.trim_start()),
        None => (None, text),
    };
    let link = text
        .strip_prefix("Link ")
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|link| link.parse().ok());
    Some(SxidFault { code, switch: PciAddress::parse(place)?, fatal, link, text: kept(text) })
}

/// The address a text begins with, and what is behind it.
fn address_at(text: &str) -> Option<(PciAddress, &str)> {
    let is_part = |char: char| char.is_ascii_hexdigit() || char == ':' || char == '.';
    let end = text.find(|char| !is_part(char)).unwrap_or(text.len());
    let address = text.get(..end)?.trim_end_matches([':', '.']);
    Some((PciAddress::parse(address)?, text.get(address.len()..)?))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim()
}

fn kept(text: &str) -> String {
    text.get(..text.floor_char_boundary(MESSAGE_LEN_MAX)).unwrap_or(text).to_owned()
}

/// The message of a line: without the header that whoever kept the log put in front of it.
pub fn message(line: &str) -> &str {
    let line = line.get(..line.floor_char_boundary(LINE_LEN_MAX)).unwrap_or(line).trim_start();
    let line = without_kmsg(line).or_else(|| without_syslog(line)).unwrap_or(line);
    let line = without_level(line);
    without_time(line)
}

/// `/dev/kmsg`: `3,1234,5678901,-;message`.
fn without_kmsg(line: &str) -> Option<&str> {
    let (head, message) = line.split_once(';')?;
    let mut numbers = head.split(',').take(3);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (head.split(',').count() >= 4 && numbers.all(is_number)).then_some(message)
}

/// Syslog and the journal: `Mar 29 15:38:59 host kernel: message`, or with a date by ISO 8601.
fn without_syslog(line: &str) -> Option<&str> {
    const MONTHS: [&str; 12] = [
        "Jan ", "Feb ", "Mar ", "Apr ", "May ", "Jun ", "Jul ", "Aug ", "Sep ", "Oct ", "Nov ",
        "Dec ",
    ];
    if let Some(message) = line.strip_prefix("kernel: ") {
        return Some(message);
    }
    let dated = line.starts_with(|char: char| char.is_ascii_digit())
        || MONTHS.iter().any(|month| line.starts_with(month));
    let (_, message) = line.split_once(" kernel: ").filter(|_| dated)?;
    Some(message)
}

/// The level of a message: `<3>`.
fn without_level(line: &str) -> &str {
    let level = line.strip_prefix('<').and_then(|rest| rest.split_once('>'));
    match level {
        Some((level, message)) if level.bytes().all(|byte| byte.is_ascii_digit()) => message,
        Some(_) | None => line,
    }
}

/// The time and the caller of a message: `[449410.332316] `, `[Thu Sep 19 02:29:46 2024] `, `[ T1234] `.
fn without_time(mut line: &str) -> &str {
    while let Some((_, message)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        line = message.trim_start();
    }
    line
}

#[cfg(test)]
mod tests;
