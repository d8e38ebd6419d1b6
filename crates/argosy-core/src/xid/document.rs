//! The page for people: what every code means, and how a judgement comes about.

use super::{Action, Catalogue, Class, Row};
use crate::health::Severity;
use crate::recovery::RecoveryAction;
use std::fmt::Write;

const HEAD: &str = "\
# Xids and SXids

When something goes wrong with a GPU, NVIDIA's driver writes a line with a number into the kernel log: an **Xid**.
Switches between GPUs write **SXids**. Most of these numbers are not about hardware. A program that reads past the end of
its array writes Xid 13 and Xid 31 all day on a GPU in perfect health, and whoever replaces machines for that replaces good
ones. So each code has a **class** that says what kind of fault it stands for, and an **action** that says what helps.

This page is printed from the [catalogue](../crates/argosy-core/data/xid.csv) that the program was built with.

## How one event is judged

In this order, and every opinion stands in the record, so that a disagreement is seen.

1. **The driver's recovery action.** Newer drivers say themselves what a GPU needs (NVML's field 230, and Xid 154 when it
   changes). Nobody is closer to the fault, so what they ask for decides. That they ask for nothing turns a code that wants a
   reset of the GPU or of the virtual machine into a warning.
2. **The catalogue**: the class of the code, where the driver says nothing. For Xid 144 to 150 the unit, the reason and the
   status in the line decide; where the table of NVLink 5 events does not have them, the row of the Xid holds.
3. **History**: rules that count, such as five faults of one GPU in a day, or the same GPU again after its reset. They can
   make a judgement worse, never better.
4. **The default**: a code that nobody knows is degraded. It is shown to people, and nothing is done about it.

A policy can say otherwise at each step. Whether a class *condemns* says whether it speaks of hardware at all; whoever
drains, resets or replaces machines asks that first.

A catalogue is comma-separated values: the version in the first line, the columns in the second, then one code a line in any
order; lines that begin with `#` are comments, and text that holds a comma stands between double quotes. A file with a mistake
is refused whole, with the number of its line, because one that was read in part would judge machines by what is left of it.
";

/// The text of `docs/xid.md`.
pub fn document(catalogue: &Catalogue) -> String {
    let mut text = HEAD.to_owned();
    classes(&mut text);
    actions(&mut text);
    recovery_actions(&mut text);
    sources(&mut text);
    let version = catalogue.version();
    let (xids, sxids) = (catalogue.xids().count(), catalogue.sxids().count());
    line(&mut text, format_args!("\n## Catalogue {version}: {xids} Xids\n"));
    table(&mut text, "Xid", catalogue.xids().map(|row| (row.code.to_string(), row)));
    line(&mut text, format_args!("\n## NVLink 5 events: Xid 144 to 150\n"));
    line(&mut text, format_args!("{NVLINK}"));
    let nvlinks = catalogue.nvlinks();
    let event =
        |key: super::NvlinkKey| format!("{}.{}, {:#010x}", key.code, key.sub_code, key.status);
    table(&mut text, "Xid.reason, status", nvlinks.map(|(key, row)| (event(key), row)));
    line(&mut text, format_args!("\n## {sxids} SXids\n"));
    line(&mut text, format_args!("{SXID}"));
    table(&mut text, "SXid", catalogue.sxids().map(|row| (row.code.to_string(), row)));
    text
}

const NVLINK: &str = "\
A line like `NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x025001c6 0x00000000 …)` names the unit;
the reason is bits 20 to 25 of the first word in the parentheses (here 37), and the status is the second word.
";

const SXID: &str = "\
The driver prints `Fatal` or `Non-fatal` with each of them. The catalogue does not follow that word everywhere: 12028 and 19084
are printed as non-fatal and end jobs. A fatal one also shows on the GPU, as Xid 74. Fabrics of GB200 and later report through Xid 144 to 150.
";

fn classes(text: &mut String) {
    line(
        text,
        format_args!(
            "\n## Classes\n\n| class | one event is | condemns | meaning |\n|---|---|---|---|"
        ),
    );
    for class in Class::ALL {
        let condemns = if class.condemns() { "yes" } else { "never" };
        line(
            text,
            format_args!(
                "| `{}` | {} | {condemns} | {} |",
                class.as_str(),
                word(class.severity()),
                class.meaning()
            ),
        );
    }
}

fn actions(text: &mut String) {
    line(text, format_args!("\n## Actions\n\n| action | meaning |\n|---|---|"));
    for action in Action::ALL {
        line(text, format_args!("| `{}` | {} |", action.as_str(), action.meaning()));
    }
}

fn recovery_actions(text: &mut String) {
    line(
        text,
        format_args!(
            "\n## The driver's recovery action\n\n| number | word | one event is | meaning |\n|---|---|---|---|"
        ),
    );
    for action in RecoveryAction::ALL {
        line(
            text,
            format_args!(
                "| {} | `{}` | {} | {} |",
                action.number(),
                action.as_str(),
                word(action.severity()),
                action.meaning()
            ),
        );
    }
}

fn sources(text: &mut String) {
    line(
        text,
        format_args!(
            "\n## Sources\n\n\
             `nvidia` is NVIDIA's Xid catalogue for Ampere and newer as of October 2025, `nvsentinel` the table of SXids that\n\
             NVIDIA's NVSentinel ships, `gpud` the one that gpud adds, `judgement` our own where the catalogue names a code and\n\
             says nothing to do. Names are those of the driver; meanings are ours."
        ),
    );
}

fn table<'a>(text: &mut String, first: &str, rows: impl Iterator<Item = (String, &'a Row)>) {
    line(
        text,
        format_args!(
            "| {first} | name | class | action | meaning | source |\n|---|---|---|---|---|---|"
        ),
    );
    for (code, row) in rows {
        let Row { code: _, name, class, action, source, meaning } = row;
        line(
            text,
            format_args!(
                "| {code} | `{name}` | `{}` | `{}` | {} | {} |",
                class.as_str(),
                action.as_str(),
                cell(meaning),
                cell(source)
            ),
        );
    }
}

/// Text of a catalogue inside a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

const fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Healthy => "healthy",
        Severity::Degraded => "degraded",
        Severity::Unhealthy => "unhealthy",
    }
}

fn line(text: &mut String, args: std::fmt::Arguments<'_>) {
    // Writing into a `String` cannot fail.
    let _ = writeln!(text, "{args}");
}
