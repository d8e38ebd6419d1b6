//! Every journey of the HyperFleet documents and of Navarch's, named after it.
//!
//! Each body is written once and runs on both stores, in both profiles: what a profile changes is a
//! value it asks the profile for.

mod cuj;
mod full;
mod mvp;

/// Makes the four tests of each journey.
macro_rules! journeys {
    ($($name:ident),+ $(,)?) => {$(
        mod $name {
            use crate::harness::{Engine, Profile, Setup};

            #[tokio::test]
            async fn embedded_full() {
                super::$name(Setup::new(Engine::Embedded, Profile::Full)).await;
            }

            #[tokio::test]
            async fn embedded_mvp() {
                super::$name(Setup::new(Engine::Embedded, Profile::Mvp)).await;
            }

            #[tokio::test]
            async fn postgres_full() {
                super::$name(Setup::new(Engine::Postgres, Profile::Full)).await;
            }

            #[tokio::test]
            async fn postgres_mvp() {
                super::$name(Setup::new(Engine::Postgres, Profile::Mvp)).await;
            }
        }
    )+};
}
use journeys;
