//! A1: kills at random moments under load.

use super::load::{Chance, Counts, Load};
use crate::harness::{Engine, Profile, Setup};

/// Kills the server `kills` times under the load of eight clients.
///
/// `ARGOSY_KILLS` in the environment is another number for both stores, `ARGOSY_SEED` the seed.
async fn survives(engine: Engine, kills: u64) {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
    let kills = number("ARGOSY_KILLS").unwrap_or(kills);
    let seed = number("ARGOSY_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("{engine:?}: {kills} kills, ARGOSY_SEED={seed}");
    let mut chance = Chance::new(seed);
    let mut server = Setup::new(engine, Profile::Full).start().await;
    let load = Load::start(&server, 8, seed);
    for _ in 0..kills {
        load.progress(1 + chance.below(12)).await;
        server.restart().await;
    }
    load.progress(20).await;
    let Counts { acknowledged, unknown, unanswered } = load.verify(&server).await;
    println!(
        "{engine:?}: {kills} kills, {acknowledged} writes acknowledged, {unknown} unknown, {unanswered} of them done"
    );
    assert!(kills * 3 <= acknowledged, "void: only {acknowledged} acknowledged writes");
    assert!(kills / 4 <= unknown, "void: only {unknown} requests were interrupted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a1_random_kills_under_load_embedded() {
    survives(Engine::Embedded, 170).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a1_random_kills_under_load_postgres() {
    survives(Engine::Postgres, 30).await;
}
