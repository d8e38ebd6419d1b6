//! A5: asked to stop under load.

use super::load::Load;
use crate::harness::{Engine, Profile, Setup};
use reqwest::Method;

/// Every request that was taken is answered, watchers are told where to go on, and the exit code is 0.
async fn stops_in_order(engine: Engine) {
    let mut server = Setup::new(engine, Profile::Full).start().await;
    let load = Load::start(&server, 4, 5);
    for _ in 0..3 {
        let mut watching = server
            .request(Method::GET, "clusters?watch=true")
            .send()
            .await
            .expect("a watch that begins");
        load.progress(20).await;
        server.signal("TERM");
        let mut watched = Vec::new();
        while let Ok(Some(chunk)) = watching.chunk().await {
            watched.extend_from_slice(&chunk);
        }
        let (code, log) = server.ended().await;
        assert_eq!(code, Some(0), "{log}");
        assert!(log.contains("stopped"), "{log}");
        let refused = log.lines().filter(|line| line.contains("status=5")).count();
        assert_eq!(refused, 0, "{log}");
        let watched = String::from_utf8(watched).expect("text");
        let last = watched.trim_end().rsplit("\n\n").next().expect("an event");
        assert!(last.starts_with("event: BOOKMARK"), "{last}");
        server.restart().await;
    }
    let counts = load.verify(&server).await;
    println!("{engine:?}: {counts:?}");
    assert_eq!(counts.unanswered, 0, "what was done was not acknowledged");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a5_sigterm_under_load_fails_nobody_embedded() {
    stops_in_order(Engine::Embedded).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a5_sigterm_under_load_fails_nobody_postgres() {
    stops_in_order(Engine::Postgres).await;
}
