//! A large pool is planned in time in proportion to it.

use super::*;
use crate::pool::fixture::Town;

fn large(nodes: u32) -> Town {
    let mut large = town(nodes, "");
    for number in 1..=nodes {
        let state = match number % 50 {
            0 => "sick",
            1 => "coming",
            _ => "ready",
        };
        large.ones.push(one(
            &format!("n{number}"),
            number,
            None,
            state,
            100_000 - i64::from(number),
        ));
    }
    large.spec.image = "new".to_owned();
    large
}

#[test]
fn a_pool_from_nothing_buys_every_number_once() {
    let empty = town(1000, "");
    let mut numbers: Vec<u32> = empty.plan().buy.iter().map(|buy| buy.number).collect();
    numbers.dedup();
    assert_eq!(numbers, (1..=1000).collect::<Vec<_>>());
}

#[test]
fn a_pool_of_a_thousand_is_healed_and_updated_within_its_allowance() {
    let plan = large(1000).plan();
    // A tenth, of which twenty are sick and twenty not up yet.
    assert_eq!(plan.buy.len(), 80);
    assert!(plan.buy.iter().take(20).all(|buy| buy.number % 50 == 0), "the sick first");
}
