//! Noise at every door: whatever bytes come, nobody panics and nothing is our fault.

use super::calls::methods;
use super::{OURS, framed};
use crate::world::World;
use axum::body::Bytes;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Bytes: any, or some that look like a message.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let any_bytes = prop::collection::vec(any::<u8>(), 0..256);
    // Fields 1 to 15 with any wire type and contents of their own length: these get further in.
    let field = (1u8..16, 0u8..6, prop::collection::vec(any::<u8>(), 0..24));
    let fields = prop::collection::vec(field, 0..12).prop_map(|fields| {
        let mut bytes = Vec::new();
        for (number, kind, contents) in fields {
            bytes.push(number << 3 | kind);
            if kind == 2 {
                bytes.push(u8::try_from(contents.len()).unwrap());
            }
            bytes.extend(contents);
        }
        bytes
    });
    prop_oneof![any_bytes, fields]
}

#[derive(Clone, Copy, Debug)]
enum Dress {
    Proto,
    Json,
    Grpc,
    GrpcWeb,
    Unframed,
    Gzip,
}

impl Dress {
    fn on(self, bytes: Vec<u8>) -> (Vec<(&'static str, &'static str)>, Vec<u8>) {
        let kind = |kind| vec![("content-type", kind)];
        match self {
            Dress::Proto => (kind("application/proto"), bytes),
            Dress::Json => (kind("application/json"), bytes),
            Dress::Grpc => (kind("application/grpc"), framed(0, &bytes)),
            Dress::GrpcWeb => (kind("application/grpc-web"), framed(0, &bytes)),
            Dress::Unframed => (kind("application/grpc"), bytes),
            Dress::Gzip => {
                (vec![("content-type", "application/proto"), ("content-encoding", "gzip")], bytes)
            }
        }
    }
}

/// Runs one case after another against one server.
fn at_every_door(cases: u32, paths: Vec<String>, dresses: &'static [Dress]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let world = runtime.block_on(World::new());
    let strategy = (prop::sample::select(paths), prop::sample::select(dresses), noise());
    let mut runner =
        TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let ran = runner.run(&strategy, |(path, dress, bytes)| {
        let (headers, body) = dress.on(bytes);
        let line = format!("POST {path}");
        let answer = runtime.block_on(world.send("admin", &line, &headers, Bytes::from(body)));
        prop_assert!(answer.status.as_u16() < 500, "{}: {}", answer.status, answer.text);
        // `internal` and `unknown`, where gRPC says them.
        let status = answer.header("grpc-status");
        prop_assert!(!["2", "13"].contains(&status), "grpc-status {status}");
        prop_assert!(!answer.text.contains("grpc-status: 13"), "{}", answer.text);
        Ok(())
    });
    ran.unwrap();
}

#[test]
fn j7_noise_to_every_method_is_never_our_fault() {
    use Dress::{Grpc, GrpcWeb, Gzip, Json, Proto, Unframed};
    at_every_door(4000, methods().collect(), &[Proto, Json, Grpc, GrpcWeb, Unframed, Gzip]);
}

#[test]
fn j7_noise_on_a_stream_is_never_our_fault() {
    use Dress::{Grpc, GrpcWeb, Unframed};
    at_every_door(1000, vec![format!("{OURS}/Attach")], &[Grpc, GrpcWeb, Unframed]);
}
