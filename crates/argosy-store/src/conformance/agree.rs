//! Two engines, one script: every answer must be the same.

use super::{HOUR, second};
use crate::engine::{
    Append, Commit, Engine, EntryQuery, Expect, Fence, Key, Put, Retention, Revision,
    StreamRetention,
};
use jiff::SignedDuration;

/// Runs a script of arbitrary bytes on both engines and compares every answer.
pub async fn agree(left: &dyn Engine, right: &dyn Engine, script: &[u8]) {
    let mut bytes = Bytes(script.iter());
    let mut step = 0;
    while let Some(operation) = bytes.0.next() {
        step += 1;
        let (was, is) = match operation % 8 {
            0..=3 => {
                let batch = bytes.batch(step);
                both!(left, right, commit(batch.clone()))
            }
            4 => {
                let holder = bytes.name();
                let ttl = if bytes.one_in(3) { SignedDuration::ZERO } else { HOUR };
                both!(left, right, lease("loop", &holder, ttl))
            }
            5 => {
                let retention = bytes.retention(step);
                both!(left, right, trim(&retention))
            }
            6 => {
                let after = Revision(u64::from(bytes.next() % 32));
                let limit = usize::from(bytes.next() % 8);
                both!(left, right, changes(after, limit))
            }
            _ => {
                let query = bytes.query();
                both!(left, right, entries(&query))
            }
        };
        assert_eq!(was, is, "step {step} of {script:?}");
    }
    for (was, is) in [
        both!(left, right, head()),
        both!(left, right, scan(None, usize::MAX)),
        both!(left, right, stream_head("s0")),
        both!(left, right, stream_head("s1")),
    ] {
        assert_eq!(was, is, "after {script:?}");
    }
}

/// Answers as text: the two engines' errors cannot be compared, and none is expected.
macro_rules! both {
    ($left:ident, $right:ident, $method:ident($($argument:expr),*)) => {
        (
            format!("{:?}", $left.$method($($argument),*).await.expect("the engine is there")),
            format!("{:?}", $right.$method($($argument),*).await.expect("the engine is there")),
        )
    };
}
use both;

/// Choices, made by the script; zeros when it has ended.
struct Bytes<'a>(std::slice::Iter<'a, u8>);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        self.0.next().copied().unwrap_or_default()
    }

    fn one_in(&mut self, choices: u8) -> bool {
        self.next().is_multiple_of(choices)
    }

    fn name(&mut self) -> String {
        format!("n{}", self.next() % 4)
    }

    fn key(&mut self) -> Key {
        Key::new("k", self.name())
    }

    fn expect(&mut self) -> Expect {
        match self.next() % 4 {
            0 | 1 => Expect::Any,
            2 => Expect::Absent,
            _ => Expect::At(Revision(u64::from(self.next() % 32))),
        }
    }

    fn batch(&mut self, step: i64) -> Vec<Commit> {
        (0..self.next() % 4).map(|_| self.commit(step)).collect()
    }

    fn commit(&mut self, step: i64) -> Commit {
        let mut puts: Vec<Put> = (0..self.next() % 3).map(|_| self.put()).collect();
        puts.dedup_by(|one, other| one.key == other.key);
        let checks = (0..self.next() % 2).map(|_| (self.key(), self.expect())).collect();
        let append = |bytes: &mut Self| Append {
            stream: format!("s{}", bytes.next() % 2),
            subject: bytes.name(),
            body: bytes.next().to_string().into(),
        };
        let appends = (0..self.next() % 3).map(|_| append(self)).collect();
        let fence = self
            .one_in(3)
            .then(|| Fence { lease: "loop".to_string(), epoch: u64::from(self.next() % 4) });
        Commit { at: second(step), puts, checks, appends, fence }
    }

    fn put(&mut self) -> Put {
        let body = (!self.one_in(4)).then(|| self.next().to_string().into());
        Put { key: self.key(), expect: self.expect(), body }
    }

    fn retention(&mut self, step: i64) -> Retention {
        let before = second(step - i64::from(self.next() % 16));
        let entries_kept = u64::from(self.next() % 16);
        let stream = format!("s{}", self.next() % 2);
        let streams = vec![StreamRetention { stream, before, entries_kept }];
        Retention { changes_kept: u64::from(self.next() % 16), streams }
    }

    fn query(&mut self) -> EntryQuery {
        let subject = self.one_in(2).then(|| self.name());
        let cursor = self.one_in(2).then(|| u64::from(self.next() % 16));
        EntryQuery {
            stream: format!("s{}", self.next() % 2),
            subject,
            cursor,
            newest_first: self.one_in(2),
            limit: usize::from(self.next() % 8),
        }
    }
}
