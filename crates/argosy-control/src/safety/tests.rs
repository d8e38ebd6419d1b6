use super::{pause_of, stay_unstopped, stopped};
use argosy_core::breaker::{Area, Breaker, Scope};
use argosy_store::memory::Memory;
use argosy_store::{Store, Txn};
use jiff::Timestamp;
use std::sync::Arc;

/// Whether what was decided before something else was written is committed after it.
async fn is_committed_after(write: impl FnOnce(&mut Txn)) -> bool {
    let (store, driver) = Store::open(Arc::new(Memory::new())).await.unwrap();
    let mut tasks = crate::task::Tasks::default();
    tasks.start("store", driver.run());
    let now = Timestamp::UNIX_EPOCH;
    let areas = [Area::Fleet, Area::Pool("acme", "h100")];
    let mut decided = Txn::at(now);
    store.read(|view| {
        assert_eq!(stopped(view, "acme", ("h100", None), &areas), None);
        stay_unstopped(&mut decided, view, "acme", ("h100", None), &areas);
    });
    let zone = "gcp/us-east1/b".to_owned();
    decided.overwrite(Arc::new(Breaker::unknown(Scope::Zone { zone })));
    let mut txn = Txn::at(now);
    write(&mut txn);
    store.commit(txn).await.unwrap();
    store.commit(decided).await.is_ok()
}

#[tokio::test]
async fn i3_what_was_planned_before_a_breaker_opened_is_not_committed_after_it() {
    let pool = |name: &str| Scope::Pool { tenant: "acme".to_owned(), pool: name.to_owned() };
    for (scope, committed) in [(Scope::Fleet, false), (pool("h100"), false), (pool("other"), true)]
    {
        let breaker = Arc::new(Breaker::unknown(scope.clone()));
        let after = is_committed_after(|txn| txn.overwrite(breaker)).await;
        assert_eq!(after, committed, "{scope:?}");
    }
}

#[tokio::test]
async fn i3_what_was_planned_before_a_pause_is_not_committed_after_it() {
    for (tenant, pool, committed) in [
        ("acme", None, false),
        ("acme", Some("h100"), false),
        ("acme", Some("other"), true),
        ("other", None, true),
    ] {
        let pause = Arc::new(pause_of(tenant, pool, None));
        let after = is_committed_after(|txn| txn.overwrite(pause)).await;
        assert_eq!(after, committed, "{tenant} {pool:?}");
    }
}
