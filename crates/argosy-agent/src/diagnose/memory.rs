//! The memory test: patterns over most of the free memory, each with its inverse.
//!
//! The whole memory is written before any of it is read again: a cell must keep what it was given while
//! all its neighbours change.

use crate::diagnose::GpuDiagnosis;
use crate::diagnose::cuda::{Buffer, CudaError, Gpu, Pattern};
use crate::diagnose::worker::{Share, Stopwatch};

/// What is left to the driver and to whoever starts while we test.
const LEFT_FREE: u64 = 256 << 20;

/// Memory is taken in pieces: an allocation of all of it fails where a few of them do not.
const CHUNK_MAX: u64 = 1 << 30;
/// Smaller pieces than this are left alone.
const CHUNK_MIN: u64 = 32 << 20;
/// The driver hands memory out in steps of this.
const STEP: u64 = 2 << 20;

/// Its own address first, which finds the most in one pass; then noise; then one bit walking through
/// every place of a word; then other noise.
const PASSES: u32 = 67;

/// What to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    pub(super) seconds: u32,
    pub(super) fraction_percent: u32,
    pub(super) inject_bit_flip: bool,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Found {
    pub(super) tested_bytes: u64,
    pub(super) free_bytes: u64,
    pub(super) passes: u32,
    pub(super) seconds: f64,
    /// Read and written, all passes together.
    pub(super) moved_bytes: u64,
    pub(super) wrong_words: u64,
    pub(super) first: Option<FirstWrong>,
    pub(super) wrong_bits: u64,
}

/// The first word that was wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FirstWrong {
    pub(super) address: u64,
    /// In the memory that was tested.
    pub(super) offset: u64,
    pub(super) pattern: String,
}

pub(super) fn run(gpu: &Gpu, order: Order, share: &Share<'_>) -> Result<Found, CudaError> {
    let watch = Stopwatch::start();
    let free_bytes = gpu.memory_free()?;
    let report = gpu.allocate(STEP)?;
    let chunks = take(gpu, budget(gpu.memory_free()?, order.fraction_percent))?;
    let tested_bytes = chunks.iter().map(Buffer::len).sum();
    let mut found = Found { tested_bytes, free_bytes, ..Found::default() };
    let clean: Vec<u64> = chunks.iter().flat_map(|_| [0, u64::MAX, 0]).collect();
    for number in 0..PASSES {
        let pattern = pattern(number);
        let spent = watch.seconds() / f64::from(order.seconds);
        if chunks.is_empty() || (0 < number && 1.0 <= spent) {
            break;
        }
        share.at(spent.max(f64::from(number) / f64::from(PASSES)), || describe(pattern));
        gpu.write_words(&report, &clean)?;
        for chunk in &chunks {
            gpu.fill(chunk, pattern)?;
        }
        if order.inject_bit_flip
            && number == 0
            && let Some(chunk) = chunks.get(chunks.len() / 2)
        {
            gpu.flip_bit(chunk, chunk.len() / 8, 5)?;
        }
        for pattern in [pattern, pattern.inverse()] {
            for (chunk, at) in chunks.iter().zip(0_u64..) {
                gpu.check(chunk, pattern, &report, at * 3)?;
            }
        }
        let words = gpu.read_words(&report, clean.len())?;
        let places: Vec<_> = chunks.iter().map(|chunk| (chunk.address(), chunk.len())).collect();
        found.add(&words, &places, pattern);
        found.passes += 1;
        // Written once; read and written twice.
        found.moved_bytes += tested_bytes * 5;
    }
    found.seconds = watch.seconds();
    Ok(found)
}

/// How much to take.
fn budget(free: u64, fraction_percent: u32) -> u64 {
    (free / 100 * u64::from(fraction_percent)).min(free.saturating_sub(LEFT_FREE))
}

fn take(gpu: &Gpu, mut budget: u64) -> Result<Vec<Buffer<'_>>, CudaError> {
    let mut chunks = Vec::new();
    let mut chunk_max = CHUNK_MAX;
    while CHUNK_MIN <= budget && CHUNK_MIN <= chunk_max {
        let len = budget.min(chunk_max) / STEP * STEP;
        match gpu.allocate(len) {
            Ok(chunk) => {
                chunks.push(chunk);
                budget -= len;
            }
            Err(error) if error.out_of_memory() => chunk_max /= 2,
            Err(error) => return Err(error),
        }
    }
    Ok(chunks)
}

fn pattern(number: u32) -> Pattern {
    let (kind, seed) = match number {
        0 => (1, 0),
        1 => (2, 1),
        last if last == PASSES - 1 => (2, 2),
        walk => (0, u64::from(walk - 2)),
    };
    Pattern { kind, seed, flip: 0 }
}

fn describe(pattern: Pattern) -> String {
    match pattern.kind {
        0 => format!("walking bit {} of 64", pattern.seed + 1),
        1 => "address in each cell".to_owned(),
        _ => format!("pseudo-random stream {}", pattern.seed),
    }
}

impl Found {
    /// Three words for each chunk: how many were wrong, the first, and the bits.
    fn add(&mut self, words: &[u64], chunks: &[(u64, u64)], pattern: Pattern) {
        let mut offset = 0;
        for (report, (address, len)) in words.chunks_exact(3).zip(chunks) {
            if let [wrong, index, bits] = report
                && 0 < *wrong
            {
                self.wrong_words = self.wrong_words.saturating_add(*wrong);
                self.wrong_bits |= bits;
                let at = index.saturating_mul(8);
                self.first.get_or_insert_with(|| FirstWrong {
                    address: address.saturating_add(at),
                    offset: at.saturating_add(offset),
                    pattern: describe(pattern),
                });
            }
            offset += len;
        }
    }
}

/// The verdict.
pub(super) fn judge(found: &Found, mut gpu: GpuDiagnosis) -> GpuDiagnosis {
    let gib = |bytes: u64| bytes as f64 / f64::from(1_u32 << 30);
    gpu.figure("memory_tested_gib", gib(found.tested_bytes));
    gpu.figure("memory_free_gib", gib(found.free_bytes));
    gpu.figure("memory_passes", f64::from(found.passes));
    gpu.figure("memory_wrong_words", found.wrong_words as f64);
    if 0.0 < found.seconds {
        gpu.figure("memory_test_gb_per_s", found.moved_bytes as f64 / 1e9 / found.seconds);
    }
    let mut complaints = Vec::new();
    if found.tested_bytes == 0 {
        complaints.push(format!(
            "only {:.0} MiB of memory are free: nothing could be tested",
            gib(found.free_bytes) * 1024.0
        ));
    }
    if let Some(first) = &found.first {
        gpu.words.insert("memory_first_wrong_address".to_owned(), format!("{:#x}", first.address));
        gpu.words.insert("memory_first_wrong_offset".to_owned(), first.offset.to_string());
        gpu.words.insert("memory_wrong_bits".to_owned(), format!("{:#018x}", found.wrong_bits));
        complaints.push(format!(
            "{} words did not keep what was written; the first at byte {} of the tested memory (address \
             {:#x}, pattern: {}), wrong bits {:#018x}",
            found.wrong_words, first.offset, first.address, first.pattern, found.wrong_bits
        ));
    }
    let well = format!(
        "{:.1} GiB kept every pattern, {} of {PASSES} passes",
        gib(found.tested_bytes),
        found.passes
    );
    gpu.judged(complaints, &well)
}

#[cfg(test)]
mod tests;
