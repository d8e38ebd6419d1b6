//! Who waits for a call to one workload system: what keeps work from a sick node goes first.

use argosy_core::external::Told;
use argosy_core::node::NodeId;
use std::collections::{HashMap, VecDeque};

/// How many nodes are told about at once. Each is a connection, and `slurmctld` takes one at a time.
const CALLS_MAX: usize = 32;

/// How many of these may be questions. The rest is for what must be told: a thousand drains whose answers hang
/// must not keep a cordon waiting.
const ASKS_MAX: usize = 24;

/// How urgent a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// A node that should get no work gets it.
    Out,
    /// A node may be given work again.
    In,
    /// A question, or the past.
    Ask,
}

impl Rank {
    pub(super) const ALL: [Rank; 3] = [Rank::Out, Rank::In, Rank::Ask];

    pub(super) const fn of(told: Told) -> Self {
        match told {
            Told::Cordon | Told::Drain => Rank::Out,
            Told::Uncordon => Rank::In,
        }
    }
}

/// The nodes that wait, and those whose call is under way.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: HashMap<NodeId, Rank>,
    /// In the order in which they came, by rank. Who does not wait in that rank any more is passed over.
    orders: [VecDeque<NodeId>; Rank::ALL.len()],
    under_way: HashMap<NodeId, Rank>,
    asks: usize,
}

impl Queue {
    pub(super) fn is_under_way(&self, node: &NodeId) -> bool {
        self.under_way.contains_key(node)
    }

    /// A node waits for a call.
    pub(super) fn push(&mut self, node: &NodeId, rank: Rank) {
        if self.waiting.insert(node.clone(), rank) == Some(rank) {
            return;
        }
        if let Some(order) = self.orders.get_mut(rank as usize) {
            order.push_back(node.clone());
        }
    }

    /// A node waits for nothing any more.
    pub(super) fn drop(&mut self, node: &NodeId) {
        self.waiting.remove(node);
    }

    /// Takes the next whose call may begin; it is under way then.
    pub(super) fn pop(&mut self) -> Option<NodeId> {
        if CALLS_MAX <= self.under_way.len() {
            return None;
        }
        for rank in Rank::ALL {
            if rank == Rank::Ask && ASKS_MAX <= self.asks {
                return None;
            }
            let Some(order) = self.orders.get_mut(rank as usize) else { continue };
            // One that left and came back stands there twice, and is taken once.
            while let Some(node) = order.pop_front() {
                if self.waiting.get(&node) != Some(&rank) {
                    continue;
                }
                self.waiting.remove(&node);
                self.under_way.insert(node.clone(), rank);
                self.asks += usize::from(rank == Rank::Ask);
                return Some(node);
            }
        }
        None
    }

    /// A call has ended.
    pub(super) fn ended(&mut self, node: &NodeId) {
        if self.under_way.remove(node) == Some(Rank::Ask) {
            self.asks = self.asks.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> NodeId {
        NodeId::parse(name).unwrap()
    }

    fn popped(queue: &mut Queue) -> Vec<String> {
        std::iter::from_fn(|| queue.pop()).map(|node| node.to_string()).collect()
    }

    #[test]
    fn r2_n34_what_must_be_told_goes_before_what_is_asked() {
        let mut queue = Queue::default();
        for number in 0..40 {
            queue.push(&node(&format!("ask{number}")), Rank::Ask);
        }
        assert_eq!(popped(&mut queue).len(), ASKS_MAX, "the rest of the places is kept");
        queue.push(&node("in"), Rank::In);
        queue.push(&node("out"), Rank::Out);
        assert_eq!(popped(&mut queue), ["out", "in"]);
        queue.ended(&node("ask0"));
        assert_eq!(popped(&mut queue), ["ask24"]);
        // A question that became an order is one, at once.
        queue.push(&node("ask39"), Rank::Out);
        assert_eq!(popped(&mut queue), ["ask39"]);
        queue.push(&node("late"), Rank::Out);
        queue.drop(&node("late"));
        assert_eq!(popped(&mut queue), Vec::<String>::new());
    }
}
