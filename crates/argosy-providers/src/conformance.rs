//! The suite that every provider passes: what the `Provider` port promises, held against a cloud that lies.
//!
//! What a newcomer gets wrong: the suite asks two witnesses. `Rig::provider` is what we would believe,
//! `Rig::truth` is what exists; a provider conforms if nothing it says makes us buy twice, lose sight of a
//! machine, or end one that is not ours.

use argosy_control::provider::Provider;
use argosy_core::gate::{self, Doomed, Guards, Held};
use argosy_core::id::ResourceId;
use argosy_core::instance::{Instance, InstanceId, Reason, State, Terminating};
use argosy_core::machine::{Machine, MachineId, MachineState, Order, Purchase, Tags, Trouble};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use uuid::Uuid;

/// A provider, and the cloud behind it that can be told to lie.
///
/// There is room for at least two machines of `order` at a time.
pub(crate) trait Rig {
    /// The provider under test; the same one each time.
    fn provider(&self) -> Arc<dyn Provider>;

    /// The ids of all machines that exist, and cost, past the API: not those that are gone.
    async fn truth(&self) -> Vec<String>;

    /// Makes the cloud tell a lie, from now until `calm` if the lie does not say how often; false if this
    /// rig cannot.
    async fn inject(&self, lie: Lie) -> bool;

    /// Ends all lies.
    async fn calm(&self);

    /// What can be bought here, with a zone if the provider has zones.
    fn order(&self) -> Order;

    /// Lets time pass for the provider and the cloud.
    async fn pass(&self, time: Duration);
}

/// What a cloud does that it should not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Lie {
    /// The next create is done, and its answer never comes.
    TimeoutAfterCreate,
    /// The next create is not done, and its answer never comes.
    TimeoutBeforeCreate,
    /// The next create is done, and answered with a 500.
    ErrorAfterCreate,
    /// A create is several calls, and in the next one only the first of them succeeds.
    PartialSuccess,
    /// Listings are so much behind the world.
    LagLists(Duration),
    /// The next so many calls are refused: too many.
    Throttle {
        /// How many.
        times: u32,
    },
    /// The allowance is used up.
    Quota,
    /// There are no machines left in the zone or region of `Rig::order`.
    Capacity,
    /// The credentials are no longer good for anything.
    RevokeCredentials,
    /// The credentials do not go as far as buying machines.
    DenyCreate,
    /// Terminations are answered with success, and not done.
    DeleteLies,
    /// The next termination is done, and answered with a 500.
    ErrorAfterDelete,
    /// Listings are empty.
    EmptyList,
    /// Listings show every second machine.
    HalfList,
    /// Listings break off with a 500 after their first page.
    BrokenList,
    /// Somebody has made a machine by hand, with no tag and a name that cannot be ours.
    PlainMachine,
}

/// Holds a provider to every rule, and answers with the rules that could not be tried.
///
/// # Panics
/// If any rule is broken, with the name of each and what was seen.
pub(crate) async fn conforms(rig: &impl Rig) -> Vec<&'static str> {
    let bench = Bench { rig, provider: rig.provider(), installation: unique() };
    let mut score = Score::default();
    macro_rules! rules {
        ($($rule:literal => $case:ident,)+) => {$(
            let verdict = bench.$case().await;
            rig.calm().await;
            score.note($rule, verdict);
            if let Err(why) = bench.clean().await {
                score.note($rule, Err(format!("what it had made could not be removed: {why}")));
            }
        )+};
    }
    rules! {
        "what can be bought is offered, at a price that can be true" => offers,
        "a machine is shown as it was bought" => shown_as_bought,
        "a create that is repeated makes nothing new" => repeated_create,
        "creates with one token that overlap make one machine" => overlapping_creates,
        "a machine that was never bought is not found" => nothing_found,
        "a timeout after the machine was made is unsure, and looking finds it" => timeout_after,
        "a timeout before the machine was made leaves nothing" => timeout_before,
        "an error after the machine was made is unsure, and looking finds it" => error_after,
        "a create that is half done can be found and removed" => partial_success,
        "a listing that lags shows the machine within the lag that was admitted" => lagging_list,
        "throttled calls are not done, or done once" => throttled,
        "a used up quota is told as such, and nothing is made" => quota,
        "a lack of machines is told as such, and nothing is made" => capacity,
        "an unknown machine type is refused with the nearest name" => unknown_type,
        "an unknown zone is refused with the nearest name" => unknown_zone,
        "revoked credentials are told as such by every call" => revoked,
        "a missing permission is told as such, and nothing is made" => denied,
        "what is terminated goes, and can be terminated again" => terminated,
        "a termination that was only claimed leaves the machine to be seen" => lying_delete,
        "an error after a termination is no answer, and a repetition is harmless" => delete_error,
        "a machine that never was cannot be terminated, booted or read" => not_found,
        "an empty listing is passed on as it is or refused, and ends nothing" => empty_list,
        "half a listing is passed on as it is or refused, and ends nothing" => half_list,
        "a listing that breaks off is no listing" => broken_list,
        "machines of another installation are listed with their tag and left alone" => strangers,
        "machines made by hand are not taken for ours" => plain_machine,
        "a reboot keeps the machine" => reboot,
        "the console is to be had, or it is said that it is not" => console,
    }
    score.close()
}

/// How one rule fared.
enum Verdict {
    Kept,
    /// It could not be tried.
    Skipped,
}

/// A broken rule: what was seen.
type Case = Result<Verdict, String>;

#[derive(Default)]
struct Score {
    kept: usize,
    skipped: Vec<&'static str>,
    broken: Vec<String>,
}

impl Score {
    fn note(&mut self, rule: &'static str, verdict: Case) {
        match verdict {
            Ok(Verdict::Kept) => self.kept += 1,
            Ok(Verdict::Skipped) => self.skipped.push(rule),
            Err(seen) => self.broken.push(format!("{rule}: {seen}")),
        }
    }

    fn close(self) -> Vec<&'static str> {
        let Self { kept, skipped, broken } = self;
        println!("{kept} rules kept, {} not tried: {skipped:?}", skipped.len());
        assert!(broken.is_empty(), "{} rules broken:\n{}", broken.len(), broken.join("\n"));
        skipped
    }
}

/// Breaks the rule with what was seen, unless it holds.
macro_rules! hold {
    ($holds:expr, $($seen:tt)+) => {
        if !$holds {
            return Err(format!($($seen)+));
        }
    };
}

/// Makes the cloud lie, or skips the rule.
macro_rules! lie {
    ($bench:expr, $lie:expr) => {
        if !$bench.rig.inject($lie).await {
            return Ok(Verdict::Skipped);
        }
    };
}

struct Bench<'a, R> {
    rig: &'a R,
    provider: Arc<dyn Provider>,
    installation: Uuid,
}

impl<R: Rig> Bench<'_, R> {
    async fn offers(&self) -> Case {
        let Order { region, machine_type, .. } = self.rig.order();
        let offers = self.provider.offers(&region).await.map_err(told)?;
        let found = offers.iter().find(|offer| offer.machine_type == machine_type);
        let offer = found.ok_or_else(|| format!("{machine_type} is not among {offers:?}"))?;
        hold!(offer.available, "{offer:?} is not available");
        for price in
            offers.iter().flat_map(|offer| [offer.price_per_hour, offer.spot_price_per_hour])
        {
            let possible = price.is_none_or(|price| price.is_finite() && 0.0 <= price);
            hold!(possible, "a price of {price:?}");
        }
        Ok(Verdict::Kept)
    }

    async fn shown_as_bought(&self) -> Case {
        let purchase = self.purchase();
        let made = self.provider.create(&purchase).await.map_err(told)?;
        self.is_of(&made, &purchase)?;
        self.truth_is(&[&made.id]).await?;
        let listed = self.listed(&purchase).await?;
        self.is_of(&listed, &purchase)?;
        hold!(listed.id == made.id, "it was made as {} and is listed as {}", made.id, listed.id);
        let found = self.found(&purchase).await?;
        self.is_of(&found, &purchase)?;
        hold!(found.id == made.id, "it was made as {} and is found as {}", made.id, found.id);
        Ok(Verdict::Kept)
    }

    async fn repeated_create(&self) -> Case {
        if !self.provider.abilities().tokens {
            return Ok(Verdict::Skipped);
        }
        let purchase = self.purchase();
        let first = self.provider.create(&purchase).await.map_err(told)?;
        let second = self.provider.create(&purchase).await.map_err(told)?;
        hold!(first.id == second.id, "{} came of the first, {} of the second", first.id, second.id);
        let other = self.purchase();
        let third = self.provider.create(&other).await.map_err(told)?;
        hold!(third.id != first.id, "another token was answered with {}", first.id);
        self.truth_is(&[&first.id, &third.id]).await
    }

    async fn overlapping_creates(&self) -> Case {
        if !self.provider.abilities().tokens {
            return Ok(Verdict::Skipped);
        }
        let purchase = self.purchase();
        let create = || self.provider.create(&purchase);
        let answers: [_; 2] = tokio::join!(create(), create()).into();
        for answer in &answers {
            let fair =
                matches!(answer, Ok(_) | Err(Trouble::Unsure(_) | Trouble::Throttled { .. }));
            hold!(fair, "answered {answer:?}");
        }
        let found = self.found(&purchase).await?;
        self.truth_is(&[&found.id]).await
    }

    async fn nothing_found(&self) -> Case {
        let found = self.provider.find(&self.purchase()).await.map_err(told)?;
        hold!(found.is_none(), "found {found:?}");
        Ok(Verdict::Kept)
    }

    async fn timeout_after(&self) -> Case {
        lie!(self, Lie::TimeoutAfterCreate);
        self.made_and_unsure().await
    }

    async fn error_after(&self) -> Case {
        lie!(self, Lie::ErrorAfterCreate);
        self.made_and_unsure().await
    }

    /// The next create succeeds without saying so.
    async fn made_and_unsure(&self) -> Case {
        let purchase = self.purchase();
        let answer = self.provider.create(&purchase).await;
        // A client that looks by itself may have found out.
        let fair = matches!(answer, Ok(_) | Err(Trouble::Unsure(_)));
        hold!(fair, "answered {answer:?}");
        self.rig.calm().await;
        let found = self.found(&purchase).await?;
        self.truth_is(&[&found.id]).await?;
        if self.provider.abilities().tokens {
            let again = self.provider.create(&purchase).await.map_err(told)?;
            hold!(again.id == found.id, "asked again it made {}, too", again.id);
        }
        self.truth_is(&[&found.id]).await
    }

    async fn timeout_before(&self) -> Case {
        lie!(self, Lie::TimeoutBeforeCreate);
        let purchase = self.purchase();
        let answer = self.provider.create(&purchase).await;
        let fair = matches!(answer, Ok(_) | Err(Trouble::Unsure(_) | Trouble::Unreachable(_)));
        hold!(fair, "answered {answer:?}");
        self.rig.calm().await;
        if answer.is_err() {
            self.truth_is(&[]).await?;
            let found = self.provider.find(&purchase).await.map_err(told)?;
            hold!(found.is_none(), "found {found:?}");
        }
        let made = self.provider.create(&purchase).await.map_err(told)?;
        self.truth_is(&[&made.id]).await
    }

    async fn partial_success(&self) -> Case {
        lie!(self, Lie::PartialSuccess);
        let purchase = self.purchase();
        let answer = self.provider.create(&purchase).await;
        self.rig.calm().await;
        let exists = self.rig.truth().await;
        hold!(exists.len() <= 1, "{exists:?} came of one create");
        let fair = match &answer {
            Ok(_) | Err(Trouble::Unsure(_)) => true,
            Err(_) => exists.is_empty(),
        };
        hold!(fair, "{exists:?} came of it, and it answered {answer:?}");
        if let Some(id) = exists.first() {
            let found = self.found(&purchase).await?;
            hold!(found.id.as_str() == id, "{id} exists, {} is found", found.id);
            let listed = self.listed(&purchase).await?;
            hold!(listed.id == found.id, "{id} exists, {} is listed", listed.id);
        }
        Ok(Verdict::Kept)
    }

    async fn lagging_list(&self) -> Case {
        let lag = self.provider.abilities().list_lag.unsigned_abs();
        if lag.is_zero() {
            return Ok(Verdict::Skipped);
        }
        lie!(self, Lie::LagLists(lag));
        let purchase = self.purchase();
        let made = self.provider.create(&purchase).await.map_err(told)?;
        // What it shows meanwhile is its own affair, but it answers.
        self.provider.list().await.map_err(told)?;
        self.provider.find(&purchase).await.map_err(told)?;
        self.rig.pass(lag).await;
        let listed = self.listed_now(&purchase).await?;
        let listed = listed.ok_or_else(|| format!("not listed {lag:?} after it was made"))?;
        hold!(listed.id == made.id, "{} was made, {} is listed", made.id, listed.id);
        let found = self.provider.find(&purchase).await.map_err(told)?;
        hold!(found.is_some(), "not found {lag:?} after it was made");
        Ok(Verdict::Kept)
    }

    async fn throttled(&self) -> Case {
        lie!(self, Lie::Throttle { times: 1 });
        let listing = self.provider.list().await;
        let fair = matches!(listing, Ok(_) | Err(Trouble::Throttled { .. }));
        hold!(fair, "a listing is answered {listing:?}");
        self.rig.calm().await;
        lie!(self, Lie::Throttle { times: 1 });
        let purchase = self.purchase();
        let answer = self.provider.create(&purchase).await;
        match &answer {
            Ok(made) => self.truth_is(&[&made.id]).await?,
            Err(Trouble::Throttled { .. }) => self.truth_is(&[]).await?,
            Err(other) => return Err(format!("a create is answered {other:?}")),
        };
        self.rig.calm().await;
        let wait = match answer {
            Err(Trouble::Throttled { retry_after_s, .. }) => retry_after_s.unwrap_or(1),
            Ok(_) | Err(_) => return Ok(Verdict::Kept),
        };
        self.rig.pass(Duration::from_secs(wait.into())).await;
        let made = self.provider.create(&purchase).await.map_err(told)?;
        self.truth_is(&[&made.id]).await
    }

    async fn quota(&self) -> Case {
        lie!(self, Lie::Quota);
        let (order, purchase) = (self.rig.order(), self.purchase());
        let room = self.provider.room(&order, 1).await;
        let fair = matches!(room, Ok(()) | Err(Trouble::Quota { .. }));
        hold!(fair, "asked for room it answered {room:?}");
        let answer = self.provider.create(&purchase).await;
        hold!(matches!(answer, Err(Trouble::Quota { .. })), "answered {answer:?}");
        self.truth_is(&[]).await
    }

    async fn capacity(&self) -> Case {
        lie!(self, Lie::Capacity);
        let answer = self.provider.create(&self.purchase()).await;
        hold!(matches!(answer, Err(Trouble::Capacity { .. })), "answered {answer:?}");
        self.truth_is(&[]).await
    }

    async fn unknown_type(&self) -> Case {
        let mut purchase = self.purchase();
        let known = std::mem::take(&mut purchase.order.machine_type);
        purchase.order.machine_type = format!("{known}x");
        self.is_invalid(&purchase, "machineType", &known).await
    }

    async fn unknown_zone(&self) -> Case {
        let mut purchase = self.purchase();
        let known = std::mem::take(&mut purchase.order.zone);
        if known.is_empty() {
            return Ok(Verdict::Skipped);
        }
        purchase.order.zone = format!("{known}x");
        self.is_invalid(&purchase, "zones", &known).await
    }

    async fn is_invalid(&self, purchase: &Purchase, field: &str, nearest: &str) -> Case {
        match self.provider.create(purchase).await {
            Err(Trouble::Invalid { field: named, message }) => {
                hold!(named == field, "it names {named}, not {field}");
                hold!(message.contains(nearest), "{message:?} does not name {nearest}");
            }
            other => return Err(format!("answered {other:?}")),
        }
        self.truth_is(&[]).await
    }

    async fn revoked(&self) -> Case {
        let purchase = self.purchase();
        let made = self.provider.create(&purchase).await.map_err(told)?;
        lie!(self, Lie::RevokeCredentials);
        let refused = |what: &str, trouble: Option<Trouble>| match trouble {
            Some(Trouble::Credentials(_)) => Ok(()),
            other => Err(format!("{what} is answered {other:?}")),
        };
        refused("a create", self.provider.create(&self.purchase()).await.err())?;
        refused("a listing", self.provider.list().await.err())?;
        refused("a look", self.provider.find(&purchase).await.err())?;
        let doomed = self.doomed(&made)?;
        refused("a termination", self.provider.terminate(&doomed).await.err())?;
        self.truth_is(&[&made.id]).await?;
        self.rig.calm().await;
        let listed = self.listed(&purchase).await?;
        hold!(listed.id == made.id, "{} was made, {} is listed", made.id, listed.id);
        Ok(Verdict::Kept)
    }

    async fn denied(&self) -> Case {
        lie!(self, Lie::DenyCreate);
        let answer = self.provider.create(&self.purchase()).await;
        hold!(matches!(answer, Err(Trouble::Denied { .. })), "answered {answer:?}");
        self.truth_is(&[]).await
    }

    async fn terminated(&self) -> Case {
        let (first, second) = (self.purchase(), self.purchase());
        let leaves = self.provider.create(&first).await.map_err(told)?;
        let stays = self.provider.create(&second).await.map_err(told)?;
        let doomed = self.doomed(&leaves)?;
        self.provider.terminate(&doomed).await.map_err(told)?;
        self.becomes_truth(&[&stays.id]).await?;
        self.gone(&first).await?;
        let again = self.provider.terminate(&doomed).await;
        let fair = matches!(again, Ok(()) | Err(Trouble::NotFound(_)));
        hold!(fair, "a second termination is answered {again:?}");
        self.truth_is(&[&stays.id]).await?;
        if self.provider.abilities().tokens {
            // A call that was long under way must not bring back what was returned.
            let late = self.provider.create(&first).await;
            let fair = match &late {
                Ok(machine) => machine.id == leaves.id,
                Err(_) => true,
            };
            hold!(fair, "its token bought another machine: {late:?}");
            self.becomes_truth(&[&stays.id]).await?;
        }
        Ok(Verdict::Kept)
    }

    async fn lying_delete(&self) -> Case {
        let purchase = self.purchase();
        let made = self.provider.create(&purchase).await.map_err(told)?;
        lie!(self, Lie::DeleteLies);
        let doomed = self.doomed(&made)?;
        self.provider.terminate(&doomed).await.map_err(told)?;
        self.truth_is(&[&made.id]).await?;
        let listed = self.listed(&purchase).await?;
        hold!(listed.state != MachineState::Gone, "it exists, and is shown as gone");
        self.rig.calm().await;
        self.provider.terminate(&doomed).await.map_err(told)?;
        self.becomes_truth(&[]).await
    }

    async fn delete_error(&self) -> Case {
        let purchase = self.purchase();
        let made = self.provider.create(&purchase).await.map_err(told)?;
        lie!(self, Lie::ErrorAfterDelete);
        let doomed = self.doomed(&made)?;
        let answer = self.provider.terminate(&doomed).await;
        let fair = matches!(answer, Ok(()) | Err(Trouble::Unsure(_) | Trouble::NotFound(_)));
        hold!(fair, "answered {answer:?}");
        self.rig.calm().await;
        let again = self.provider.terminate(&doomed).await;
        let fair = matches!(again, Ok(()) | Err(Trouble::NotFound(_)));
        hold!(fair, "a second termination is answered {again:?}");
        self.becomes_truth(&[]).await
    }

    async fn not_found(&self) -> Case {
        let made = self.provider.create(&self.purchase()).await.map_err(told)?;
        let never = Machine { id: other_than(&made.id), ..made.clone() };
        let answer = self.provider.terminate(&self.doomed(&never)?).await;
        let fair = matches!(answer, Ok(()) | Err(Trouble::NotFound(_)));
        hold!(fair, "a termination is answered {answer:?}");
        let none = |trouble| matches!(trouble, Some(Trouble::NotFound(_) | Trouble::Unable(_)));
        let answer = self.provider.reboot(&never.id).await;
        hold!(none(answer.clone().err()), "a reboot is answered {answer:?}");
        let answer = self.provider.console(&never.id).await;
        hold!(none(answer.clone().err()), "asked for the console it answered {answer:?}");
        self.truth_is(&[&made.id]).await
    }

    async fn empty_list(&self) -> Case {
        self.shortened_list(Lie::EmptyList, 0).await
    }

    async fn half_list(&self) -> Case {
        self.shortened_list(Lie::HalfList, 1).await
    }

    async fn shortened_list(&self, lie: Lie, shown_max: usize) -> Case {
        let (first, second) = (self.purchase(), self.purchase());
        let one = self.provider.create(&first).await.map_err(told)?;
        let two = self.provider.create(&second).await.map_err(told)?;
        lie!(self, lie);
        // Nobody can tell here that it lies; whoever keeps records can (G11).
        if let Ok(machines) = self.provider.list().await {
            let shown = machines.iter().filter(|machine| [&one.id, &two.id].contains(&&machine.id));
            hold!(shown.count() <= shown_max, "the lie did not take: {machines:?}");
        }
        self.truth_is(&[&one.id, &two.id]).await?;
        self.rig.calm().await;
        self.listed(&first).await?;
        self.listed(&second).await?;
        Ok(Verdict::Kept)
    }

    async fn broken_list(&self) -> Case {
        let purchase = self.purchase();
        self.provider.create(&purchase).await.map_err(told)?;
        lie!(self, Lie::BrokenList);
        let listing = self.provider.list().await;
        hold!(listing.is_err(), "it is passed on as if it were whole: {listing:?}");
        self.rig.calm().await;
        self.listed(&purchase).await?;
        Ok(Verdict::Kept)
    }

    async fn strangers(&self) -> Case {
        let mut purchase = self.purchase();
        let other = unique();
        purchase.tags.installation = Some(other);
        let made = self.provider.create(&purchase).await.map_err(told)?;
        let listed = self.listed(&purchase).await?;
        if !self.provider.abilities().tags {
            return Ok(Verdict::Skipped);
        }
        hold!(
            listed.tags.installation == Some(other),
            "{} is listed with the installation {:?}",
            made.id,
            listed.tags.installation
        );
        let held = self.release(&listed);
        hold!(matches!(held, Err(Held::Stranger(_))), "the gate says {held:?}");
        Ok(Verdict::Kept)
    }

    async fn plain_machine(&self) -> Case {
        let before = self.rig.truth().await;
        lie!(self, Lie::PlainMachine);
        let exists = self.rig.truth().await;
        hold!(exists.len() == before.len() + 1, "the rig made none: {exists:?}");
        let machines = self.provider.list().await.map_err(told)?;
        for machine in &machines {
            let Machine { id, name, tags, .. } = machine;
            let known = |ids: &[String]| ids.iter().any(|known| known == id.as_str());
            let plain = known(&exists) && !known(&before);
            hold!(!plain || *tags == Tags::default(), "{name} is shown with {tags:?}");
        }
        Ok(Verdict::Kept)
    }

    async fn reboot(&self) -> Case {
        let made = self.provider.create(&self.purchase()).await.map_err(told)?;
        let answer = self.provider.reboot(&made.id).await;
        let fair = match (&answer, self.provider.abilities().reboot) {
            (Ok(()), true) | (Err(Trouble::Unable(_)), false) => true,
            (Ok(()), false) | (Err(_), _) => false,
        };
        hold!(fair, "answered {answer:?}");
        self.truth_is(&[&made.id]).await
    }

    async fn console(&self) -> Case {
        let made = self.provider.create(&self.purchase()).await.map_err(told)?;
        let answer = self.provider.console(&made.id).await;
        let fair = match (&answer, self.provider.abilities().console) {
            (Ok(_), true) | (Err(Trouble::Unable(_)), false) => true,
            (Ok(_), false) | (Err(_), _) => false,
        };
        hold!(fair, "answered {answer:?}");
        Ok(Verdict::Kept)
    }

    /// A new purchase of what the rig has.
    fn purchase(&self) -> Purchase {
        let (token, pool) = (unique(), ResourceId::new(unique()));
        let instance = InstanceId::mint("workers", token);
        let tags = Tags {
            installation: Some(self.installation),
            instance: Some(instance.clone()),
            pool: Some(pool),
            token: Some(token),
        };
        Purchase {
            instance,
            token,
            tags,
            order: self.rig.order(),
            number: 1,
            pool: "workers".to_owned(),
            tenant: "default".to_owned(),
            labels: BTreeMap::new(),
        }
    }

    /// Whether a machine can be known as that of a purchase, and is what was ordered.
    fn is_of(&self, machine: &Machine, purchase: &Purchase) -> Result<(), String> {
        hold!(is_it(machine, purchase), "{machine:?} does not show whose it is");
        let Order { region, zone, machine_type, spot, .. } = &purchase.order;
        hold!(machine.machine_type == *machine_type, "{machine:?} is no {machine_type}");
        let there = machine.region.is_empty() || machine.region == *region;
        hold!(there, "{machine:?} is not in {region}");
        let there = zone.is_empty() || machine.zone.is_empty() || machine.zone == *zone;
        hold!(there, "{machine:?} is not in {zone}");
        hold!(machine.spot == *spot, "{machine:?} differs in spot");
        hold!(machine.state != MachineState::Gone, "{machine:?} is new and gone");
        if self.provider.abilities().tags {
            hold!(machine.tags == purchase.tags, "{:?} instead of its tags", machine.tags);
        } else {
            let name = purchase.instance.as_str();
            hold!(machine.name == name, "no tags, and named {}, not {name}", machine.name);
        }
        Ok(())
    }

    /// The machine of a purchase, as a listing shows it after at most the lag that was admitted.
    async fn listed(&self, purchase: &Purchase) -> Result<Machine, String> {
        let attempt = || self.listed_now(purchase);
        self.within_lag(attempt).await?.ok_or_else(|| "it is not listed".to_owned())
    }

    async fn listed_now(&self, purchase: &Purchase) -> Result<Option<Machine>, String> {
        let machines = self.provider.list().await.map_err(told)?;
        Ok(machines.into_iter().find(|machine| is_it(machine, purchase)))
    }

    /// The machine of a purchase, as looking shows it after at most the lag that was admitted.
    async fn found(&self, purchase: &Purchase) -> Result<Machine, String> {
        let attempt = || async { self.provider.find(purchase).await.map_err(told) };
        self.within_lag(attempt).await?.ok_or_else(|| "it is not found".to_owned())
    }

    async fn within_lag<T, F>(&self, attempt: impl Fn() -> F) -> Result<Option<T>, String>
    where
        F: Future<Output = Result<Option<T>, String>>,
    {
        if let Some(seen) = attempt().await? {
            return Ok(Some(seen));
        }
        self.rig.pass(self.provider.abilities().list_lag.unsigned_abs()).await;
        attempt().await
    }

    /// Waits until the machine of a purchase is shown as gone, or no longer.
    async fn gone(&self, purchase: &Purchase) -> Result<(), String> {
        for _ in 0..LEAVES_WITHIN_S {
            match self.listed_now(purchase).await? {
                None => return Ok(()),
                Some(machine) if machine.state == MachineState::Gone => return Ok(()),
                Some(_) => self.rig.pass(Duration::from_secs(1)).await,
            }
        }
        Err(format!("it is still shown {LEAVES_WITHIN_S} s after its termination"))
    }

    async fn truth_is(&self, expected: &[&MachineId]) -> Case {
        let exists = sorted(self.rig.truth().await);
        let expected = sorted(expected.iter().map(ToString::to_string).collect());
        hold!(exists == expected, "{exists:?} exist, not {expected:?}");
        Ok(Verdict::Kept)
    }

    /// The same, in a while: ending a machine takes time.
    async fn becomes_truth(&self, expected: &[&MachineId]) -> Case {
        for _ in 0..LEAVES_WITHIN_S {
            if let kept @ Ok(_) = self.truth_is(expected).await {
                return kept;
            }
            self.rig.pass(Duration::from_secs(1)).await;
        }
        self.truth_is(expected).await
    }

    /// What the gate says of a machine whose record is leaving.
    fn release(&self, machine: &Machine) -> Result<Doomed, Held> {
        let guards = Guards {
            installation: self.installation,
            shown: Some(machine),
            compared: true,
            recovery: None,
        };
        gate::release(&self.leaving(machine), &guards)
    }

    fn doomed(&self, machine: &Machine) -> Result<Doomed, String> {
        self.release(machine).map_err(|held| held.to_string())
    }

    /// The record of a machine that is to go.
    fn leaving(&self, machine: &Machine) -> Instance {
        let terminating = Terminating {
            machine: Some(machine.id.clone()),
            node: None,
            since: Timestamp::UNIX_EPOCH,
            reason: Reason::ScaleDown { asked: false },
            calls: 0,
            retry_at: None,
            trouble: None,
            absent_since: None,
            alarmed: false,
            console: String::new(),
        };
        let Purchase { instance, token, order, number, pool, tenant, .. } = self.purchase();
        Instance {
            id: machine.tags.instance.clone().unwrap_or(instance),
            tenant,
            pool: ResourceId::new(token),
            pool_name: pool,
            number,
            token: machine.tags.token.unwrap_or(token),
            order,
            ordered_at: Timestamp::UNIX_EPOCH,
            why: String::new(),
            replaces: None,
            purpose: argosy_core::instance::Purpose::Seat,
            adopted: false,
            departure: None,
            blocked: None,
            tried: Vec::new(),
            notice: None,
            sight: Default::default(),
            state: State::Terminating(terminating),
        }
    }

    /// Ends every machine that exists, whosoever it is: the next rule begins with none.
    async fn clean(&self) -> Result<(), String> {
        for id in self.rig.truth().await {
            let id = MachineId::new(id);
            let instance = Instance { ..self.leaving(&nowhere(id)) };
            // As if nothing had been shown: what the rig made by hand has to go, too.
            let guards = Guards {
                installation: self.installation,
                shown: None,
                compared: true,
                recovery: None,
            };
            let doomed = gate::release(&instance, &guards).map_err(|held| held.to_string())?;
            self.provider.terminate(&doomed).await.map_err(told)?;
        }
        self.becomes_truth(&[]).await.map(|_| ())
    }
}

/// How long a machine may take to leave: an EC2 machine shuts down first. Seconds.
const LEAVES_WITHIN_S: u32 = 300;

/// Whether a machine is that of a purchase, by what providers keep: a tag, or the name.
fn is_it(machine: &Machine, purchase: &Purchase) -> bool {
    let tagged = machine.tags.token.is_some_and(|token| token == purchase.token)
        || machine.tags.instance.as_ref().is_some_and(|id| *id == purchase.instance);
    tagged || machine.name == purchase.instance.as_str()
}

/// A machine of which nothing but the id is known.
fn nowhere(id: MachineId) -> Machine {
    Machine {
        id,
        name: String::new(),
        state: MachineState::Running,
        tags: Tags::default(),
        region: String::new(),
        zone: String::new(),
        machine_type: String::new(),
        spot: false,
        created_at: None,
        internal_ip: String::new(),
        external_ip: String::new(),
        notice: None,
    }
}

/// An id that looks like this one, of a machine that never was.
fn other_than(id: &MachineId) -> MachineId {
    let mut text = id.as_str().to_owned();
    let other = match text.pop() {
        Some('0') => '1',
        Some(_) | None => '0',
    };
    text.push(other);
    MachineId::new(text)
}

fn sorted(mut ids: Vec<String>) -> Vec<String> {
    ids.sort();
    ids
}

fn told(trouble: Trouble) -> String {
    format!("it should be done, and is answered {trouble:?}")
}

/// Never the same twice, also in a cloud that outlives the process.
fn unique() -> Uuid {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    // The end of it names machines: it differs in the count, and the process id stands before it.
    let low = u128::from(std::process::id()) << 16 | u128::from(number & 0xffff);
    Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000 | low)
}
