//! Lists: pages, totals, order, and the same answer by index and by scan.

use crate::access::names;
use crate::world::{World, cluster_named, in_virtual_time, labelled, user, with_adapters};
use argosy_control::resource::{List, Page};
use argosy_core::resource::Kind;
use argosy_core::search::{Filter, Order};
use proptest::prelude::*;
use serde_json::json;

fn page(world: &World, filter: Filter, page: usize, size: usize) -> Page {
    let order = Order::default();
    let list = List { kind: Kind::Cluster, cluster: None, filter, order, page, size };
    world.control.resources.list(&user(), &list).unwrap()
}

fn titles(page: &Page) -> Vec<String> {
    page.items.iter().map(|item| item.value.name.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn pages_fit_together_whatever_their_size() {
    let world = World::with(with_adapters(&[])).await;
    for index in 0..23 {
        world.cluster(&format!("c{index:02}")).await;
        if index % 3 == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(7)).await;
        }
    }
    let all = titles(&page(&world, Filter::everything(), 1, 100));
    assert_eq!(all.len(), 23);
    assert_eq!(all[0..2], ["c22", "c21"], "the newest first");
    for size in 1..=24 {
        let mut found = Vec::new();
        for number in 1..=23_usize.div_ceil(size) {
            let page = page(&world, Filter::everything(), number, size);
            assert_eq!(page.total, 23);
            found.extend(titles(&page));
        }
        assert_eq!(found, all, "in pages of {size}");
    }
    let past = page(&world, Filter::everything(), 1000, 100);
    assert_eq!((past.items.len(), past.total), (0, 23));
    let none = page(&world, Filter::everything(), usize::MAX, usize::MAX);
    assert_eq!(none.items.len(), 0);
}

#[test]
fn a_label_index_and_a_scan_give_the_same_answer() {
    let step = (0..6_usize, prop::option::of(0..3_u8), prop::option::of(0..2_u8), any::<bool>());
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(24));
    runner
        .run(&prop::collection::vec(step, 1..25), |steps| {
            in_virtual_time(async {
                let world = World::with(with_adapters(&[])).await;
                for (which, tier, zone, delete) in steps {
                    let name = format!("c{which}");
                    let target = crate::world::cluster(&name);
                    let value = |v: Option<u8>| v.map(|v| format!("v{v}"));
                    let labels = json!({"tier": value(tier), "zone": value(zone)});
                    if world.get(target).is_none() {
                        world.cluster(&name).await;
                    }
                    if delete {
                        world.delete(target).await;
                        world.until_gone(target).await;
                    } else {
                        world.relabel(&user(), target, labels).await.unwrap();
                    }
                }
                for value in ["v0", "v1", "v2"] {
                    let plain: Filter = Filter::label("tier", value);
                    prop_assert_eq!(plain.required_labels().next(), Some(("tier", value)));
                    let hidden = format!("not labels.tier != '{value}'");
                    let hidden: Filter = Filter::parse(&hidden).unwrap();
                    prop_assert_eq!(hidden.required_labels().next(), None);
                    let by_index = page(&world, plain, 1, 100);
                    let all = page(&world, Filter::everything(), 1, 100);
                    let by_scan: Vec<_> = all
                        .items
                        .iter()
                        .filter(|item| item.value.labels.get("tier") == Some(value))
                        .map(|item| item.value.name.to_string())
                        .collect();
                    prop_assert_eq!(&titles(&by_index), &by_scan);
                    prop_assert_eq!(by_index.total, by_scan.len());
                }
                Ok(())
            })
        })
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_label_finds_only_what_the_list_is_about() {
    let world = World::with(with_adapters(&[])).await;
    let labels = || json!({"tier": "gold"});
    world.create(&user(), labelled(cluster_named("a"), labels())).await.unwrap();
    let pool = labelled(crate::world::pool_named("a", "p"), labels());
    world.create(&user(), pool).await.unwrap();
    assert_eq!(titles(&page(&world, Filter::label("tier", "gold"), 1, 9)), ["a"]);
    assert_eq!(names(&world.control, &user(), Kind::NodePool), ["p"]);
}
