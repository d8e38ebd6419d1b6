//! A cloud that keeps its promises as clouds do: late lists, lost answers, no stock, too many calls.
//!
//! The truth is in the yard; what is told of it is another matter. What a newcomer gets wrong: a call that
//! failed may have done its work all the same, and only `Unsure` says so.

use super::process::Gate;
use super::tape::{Tape, lock};
use crate::dice::Dice;
use crate::scenario;
use argosy_control::clock::Clock;
use argosy_control::provider::{Ask, Done, Part, Provider, Refusal};
use argosy_core::catalog::ProviderCatalog;
use argosy_core::gate::Doomed;
use argosy_core::machine::{
    Abilities, Machine, MachineId, MachineState, Notice, NoticeKind, Offer, Order, Purchase,
    Trouble,
};
use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use serde_json::Map;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Dollars an hour for one GPU and one CPU, where neither the scenario nor the catalog says: what a large
/// customer paid for an H100 in 2024, and change.
const GPU_PRICE: f64 = 2.5;
/// See `GPU_PRICE`.
const CPU_PRICE: f64 = 0.04;

/// How many zones a region has.
const ZONES: [&str; 4] = ["a", "b", "c", "d"];

/// How long a machine of the provider's choosing is shown to be taken back before it is.
const NOTICE: SignedDuration = SignedDuration::from_mins(2);

/// A provider of machines.
pub(crate) struct Cloud {
    pub(crate) name: String,
    catalog: ProviderCatalog,
    prices: BTreeMap<String, f64>,
    tokens: bool,
    clock: Clock,
    tape: Tape,
    yard: Mutex<Yard>,
}

/// What really is.
struct Yard {
    made: BTreeMap<String, Made>,
    count: u64,
    dice: Dice,
    trouble: scenario::Cloud,
    /// Zones without stock, and until when.
    empty: BTreeMap<String, Timestamp>,
    news: Vec<News>,
}

/// A machine.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) machine: Machine,
    pub(crate) purchase: Purchase,
    pub(crate) at: Timestamp,
    pub(crate) price: f64,
    /// When it was no more.
    pub(crate) gone_at: Option<Timestamp>,
}

/// What happened in a cloud that the world must know.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// A machine was made, and boots.
    Made(Box<Made>),
    /// A machine is no more.
    Gone(String),
    /// A machine is to boot again.
    Reboot(String),
}

/// What is to become of a call.
enum Fate {
    Done,
    Lost,
}

impl Cloud {
    pub(crate) fn new(
        name: &str,
        catalog: ProviderCatalog,
        prices: BTreeMap<String, f64>,
        mut dice: Dice,
        trouble: scenario::Cloud,
        clock: Clock,
        tape: Tape,
    ) -> Arc<Self> {
        // Half of the clouds that lose answers have no tokens either, as half of the real ones.
        let tokens = trouble.lost_answers == 0.0 || dice.happens(0.5);
        let yard = Yard {
            made: BTreeMap::new(),
            count: 0,
            dice,
            trouble,
            empty: BTreeMap::new(),
            news: Vec::new(),
        };
        let name = name.to_owned();
        let yard = Mutex::new(yard);
        Arc::new(Self { name, catalog, prices, tokens, clock, tape, yard })
    }

    /// What happened since somebody last asked.
    pub(crate) fn news(&self) -> Vec<News> {
        std::mem::take(&mut lock(&self.yard).news)
    }

    /// Calls `look` with every machine that exists.
    pub(crate) fn each_living(&self, look: impl FnMut(&Made)) {
        let yard = lock(&self.yard);
        yard.made.values().filter(|made| made.gone_at.is_none()).for_each(look);
    }

    /// The dollars that all machines cost until now, and how many were made and ended.
    pub(crate) fn bill(&self, now: Timestamp) -> (f64, u64, u64) {
        let yard = lock(&self.yard);
        let mut bill = (0.0, 0, 0);
        for made in yard.made.values() {
            let hours = made.gone_at.unwrap_or(now).duration_since(made.at).as_secs_f64() / 3_600.0;
            bill.0 += hours * made.price;
            bill.1 += 1;
            bill.2 += u64::from(made.gone_at.is_some());
        }
        bill
    }

    /// From now on it keeps its promises.
    pub(crate) fn heal(&self) {
        let mut yard = lock(&self.yard);
        let (latency, list_lag) = (yard.trouble.latency, yard.trouble.list_lag);
        yard.trouble = scenario::Cloud { latency, list_lag, ..scenario::Cloud::default() };
        yard.empty.clear();
        for made in yard.made.values_mut().filter(|made| made.gone_at.is_none()) {
            made.machine.notice = None;
        }
    }

    /// There is no stock in one of the zones that machines are in, for so long. Tells which.
    pub(crate) fn stock_out(&self, lasts: SignedDuration) -> Option<String> {
        let until = self.clock.now().saturating_add(lasts).ok()?;
        let mut yard = lock(&self.yard);
        let mut zones: Vec<String> =
            yard.made.values().map(|made| made.machine.zone.clone()).collect();
        zones.sort();
        zones.dedup();
        let zone = yard.dice.pick(&zones)?.clone();
        yard.empty.insert(zone.clone(), until);
        Some(zone)
    }

    /// The provider takes a machine back, with notice or without. Tells which.
    pub(crate) fn reclaim(&self) -> Option<(String, bool)> {
        let now = self.clock.now();
        let mut yard = lock(&self.yard);
        let living = yard.made.iter().filter(|(_, made)| made.gone_at.is_none());
        let living: Vec<String> = living.map(|(id, _)| id.clone()).collect();
        let id = yard.dice.pick(&living)?.clone();
        let noticed = yard.dice.happens(0.5);
        if let Some(made) = yard.made.get_mut(&id).filter(|_| noticed) {
            let at = now.saturating_add(NOTICE).ok();
            let message = "the machine is taken back".to_owned();
            made.machine.notice = Some(Notice { kind: NoticeKind::Reclaim, at, message });
        }
        Some((id, noticed))
    }

    /// A machine ends without being asked to.
    pub(crate) fn end(&self, id: &str) {
        let now = self.clock.now();
        lock(&self.yard).end(id, now);
        self.tape.ring();
    }

    /// Every call goes through here: it takes its time, and may fail.
    async fn call(&self, what: &str, about: &str) -> Result<Fate, Trouble> {
        let _call = self.tape.call();
        let (takes, fate) = {
            let mut yard = lock(&self.yard);
            let Yard { dice, trouble, .. } = &mut *yard;
            let takes = super::between(dice, trouble.latency);
            let mut happens = |rate: f64| 0.0 < rate && dice.happens(rate);
            let fate = if happens(trouble.throttled) {
                let message = "Rate exceeded".to_owned();
                Err(Trouble::Throttled { retry_after_s: Some(5), message })
            } else if happens(trouble.errors) {
                Err(Trouble::Unreachable("the provider did not answer".to_owned()))
            } else if happens(trouble.lost_answers) {
                Ok(Fate::Lost)
            } else {
                Ok(Fate::Done)
            };
            (takes, fate)
        };
        let word = match &fate {
            Ok(Fate::Done) => "done",
            Ok(Fate::Lost) => "lost",
            Err(trouble) => trouble.reason(),
        };
        self.tape.note([self.name.as_bytes(), what.as_bytes(), about.as_bytes(), word.as_bytes()]);
        if !takes.is_zero() {
            tokio::time::sleep(takes).await;
        }
        fate
    }

    fn price(&self, machine_type: &str) -> f64 {
        let of = self.catalog.machine_types.get(machine_type);
        let listed =
            of.map_or(0.0, |of| f64::from(of.gpus) * GPU_PRICE + f64::from(of.cpus) * CPU_PRICE);
        self.prices.get(machine_type).copied().unwrap_or(listed)
    }

    /// How many GPUs such a machine has.
    pub(crate) fn gpus(&self, machine_type: &str) -> u32 {
        self.catalog.machine_types.get(machine_type).map_or(0, |of| of.gpus)
    }

    fn make(&self, purchase: &Purchase) -> Result<Machine, Trouble> {
        let now = self.clock.now();
        let mut yard = lock(&self.yard);
        let token = purchase.token;
        let same = |made: &&Made| made.gone_at.is_none() && made.purchase.token == token;
        if let Some(made) = yard.made.values().find(same).filter(|_| self.tokens) {
            return Ok(made.machine.clone());
        }
        yard.empty.retain(|_, until| now < *until);
        let region = &purchase.order.region;
        let mut zones = ZONES.map(|zone| format!("{region}-{zone}")).to_vec();
        if !purchase.order.zone.is_empty() {
            zones = vec![purchase.order.zone.clone()];
        }
        zones.retain(|zone| !yard.empty.contains_key(zone));
        let Some(zone) = yard.dice.pick(&zones).cloned() else {
            let message = format!("no more machines of type {}", purchase.order.machine_type);
            return Err(Trouble::Capacity { code: "OUT_OF_STOCK".to_owned(), message });
        };
        yard.count += 1;
        let id = format!("m-{:06}", yard.count);
        let machine = Machine {
            id: MachineId::new(id.clone()),
            name: purchase.instance.to_string(),
            state: MachineState::Running,
            tags: purchase.tags.clone(),
            region: region.clone(),
            zone,
            machine_type: purchase.order.machine_type.clone(),
            spot: purchase.order.spot,
            created_at: Some(now),
            internal_ip: String::new(),
            external_ip: String::new(),
            notice: None,
        };
        let made = Made {
            machine: machine.clone(),
            purchase: purchase.clone(),
            at: now,
            price: self.price(&purchase.order.machine_type),
            gone_at: None,
        };
        yard.made.insert(id, made.clone());
        yard.news.push(News::Made(Box::new(made)));
        Ok(machine)
    }
}

impl Yard {
    fn end(&mut self, id: &str, now: Timestamp) {
        let made = self.made.get_mut(id).filter(|made| made.gone_at.is_none());
        if let Some(made) = made {
            made.gone_at = Some(now);
            made.machine.state = MachineState::Gone;
            self.news.push(News::Gone(id.to_owned()));
        }
    }

    /// Machines that listings do not show yet, or still show, are behind by a lag of their own.
    fn shows(&self, made: &Made, now: Timestamp) -> bool {
        let lag = self.trouble.list_lag;
        if lag.is_zero() {
            return made.gone_at.is_none();
        }
        let mut own = Dice::part(0, made.machine.id.as_str());
        let lag = SignedDuration::from_secs_f64(lag.as_secs_f64() * own.share());
        let made_long_ago = lag <= now.duration_since(made.at);
        let gone_long_ago = made.gone_at.is_some_and(|at| lag <= now.duration_since(at));
        made_long_ago && !gone_long_ago
    }
}

/// What one process sees of a cloud.
pub(crate) struct Window {
    pub(crate) cloud: Arc<Cloud>,
    pub(crate) gate: Arc<Gate>,
}

fn unsure() -> Trouble {
    Trouble::Unsure("the answer was lost".to_owned())
}

impl Window {
    async fn call(&self, what: &str, about: &str) -> Result<Fate, Trouble> {
        self.gate.pass().await;
        let fate = self.cloud.call(what, about).await;
        self.gate.pass().await;
        fate
    }

    async fn part(&self, what: &str, ask: &Ask) -> Result<Done, Refusal> {
        let called = self.call(what, ask.resource.name.as_str()).await;
        let lost = matches!(called, Ok(Fate::Lost));
        let trouble = called.err().or_else(|| lost.then(unsure));
        let cause = |trouble: &Trouble| argosy_control::provider::Cause {
            reason: trouble.reason().to_owned(),
            message: trouble.to_string(),
        };
        match trouble {
            Some(trouble) => Err(Refusal {
                cause: cause(&trouble),
                applied: lost,
                healthy: true,
                data: Map::new(),
            }),
            None => Ok(Done {
                reason: "Done".to_owned(),
                message: "It is there".to_owned(),
                data: Map::new(),
                unhealthy: None,
            }),
        }
    }
}

#[async_trait]
impl Provider for Window {
    fn abilities(&self) -> Abilities {
        Abilities {
            tokens: self.cloud.tokens,
            tags: true,
            reboot: true,
            console: false,
            spot: true,
            list_lag: lock(&self.cloud.yard).trouble.list_lag,
        }
    }

    async fn offers(&self, region: &str) -> Result<Vec<Offer>, Trouble> {
        // Not part of the digest: nothing is changed by it.
        let types = self.cloud.catalog.machine_types.iter();
        let offer = |(machine_type, of): (&String, &argosy_core::catalog::MachineType)| Offer {
            machine_type: machine_type.clone(),
            region: region.to_owned(),
            zones: ZONES.map(|zone| format!("{region}-{zone}")).to_vec(),
            cpus: of.cpus,
            gpus: of.gpus,
            price_per_hour: Some(self.cloud.price(machine_type)),
            spot_price_per_hour: Some(self.cloud.price(machine_type) * 0.4),
            available: true,
        };
        Ok(types.map(offer).collect())
    }

    async fn room(&self, _: &Order, _: u32) -> Result<(), Trouble> {
        Ok(())
    }

    async fn create(&self, purchase: &Purchase) -> Result<Machine, Trouble> {
        let fate = self.call("create", purchase.instance.as_str()).await?;
        let made = self.cloud.make(purchase);
        self.cloud.tape.stir();
        self.cloud.tape.ring();
        match fate {
            Fate::Done => made,
            Fate::Lost => Err(unsure()),
        }
    }

    async fn find(&self, purchase: &Purchase) -> Result<Option<Machine>, Trouble> {
        if let Fate::Lost = self.call("find", purchase.instance.as_str()).await? {
            return Err(Trouble::Unreachable("the answer was lost".to_owned()));
        }
        let now = self.cloud.clock.now();
        let yard = lock(&self.cloud.yard);
        let found = yard.made.values().filter(|made| made.purchase.token == purchase.token);
        let found = found.filter(|made| yard.shows(made, now) || made.gone_at.is_some());
        // The living one, if there is one.
        let found = found.min_by_key(|made| made.gone_at.is_some());
        Ok(found.map(|made| made.machine.clone()))
    }

    async fn list(&self) -> Result<Vec<Machine>, Trouble> {
        if let Fate::Lost = self.call("list", "").await? {
            return Err(Trouble::Unreachable("the answer was lost".to_owned()));
        }
        let now = self.cloud.clock.now();
        let yard = lock(&self.cloud.yard);
        let shown = yard.made.values().filter(|made| yard.shows(made, now));
        Ok(shown
            .map(|made| match made.gone_at {
                // Still shown, and as it was.
                Some(_) => Machine { state: MachineState::Running, ..made.machine.clone() },
                None => made.machine.clone(),
            })
            .collect())
    }

    async fn terminate(&self, doomed: &Doomed) -> Result<(), Trouble> {
        let fate = self.call("terminate", doomed.machine().as_str()).await?;
        let now = self.cloud.clock.now();
        let known = {
            let mut yard = lock(&self.cloud.yard);
            let known = yard.made.contains_key(doomed.machine().as_str());
            yard.end(doomed.machine().as_str(), now);
            known
        };
        self.cloud.tape.stir();
        self.cloud.tape.ring();
        match fate {
            Fate::Lost => Err(unsure()),
            Fate::Done if known => Ok(()),
            Fate::Done => Err(Trouble::NotFound(format!("no machine {}", doomed.machine()))),
        }
    }

    async fn reboot(&self, machine: &MachineId) -> Result<(), Trouble> {
        let fate = self.call("reboot", machine.as_str()).await?;
        lock(&self.cloud.yard).news.push(News::Reboot(machine.to_string()));
        self.cloud.tape.stir();
        self.cloud.tape.ring();
        match fate {
            Fate::Lost => Err(unsure()),
            Fate::Done => Ok(()),
        }
    }

    async fn preflight(&self, ask: &Ask) -> Result<Done, Refusal> {
        self.part("preflight", ask).await
    }

    async fn ensure(&self, _: Part, ask: &Ask) -> Result<Done, Refusal> {
        self.part("ensure", ask).await
    }

    async fn remove(&self, _: Part, ask: &Ask) -> Result<Done, Refusal> {
        self.part("remove", ask).await
    }
}
