//! What a pool costs, as far as anybody knows.

use super::Picture;
use crate::machine::Order;
use crate::pool::choice::{offer, price};
use jiff::Timestamp;
use std::collections::HashMap;

/// What the machines of a pool cost together.
#[derive(Clone, Debug)]
pub(in crate::pool) struct Cost<'a> {
    /// In US dollars per hour; what is not known now counts as it last was.
    pub(in crate::pool) sum: f64,
    /// Whether some price is not known now: then the sum is shown as unknown (G19).
    pub(in crate::pool) unknown: bool,
    /// A machine type whose price nobody ever knew, and its provider: it is missing in the sum.
    pub(super) uncounted: Option<(&'a str, &'a str)>,
    /// What a machine of the kind last cost, by provider, type and spot.
    last: HashMap<(&'a str, &'a str, bool), f64>,
}

impl<'a> Cost<'a> {
    pub(super) fn of(picture: &Picture<'a>) -> Self {
        let mut cost = Self { sum: 0.0, unknown: false, uncounted: None, last: HashMap::new() };
        // A few kinds, compared one by one: that is quicker than hashing each of thousands.
        let mut newest: Vec<((&str, &str, bool), Timestamp, f64)> = Vec::new();
        for member in &picture.members {
            let order = &member.instance.order;
            let Some(price) = order.price_per_hour.filter(|price| is_price(*price)) else {
                continue;
            };
            let at = member.instance.ordered_at;
            match newest.iter_mut().find(|(known, ..)| *known == kind(order)) {
                None => newest.push((kind(order), at, price)),
                Some((_, known_at, known)) if *known_at <= at => (*known_at, *known) = (at, price),
                Some(_) => {}
            }
        }
        cost.last = newest.into_iter().map(|(kind, _, price)| (kind, price)).collect();
        for member in &picture.members {
            if !member.instance.state.is_over() {
                let order = &member.instance.order;
                if !cost.add(order, picture) {
                    cost.uncounted.get_or_insert((&order.machine_type, &order.provider));
                }
            }
        }
        cost
    }

    /// Counts one more machine; false if nobody ever knew what it costs.
    pub(super) fn add(&mut self, order: &Order, picture: &Picture<'_>) -> bool {
        let known = order.price_per_hour.filter(|price| is_price(*price));
        let known = known.or_else(|| {
            let facts = picture.providers.get(&order.provider)?;
            let offer = offer(facts.offers, &order.machine_type, &order.region, &order.zone)?;
            price(offer, order.spot)
        });
        self.unknown |= known.is_none();
        let price = known.or_else(|| self.last_of(order));
        self.sum += price.unwrap_or(0.0);
        price.is_some()
    }

    /// What one more machine costs, as far as anybody ever knew.
    pub(super) fn next(&self, order: &Order) -> Option<f64> {
        order.price_per_hour.filter(|price| is_price(*price)).or_else(|| self.last_of(order))
    }

    fn last_of(&self, order: &Order) -> Option<f64> {
        let key: (&str, &str, bool) = kind(order);
        self.last.get(&key).copied()
    }
}

fn kind(order: &Order) -> (&str, &str, bool) {
    (&order.provider, &order.machine_type, order.spot)
}

/// A number that can be a price: a feed that says otherwise says nothing.
fn is_price(price: f64) -> bool {
    price.is_finite() && 0.0 <= price
}
