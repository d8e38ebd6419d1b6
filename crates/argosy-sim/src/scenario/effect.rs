//! Effects and places as they are written: `xid:79`, `partition:5m`, `silent`; a node's id, `all`, `{zone: a}`.

use super::tree::{At, Value, quoted};
use super::{Effect, Place};
use argosy_agent::gpu::fake::injection::{InjectionError, KINDS};
use argosy_core::nearest::nearest;
use jiff::SignedDuration;

/// The words that are not injections.
const WORDS: [&str; 6] = ["silent", "reboot", "agent-crash", "partition", "clock", "unseen"];

/// The longest time that a machine is cut off, and the furthest that its clock is off.
const SPAN_MAX: SignedDuration = SignedDuration::from_hours(24 * 366);

/// Reads an effect.
///
/// # Errors
/// A sentence that says what would be right.
pub(super) fn parse(text: &str) -> Result<Effect, String> {
    let text = text.trim();
    let (word, value) = text.split_once(':').unwrap_or((text, ""));
    let plain = |effect: Effect| match value {
        "" => Ok(effect),
        _ => Err(format!("`{word}` takes no value")),
    };
    match word {
        "silent" => plain(Effect::Silent),
        "reboot" => plain(Effect::Reboot),
        "agent-crash" => plain(Effect::AgentCrash),
        "unseen" => plain(Effect::Unseen),
        "partition" => match argosy_core::span::parse(value) {
            Ok(span) if SignedDuration::ZERO < span && span <= SPAN_MAX => {
                Ok(Effect::Partition(span))
            }
            Ok(_) | Err(_) => Err("a partition has a length, like `partition:5m`".to_owned()),
        },
        "clock" => {
            let (sign, span) = match value.strip_prefix('-') {
                Some(span) => (-1, span),
                None => (1, value.strip_prefix('+').unwrap_or(value)),
            };
            match argosy_core::span::parse(span) {
                Ok(span) if span <= SPAN_MAX => Ok(Effect::Clock(sign * span.as_secs())),
                Ok(_) | Err(_) => {
                    Err("a clock is off by something, like `clock:90s` or `clock:-90s`".to_owned())
                }
            }
        }
        _ => match Effect::injection(text, 0) {
            Ok(_) => Ok(Effect::Inject(text.to_owned())),
            Err(InjectionError::UnknownKind { word }) => {
                let words: Vec<&str> = WORDS.into_iter().chain(KINDS).collect();
                let short: String = word.chars().take(64).collect();
                Err(match nearest(&short, words.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("there are: {}", words.join(", ")),
                })
            }
            Err(error) => Err(error.to_string()),
        },
    }
}

/// Reads an effect; a complaint if it is none.
pub(super) fn read(at: &At<'_>) -> Option<Effect> {
    let text = at.line(super::TEXT_MAX)?;
    match parse(&text) {
        Ok(effect) => Some(effect),
        Err(why) => {
            at.error(format!("`{}` cannot happen to a machine", quoted(&text)), why);
            None
        }
    }
}

/// Reads which machines: a node's id, `all`, or one of `zone`, `region`, `provider`, `pool`, `rack`, `part`, `node`.
pub(super) fn place(at: &At<'_>) -> Option<Place> {
    if let Value::Text(text) = &at.node.value {
        return if text == "all" {
            Some(Place::Everything)
        } else {
            Some(Place::Node(at.line(super::TEXT_MAX)?))
        };
    }
    let table = at.table()?;
    let text = |key: &'static str| table.get(key).map(|at| at.line(super::TEXT_MAX));
    let found: Vec<Option<Place>> = [
        text("zone").map(|name| name.map(Place::Zone)),
        text("region").map(|name| name.map(Place::Region)),
        text("provider").map(|name| name.map(Place::Provider)),
        text("pool").map(|name| name.map(Place::Pool)),
        text("rack").map(|name| name.map(Place::Rack)),
        text("node").map(|name| name.map(Place::Node)),
        table.get("part").map(|at| at.part().map(Place::Part)),
    ]
    .into_iter()
    .flatten()
    .collect();
    table.end();
    match <[Option<Place>; 1]>::try_from(found) {
        Ok([place]) => place,
        Err(_) => {
            at.error("it must name one place", "for example `{zone: a}`, `{part: 0.1}` or `all`");
            None
        }
    }
}
