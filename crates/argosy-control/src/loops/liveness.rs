//! Listens to the fleet, once a second, and writes down who went silent and who is heard again.
//!
//! One process does, whichever has the lease; the others tell it whom they heard. What a newcomer gets
//! wrong: a heartbeat decides nothing. It leaves a sign on the board, and we look at our own pace.

use crate::Error;
use crate::loops::{Beats, RENEW_EVERY, keep_lease};
use crate::office::{Mutation, Office, system};
use crate::pulse::{Moment, Pulse, PulseBoard};
use argosy_core::health::{TakenIn, aged};
use argosy_core::invariant::Cause;
use argosy_core::ledger::{Entry, What};
use argosy_core::liveness::{self, Excuse, Heard, Listening, Outlook, Sweep, limits, sweep};
use argosy_core::node::{Duty, Liveness, Node, NodeId};
use argosy_store::engine::Fence;
use argosy_store::view::View;
use argosy_store::{Revision, Txn};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use tracing::{error, info, warn};

const NAME: &str = "liveness";

/// How often the fleet is looked at. What is promised by the second is decided this much earlier.
pub(crate) const EVERY: Duration = Duration::from_secs(1);

/// A look that comes so late says that we were not there: stopped, asleep, or starved. Fifteen looks
/// were missed; nodes may have called and found nobody.
pub(crate) const GAP_MAX: Duration = Duration::from_secs(15);

/// How often it is looked whose health reports are missing: rounds of checks are a minute apart.
const AGE_EVERY: Duration = Duration::from_secs(5);

/// How many nodes are marked in one commit: other commits wait behind it.
const MARKS_MAX: usize = 500;

/// How often the numbers of an excuse are written anew while only they change.
const OUTLOOK_EVERY: Duration = Duration::from_secs(30);

/// A process that has not told whom it heard for so long is gone, and its document with it.
const HEARD_KEPT: Duration = Duration::from_secs(60);

/// What the loop that listens tells the loop that acts, in the same process.
#[derive(Clone, Debug)]
pub(crate) struct Watching {
    /// Both act under it.
    pub(crate) fence: Fence,
    /// Since when we listen, on the monotonic clock.
    pub(crate) listening_since: Duration,
    /// When we last looked.
    pub(crate) looked_at: Duration,
    /// Why silence is held against nobody.
    pub(crate) excuse: Option<Excuse>,
}

/// Where it is told; `None` while another process listens.
pub(crate) type Lookout = watch::Sender<Option<Watching>>;

/// Runs until the process ends.
pub(crate) async fn run(
    office: Arc<Office>,
    board: PulseBoard,
    lookout: Arc<Lookout>,
    beats: Arc<Beats>,
    holder: String,
) -> Result<(), Error> {
    loop {
        let fence = attend(&office, &board, &beats, &holder).await;
        info!(epoch = fence.epoch, "listening to the fleet");
        let desk = Desk::new(&office, &board, &lookout, fence.clone());
        tokio::select! {
            biased;
            () = desk.work(&beats, &holder) => {}
            () = keep_lease(&office, NAME, &holder, &fence) => {}
        }
        lookout.send_replace(None);
        warn!("another process listens to the fleet now");
    }
}

/// Waits until this process may listen for the whole fleet; until then it tells whom it heard.
async fn attend(office: &Office, board: &PulseBoard, beats: &Beats, holder: &str) -> Fence {
    let mut told_at = office.clock.monotonic();
    loop {
        beats.beat(NAME, office.clock.now());
        match office.lease(NAME, holder).await {
            Ok(Some(lease)) => return Fence { lease: NAME.to_owned(), epoch: lease.epoch },
            Ok(None) => {
                let now = office.clock.monotonic();
                match tell(office, board, holder, told_at, now).await {
                    Ok(()) => told_at = now,
                    // It is told next time, with what is heard until then.
                    Err(error) => warn!(%error, "could not tell whom we heard"),
                }
            }
            Err(error) => warn!(%error, lease = NAME, "could not ask for the lease"),
        }
        tokio::time::sleep(RENEW_EVERY).await;
    }
}

/// Tells the process that listens whom this one heard since it last told.
async fn tell(
    office: &Office,
    board: &PulseBoard,
    holder: &str,
    told_at: Duration,
    now: Duration,
) -> Result<(), argosy_store::Error> {
    let heard = board.heard_within(now.saturating_sub(told_at), now).into_iter();
    let millis = |ago: Duration| u32::try_from(ago.as_millis()).unwrap_or(u32::MAX);
    let nodes: Vec<_> = heard.map(|(node, ago, stream)| (node, millis(ago), stream)).collect();
    if nodes.is_empty() {
        return Ok(());
    }
    let reported = board.proved_within(now.saturating_sub(told_at), now).into_iter();
    let reported = reported.map(|(node, ago)| (node, millis(ago))).collect();
    let mut txn = Txn::at(office.clock.now());
    txn.overwrite(Arc::new(Heard { process: holder.to_owned(), nodes, reported }));
    office.store.commit(txn).await.map(|_| ())
}

/// What the listening process remembers. All of it may be lost: then the amnesty begins anew.
struct Desk<'a> {
    office: &'a Office,
    board: &'a PulseBoard,
    lookout: &'a Lookout,
    fence: Fence,
    listening_since: Duration,
    looked_at: Duration,
    /// When it was last looked whose health reports are missing.
    aged_at: Duration,
    excuse: Option<Excuse>,
    /// Every node that may be heard, as of the commit that last changed one.
    roster: Vec<Member>,
    roster_at: Revision,
    /// Who of the roster was not well when all of it was last looked at, by place.
    unwell: Vec<usize>,
    /// Until when nobody else can have been silent for too long.
    well_until: Duration,
    /// When the outlook was last written.
    outlook_at: Option<Duration>,
    /// What other processes told, and when we read it.
    told: HashMap<String, (Revision, Duration)>,
}

/// After how long of silence a node is suspect, and unreachable.
type Limits = (SignedDuration, SignedDuration);

/// A node that is listened for.
struct Member {
    node: Arc<Node>,
    /// As its document says.
    liveness: Liveness,
    /// Its place on the board, once it was heard.
    pulse: Option<Arc<Pulse>>,
    /// When it appeared, if that was while we listened: it was heard then, perhaps by another process.
    came_at: Option<Duration>,
    /// For one that calls, and for one on a stream.
    limits: [Limits; 2],
    /// Since when it is heard and owes health reports; `None` while it is not heard.
    owes_since: Option<Duration>,
}

impl Member {
    /// For how long it has been silent, and for how long it may be.
    fn pulse(&self, now: Duration, listening_for: Duration) -> liveness::Pulse<'_> {
        let [by_call, on_stream] = self.limits;
        let heard = self.pulse.as_ref().and_then(|pulse| pulse.quiet_for(now));
        let heard = heard.or_else(|| Some(now.saturating_sub(self.came_at?)));
        let streams = self.pulse.as_ref().is_some_and(|pulse| pulse.on_stream());
        let (suspect_after, unreachable_after) = if streams { on_stream } else { by_call };
        liveness::Pulse {
            node: &self.node.id,
            liveness: self.liveness,
            quiet_for: heard.filter(|quiet| *quiet <= listening_for).map(signed),
            suspect_after,
            unreachable_after,
        }
    }
}

impl<'a> Desk<'a> {
    fn new(office: &'a Office, board: &'a PulseBoard, lookout: &'a Lookout, fence: Fence) -> Self {
        let now = office.clock.monotonic();
        Desk {
            office,
            board,
            lookout,
            fence,
            listening_since: now,
            looked_at: now,
            aged_at: now,
            excuse: None,
            roster: Vec::new(),
            roster_at: Revision::ZERO,
            unwell: Vec::new(),
            well_until: Duration::ZERO,
            outlook_at: None,
            told: HashMap::new(),
        }
    }

    /// Listens until a commit is fenced off.
    async fn work(mut self, beats: &Beats, holder: &str) {
        let mut tick = tokio::time::interval(EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            beats.beat(NAME, self.office.clock.now());
            match self.look(holder).await {
                Ok(()) => {}
                Err(Error::Store(argosy_store::Error::Fenced)) => return,
                Err(error) => warn!(%error, "could not write down who is heard; trying again"),
            }
        }
    }

    async fn look(&mut self, holder: &str) -> Result<(), Error> {
        let now = self.office.clock.monotonic();
        let gap = now.saturating_sub(self.looked_at);
        self.looked_at = now;
        if GAP_MAX < gap {
            warn!(gap_s = gap.as_secs(), "we were not there for a while; beginning to listen anew");
            self.listen_anew(now);
        }
        self.hear_others(holder, now).await?;
        self.call_roll(now);
        let mut found = self.sweep(now);
        self.judge(&mut found, now);
        self.lookout.send_replace(Some(Watching {
            fence: self.fence.clone(),
            listening_since: self.listening_since,
            looked_at: now,
            excuse: found.excuse,
        }));
        self.write_outlook(found.excuse, now).await?;
        for marks in found.marks.chunks(MARKS_MAX) {
            self.mark(marks).await?;
        }
        if AGE_EVERY <= now.saturating_sub(self.aged_at) {
            self.aged_at = now;
            let mute = self.mute(found.excuse.is_some(), now);
            for nodes in mute.chunks(MARKS_MAX) {
                self.age(nodes).await?;
            }
        }
        Ok(())
    }

    /// Whose complete health reports should have come and did not, although they are heard. Nobody owes any
    /// while there is an excuse for silence.
    fn mute(&mut self, excused: bool, now: Duration) -> Vec<NodeId> {
        let settings = self.office.nodes();
        let mut mute = Vec::new();
        for member in &mut self.roster {
            let pulse = member.pulse.as_ref();
            let heard = pulse.and_then(|pulse| pulse.quiet_for(now)).map(signed);
            let [(late, _), _] = member.limits;
            if excused || heard.is_none_or(|quiet| late <= quiet) {
                member.owes_since = None;
                continue;
            }
            let owed = now.saturating_sub(*member.owes_since.get_or_insert(now));
            let evidence = &member.node.evidence;
            if !evidence.given || evidence.is_missing() {
                continue;
            }
            let proved = pulse.and_then(|pulse| pulse.proved_for(now)).unwrap_or(Duration::MAX);
            let every = settings.health_every(member.node.pool.as_deref());
            if liveness::reports_late(every) <= signed(owed.min(proved)) {
                mute.push(member.node.id.clone());
            }
        }
        mute
    }

    /// Writes down that health reports are missing, in one commit.
    async fn age(&self, nodes: &[NodeId]) -> Result<(), Error> {
        let caller = system(NAME);
        let decide = |view: &View, now: Timestamp| {
            let mut txn = Txn::at(now);
            txn.fence(self.fence.clone());
            let mut missing = 0_usize;
            for node in nodes {
                let Some(before) = view.node(node.as_str()) else { continue };
                let Some(TakenIn { node: Some(after), entries }) = aged(&before.value, now) else {
                    continue;
                };
                let change = Mutation::update("reports-missing", before, Arc::new(after));
                Office::write_node(&mut txn, change, Cause::Automatic, &entries, &caller, now)?;
                missing += 1;
            }
            Ok(((0 < missing).then_some(txn), missing))
        };
        let (_, missing) = self.office.decide(decide).await?;
        if 0 < missing {
            let first = nodes.first().map(NodeId::as_str);
            warn!(nodes = missing, first, "nodes are heard and report no health any more");
        }
        Ok(())
    }

    fn listen_anew(&mut self, now: Duration) {
        self.listening_since = now;
        self.well_until = Duration::ZERO;
    }

    /// Brings the roster up to date. A fleet that nothing happens to is not copied each second.
    fn call_roll(&mut self, now: Duration) {
        let changed_at = self.office.store.read(View::changed_at::<Node>);
        // Not only later: a store that lost commits counts anew from where it is.
        if self.roster_at != changed_at {
            // Copied, so that nobody waits for us to think.
            let nodes: Vec<Arc<Node>> = self.office.store.read(|view| {
                let nodes = view.nodes().map(|node| &node.value);
                nodes.filter(|node| !matches!(node.duty, Duty::Terminated(_))).cloned().collect()
            });
            let fleet = nodes.len();
            let first = self.roster_at == Revision::ZERO;
            // Of more nodes each may have to speak more seldom, and may be silent for longer.
            let pace = |nodes| self.office.settings.nodes.fleet.heartbeat_least(nodes);
            let same_pace = pace(fleet) == pace(self.roster.len());
            // Both are by id.
            let mut known = std::mem::take(&mut self.roster).into_iter().peekable();
            let member = |node: Arc<Node>| {
                while known.next_if(|member| member.node.id < node.id).is_some() {}
                let before = known.next_if(|member| member.node.id == node.id);
                let same = before.as_ref().is_some_and(|was| Arc::ptr_eq(&was.node, &node));
                let limits = |node| [false, true].map(|on| self.limits(node, on, fleet));
                let (came_at, owes_since) = match before {
                    Some(member) if same && same_pace => return member,
                    Some(member) if same => return Member { limits: limits(&node), ..member },
                    Some(member) => (member.came_at, member.owes_since),
                    // Not one that somebody knows to be silent.
                    None => ((!first && node.liveness == Liveness::Fresh).then_some(now), None),
                };
                let limits = limits(&node);
                let (liveness, pulse) = (node.liveness, None);
                Member { liveness, node, pulse, came_at, limits, owes_since }
            };
            self.roster = nodes.into_iter().map(member).collect();
            self.roster_at = changed_at;
            self.well_until = Duration::ZERO;
        }
        // Who was never heard has no place on the board yet.
        for member in self.roster.iter_mut().filter(|member| member.pulse.is_none()) {
            member.pulse = self.board.find(member.node.id.as_str());
        }
    }

    /// Who is silent, and what follows. Everybody is looked at only when somebody else may have become silent:
    /// who was just heard is well for a while.
    fn sweep(&mut self, now: Duration) -> Sweep {
        let listening_for = now.saturating_sub(self.listening_since);
        if self.well_until <= now {
            let (unwell, well_until) = self.look_at_everybody(now, listening_for);
            (self.unwell, self.well_until) = (unwell, well_until);
        }
        let unwell = self.unwell.iter().filter_map(|place| self.roster.get(*place));
        let fleet = unwell.map(|member| member.pulse(now, listening_for));
        let fleet: Vec<liveness::Pulse<'_>> = fleet.filter(|pulse| !pulse.is_well()).collect();
        let well = self.roster.len() - fleet.len();
        let amnesty = self.office.settings.nodes.fleet.amnesty;
        // Asked only when somebody is silent, which is seldom.
        let heard = |member: &Member| member.pulse.as_ref().and_then(|pulse| pulse.quiet_for(now));
        let last =
            (!fleet.is_empty()).then(|| self.roster.iter().filter_map(heard).min()).flatten();
        let deaf_for = signed(last.map_or(listening_for, |quiet| quiet.min(listening_for)));
        let listening_for = signed(listening_for);
        sweep(&fleet, Listening { listening_for, amnesty, well, deaf_for })
    }

    /// Who is not well, by place, and when the first of the others may have been silent for too long.
    fn look_at_everybody(&self, now: Duration, listening_for: Duration) -> (Vec<usize>, Duration) {
        let (mut unwell, mut first) = (Vec::new(), SignedDuration::MAX);
        for (place, member) in self.roster.iter().enumerate() {
            let pulse = member.pulse(now, listening_for);
            let Some(quiet) = pulse.quiet_for.filter(|_| pulse.is_well()) else {
                unwell.push(place);
                continue;
            };
            // It may go on to call where it had a stream.
            let [(by_call, _), (on_stream, _)] = member.limits;
            first = first.min(by_call.min(on_stream).saturating_sub(quiet));
        }
        (unwell, now.saturating_add(Duration::try_from(first).unwrap_or(Duration::ZERO)))
    }

    /// How long a node may be silent; a look earlier, so that what is promised is kept.
    fn limits(&self, node: &Node, on_stream: bool, fleet: usize) -> Limits {
        let settings = &self.office.settings.nodes;
        let every = settings.heartbeat_every(node.pool.as_deref(), on_stream, fleet);
        let (suspect, unreachable) = limits(settings.of(node.pool.as_deref()), every);
        let early = |time: SignedDuration| time.saturating_sub(signed(EVERY));
        (early(suspect), early(unreachable))
    }

    /// Notices when an isolation begins and when it ends.
    fn judge(&mut self, found: &mut Sweep, now: Duration) {
        let fleet = self.roster.len();
        let isolated = |excuse: Option<Excuse>| matches!(excuse, Some(Excuse::Isolation { .. }));
        match (isolated(self.excuse), found.excuse) {
            (false, Some(Excuse::Isolation { silent, total })) => {
                error!(silent, total, "control plane isolated: nothing is done about silence");
            }
            (true, None) if !found.heard => {
                error!("nobody is heard for so long that it is believed: silence counts again");
            }
            (true, excuse) if !isolated(excuse) => {
                warn!("the fleet is heard again; beginning to listen anew");
                self.listen_anew(now);
                // Who is still away gets the time that everybody gets after a start of ours.
                found.marks.retain(|(_, to)| *to == Liveness::Fresh);
                found.excuse = Some(Excuse::Amnesty { missing: fleet, total: fleet });
            }
            _ => {}
        }
        self.excuse = found.excuse;
    }

    /// Writes down, for every process, why nothing is done about silence; or that it is over.
    async fn write_outlook(&mut self, excuse: Option<Excuse>, now: Duration) -> Result<(), Error> {
        let stored = self.office.store.read(|view| view.outlook().cloned());
        // Nobody is missed where nobody is.
        let excuse = excuse.filter(|excuse| match excuse {
            Excuse::Isolation { total, .. } | Excuse::Amnesty { total, .. } => 0 < *total,
        });
        let known = stored.as_ref().map(|stored| stored.value.excuse);
        let same = known.map(Excuse::word) == excuse.map(Excuse::word);
        let lately = self.outlook_at.is_some_and(|at| now.saturating_sub(at) < OUTLOOK_EVERY);
        if known == excuse || (same && lately) {
            return Ok(());
        }
        self.outlook_at = Some(now);
        let at = self.office.clock.now();
        let mut txn = Txn::at(at);
        txn.fence(self.fence.clone());
        match (stored, excuse) {
            (stored, Some(excuse)) => {
                let since = stored.filter(|_| same).map_or(at, |stored| stored.value.since);
                txn.overwrite(Arc::new(Outlook { since, excuse }));
            }
            (Some(stored), None) => {
                info!(excuse = stored.value.excuse.word(), "silence counts again");
                txn.discard(&*stored.value);
            }
            (None, None) => {}
        }
        self.office.store.commit(txn).await?;
        Ok(())
    }

    /// Marks nodes, in one commit.
    async fn mark(&self, marks: &[(NodeId, Liveness)]) -> Result<(), Error> {
        let caller = system(NAME);
        let decide = |view: &View, now: Timestamp| {
            let mut txn = Txn::at(now);
            txn.fence(self.fence.clone());
            let mut marked: BTreeMap<Liveness, usize> = BTreeMap::new();
            for (node, to) in marks {
                let Some(before) = view.node(node.as_str()) else { continue };
                let Some((after, entries)) = self.marked(&before.value, *to, now) else { continue };
                let change = Mutation::update("liveness", before, Arc::new(after));
                Office::write_node(&mut txn, change, Cause::Automatic, &entries, &caller, now)?;
                *marked.entry(*to).or_default() += 1;
            }
            Ok(((!marked.is_empty()).then_some(txn), marked))
        };
        let (_, marked) = self.office.decide(decide).await?;
        let count = |liveness| marked.get(&liveness).copied().unwrap_or(0);
        let (suspect, unreachable) = (count(Liveness::Suspect), count(Liveness::Unreachable));
        let fresh = count(Liveness::Fresh);
        let first = marks.first().map(|(node, _)| node.as_str());
        if 0 < suspect + unreachable {
            warn!(suspect, unreachable, first, "nodes went silent");
        }
        if 0 < fresh {
            info!(fresh, first, "nodes are heard again");
        }
        Ok(())
    }

    /// A node with its mark, and what is written down about it; `None` if the mark is out of date.
    fn marked(&self, before: &Node, to: Liveness, now: Timestamp) -> Option<(Node, Vec<Entry>)> {
        if before.liveness == to || matches!(before.duty, Duty::Terminated(_)) {
            return None;
        }
        let pulse = self.board.find(before.id.as_str());
        let on_stream = pulse.as_deref().is_some_and(Pulse::on_stream);
        let (suspect_after, _) = self.limits(before, on_stream, self.roster.len());
        let monotonic = self.office.clock.monotonic();
        let quiet = pulse.and_then(|pulse| pulse.quiet_for(monotonic)).map(signed);
        // It may have been heard since we looked.
        if to != Liveness::Fresh && quiet.is_some_and(|quiet| quiet < suspect_after) {
            return None;
        }
        let reason = match (to, quiet) {
            (Liveness::Fresh, _) => "heard again".to_owned(),
            (Liveness::Suspect | Liveness::Unreachable, Some(quiet)) => {
                format!("silent for {} s", quiet.as_secs())
            }
            (Liveness::Suspect | Liveness::Unreachable, None) => {
                let listening = monotonic.saturating_sub(self.listening_since);
                format!("not heard since we began to listen {} s ago", listening.as_secs())
            }
        };
        let mut after = before.clone();
        after.liveness = to;
        after.liveness_since = now;
        after.turned(before, now);
        let entry = |what| Entry { at: now, node: before.id.clone(), what };
        let from = before.liveness;
        let mut entries = vec![entry(What::Liveness { from, to, reason: reason.clone() })];
        if before.status() != after.status() {
            let (from, to) = (before.status().into(), after.status().into());
            entries.push(entry(What::Status { from, to, reason }));
        }
        Some((after, entries))
    }

    /// Takes in whom other processes heard, and forgets processes that are gone.
    async fn hear_others(&mut self, holder: &str, now: Duration) -> Result<(), Error> {
        let wall = self.office.clock.now();
        let told = self.office.store.read(|view| view.heard().cloned().collect::<Vec<_>>());
        let mut gone = Vec::new();
        for heard in told {
            let process = heard.value.process.as_str();
            let known = self.told.get(process);
            let is_news = known.is_none_or(|(revision, _)| *revision != heard.revision);
            // Ours is from when another process listened.
            if process == holder
                || known.is_some_and(|(_, at)| !is_news && HEARD_KEPT < now.saturating_sub(*at))
            {
                gone.push(heard);
            } else if is_news {
                self.take_in(&heard.value, wall, now);
                self.told.insert(process.to_owned(), (heard.revision, now));
            }
        }
        if gone.is_empty() {
            return Ok(());
        }
        let mut txn = Txn::at(wall);
        txn.fence(self.fence.clone());
        for heard in gone {
            self.told.remove(&heard.value.process);
            txn.discard(&*heard.value);
        }
        self.office.store.commit(txn).await?;
        Ok(())
    }

    fn take_in(&self, heard: &Heard, wall: Timestamp, now: Duration) {
        let exists: Vec<bool> = self.office.store.read(|view| {
            heard.nodes.iter().map(|(node, _, _)| view.node(node.as_str()).is_some()).collect()
        });
        for ((node, ago_ms, on_stream), exists) in heard.nodes.iter().zip(exists) {
            let ago = Duration::from_millis(u64::from(*ago_ms));
            let Some(monotonic) = now.checked_sub(ago).filter(|_| exists) else { continue };
            let wall = wall.checked_sub(signed(ago)).unwrap_or(wall);
            self.board.admit(node).heard_elsewhere(Moment { wall, monotonic }, *on_stream);
        }
        for (node, ago_ms) in &heard.reported {
            let ago = Duration::from_millis(u64::from(*ago_ms));
            let pulse = self.board.find(node.as_str());
            if let (Some(pulse), Some(monotonic)) = (pulse, now.checked_sub(ago)) {
                pulse.proved(monotonic);
            }
        }
    }
}

pub(crate) fn signed(time: Duration) -> SignedDuration {
    SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX)
}
