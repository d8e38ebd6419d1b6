use super::*;
use crate::fixture::at;
use crate::pool::failed;
use crate::pool::fixture::{Town, cloud, exhausted, gcp, offer, town};

fn choice(name: &str, priority: u32, weight: u32) -> ProviderChoice {
    ProviderChoice { name: name.to_owned(), priority, weight, regions: Vec::new(), ..gcp() }
}

/// A pool of so many, to be bought at three providers.
fn three(nodes: u32) -> Town {
    let mut town = town(nodes, "");
    for (name, region) in [("aws", "us-east-1"), ("lambda", "us-south-1")] {
        town.clouds.insert(name.to_owned(), cloud("any", name, region));
    }
    town.spec.providers = vec![choice("gcp", 2, 1), choice("aws", 1, 2), choice("lambda", 3, 1)];
    town.spec.types = vec!["t".to_owned()];
    town
}

fn bought_at(town: &Town) -> Vec<String> {
    town.plan().buy.into_iter().map(|buy| buy.order.provider).collect()
}

#[test]
fn the_lowest_priority_number_is_first() {
    assert_eq!(bought_at(&three(2)), ["aws", "aws"]);
    let mut town = three(1);
    let order = town.plan().buy[0].order.clone();
    town.book = failed(&town.book, &order, 1, &exhausted(), at(0));
    assert_eq!(bought_at(&town), ["gcp"]);
}

#[test]
fn the_cheapest_known_price_is_first_and_unknown_ones_last() {
    let mut town = three(1);
    town.spec.strategy = Strategy::Cost;
    let price = |town: &mut Town, name: &str, price: Option<f64>| {
        let cloud = town.clouds.get_mut(name).unwrap();
        cloud.offers = vec![offer("t", &cloud.region, price)];
    };
    assert_eq!(bought_at(&town), ["aws"], "nobody knows any: by priority");
    price(&mut town, "gcp", Some(3.0));
    assert_eq!(bought_at(&town), ["gcp"]);
    price(&mut town, "lambda", Some(2.0));
    assert_eq!(bought_at(&town), ["lambda"]);
    assert_eq!(town.plan().buy[0].order.price_per_hour, Some(2.0));
    price(&mut town, "lambda", Some(f64::NAN));
    assert_eq!(bought_at(&town), ["gcp"], "what is no price is none");
    // A cheaper type that is only the second choice does not come first.
    town.spec.types.push("cheap".to_owned());
    town.clouds.get_mut("aws").unwrap().offers = vec![offer("cheap", "us-east-1", Some(0.1))];
    assert_eq!(town.plan().buy[0].order.machine_type, "t");
}

#[test]
fn a_round_goes_by_weight_and_on_where_the_last_one_ended() {
    let mut town = three(4);
    town.spec.strategy = Strategy::RoundRobin;
    assert_eq!(bought_at(&town), ["aws", "gcp", "lambda", "aws"]);
    town.book.ordered = 1;
    assert_eq!(bought_at(&town), ["gcp", "lambda", "aws", "aws"]);
    assert_eq!(town.plan().book.unwrap().ordered, 5);
    // One that fails is passed over, and comes back.
    let order = Order {
        provider: "aws".to_owned(),
        region: "us-east-1".to_owned(),
        ..town.plan().buy[2].order.clone()
    };
    town.book = failed(&town.book, &order, 1, &exhausted(), at(0));
    assert_eq!(bought_at(&town), ["gcp", "lambda", "gcp", "gcp"]);
    assert!(town.plan_at(at(31)).buy.iter().any(|buy| buy.order.provider == "aws"));
}

#[test]
fn who_says_that_there_are_some_is_first() {
    let mut town = three(1);
    town.spec.strategy = Strategy::Availability;
    for (name, available) in [("aws", false), ("lambda", true)] {
        let cloud = town.clouds.get_mut(name).unwrap();
        cloud.offers = vec![Offer { available, ..offer("t", &cloud.region, None) }];
    }
    assert_eq!(bought_at(&town), ["lambda"]);
    town.clouds.get_mut("lambda").unwrap().offers[0].available = false;
    assert_eq!(bought_at(&town), ["gcp"], "who does not say is better than who says no");
}

#[test]
fn zones_are_filled_evenly() {
    let mut town = town(7, "a:ready/us-east1-c b:ready/us-east1-c");
    town.spec.zones = ["us-east1-b", "us-east1-c", "us-east1-d"].map(str::to_owned).to_vec();
    let zones: Vec<String> =
        town.plan().buy.into_iter().map(|buy| buy.order.zone.replace("us-east1-", "")).collect();
    assert_eq!(zones, ["b", "d", "b", "d", "b"]);
}

#[test]
fn spot_is_preferred_where_there_is_some() {
    let mut town = town(1, "");
    let spot = |town: &Town| town.plan().buy.first().map(|buy| buy.order.spot);
    assert_eq!(spot(&town), Some(false));
    town.spec.capacity = Capacity::Spot;
    assert_eq!(spot(&town), Some(true));
    town.clouds.get_mut("gcp").unwrap().abilities.spot = false;
    assert_eq!(spot(&town), None);
    town.says("InvalidSpec: 0 of 1 nodes ready. Nothing can be bought: GCP has no spot machines");
    town.spec.capacity = Capacity::SpotPreferred;
    assert_eq!(spot(&town), Some(false));
    town.clouds.get_mut("gcp").unwrap().abilities.spot = true;
    let order = town.plan().buy[0].order.clone();
    assert!(order.spot);
    town.book = failed(&town.book, &order, 1, &exhausted(), at(0));
    assert_eq!(spot(&town), Some(false));
}

#[test]
fn a_spec_without_a_provider_is_for_the_first_there_is() {
    let mut town = three(1);
    town.spec.providers.clear();
    assert_eq!(bought_at(&town), ["aws"]);
    assert_eq!(town.plan().buy[0].order.region, "us-east-1");
    town.clouds.clear();
    town.says("ProviderNotConfigured: 0 of 1 nodes ready. Nothing can be bought: no provider is configured");
}

#[test]
fn zones_of_another_region_do_not_bind_a_provider() {
    let mut town = three(1);
    town.spec.zones = vec!["us-east1-b".to_owned()];
    town.spec.providers = vec![choice("aws", 0, 1), choice("gcp", 1, 1)];
    let order = town.plan().buy[0].order.clone();
    assert_eq!((order.provider.as_str(), order.zone.as_str()), ("aws", ""));
    // The only place there is takes the zones as they are.
    town.spec.providers = vec![choice("aws", 0, 1)];
    assert_eq!(town.plan().buy[0].order.zone, "us-east1-b");
}

#[test]
fn r2_m25_a_zone_belongs_to_one_region_by_its_name() {
    for (zone, region, expected) in [
        ("europe-west1-b", "europe-west1", true),
        ("europe-west12-a", "europe-west1", false),
        ("europe-west12-a", "europe-west12", true),
        ("us-east-1a", "us-east-1", true),
        ("us-east-1-bos-1a", "us-east-1", true),
        ("us-east-10a", "us-east-1", false),
        ("us-east-1", "us-east-1", true),
        ("us-east-1a", "", false),
    ] {
        assert_eq!(super::is_in_region(zone, region), expected, "{zone} in {region}");
    }
    let mut town = three(2);
    let regions = ["europe-west1", "europe-west12"].map(str::to_owned).to_vec();
    town.spec.providers = vec![ProviderChoice { regions, ..choice("gcp", 0, 1) }];
    town.spec.zones = vec!["europe-west12-a".to_owned()];
    let of_zone: Vec<_> = town.plan().buy.into_iter().map(|buy| buy.order).collect();
    let of_zone = of_zone.iter().filter(|order| !order.zone.is_empty());
    assert!(of_zone.clone().all(|order| order.region == "europe-west12"), "{of_zone:?}");
}

#[test]
fn r2_m26_what_a_spec_does_not_name_is_no_reason_to_replace() {
    let mut town = town(2, "a:ready b:ready");
    town.spec.providers[0].regions.clear();
    town.does("");
    // The configuration lists the regions in another order.
    town.clouds.get_mut("gcp").unwrap().region = "us-west1".to_owned();
    town.does("");
    // One that is named is another matter.
    town.spec.providers[0].regions = vec!["us-west1".to_owned()];
    town.does("buy 1 for a");
}

#[test]
fn the_key_of_a_place_says_all_of_it() {
    let order = crate::pool::fixture::order();
    assert_eq!(Place::of(&order).key(), "gcp/us-east1//n1-standard-4/on-demand");
    let spot = Order { spot: true, zone: "b".to_owned(), ..order };
    assert_eq!(Place::of(&spot).key(), "gcp/us-east1/b/n1-standard-4/spot");
}
