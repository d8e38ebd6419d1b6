//! The compute test: matrix products whose hash is known. A hash that differs is silent corruption.

use crate::diagnose::cuda::{Buffer, CudaError, Gpu};
use crate::diagnose::reference::{EDGE, EDGE_SMALL, Kind, hash};
use crate::diagnose::worker::Share;
use crate::diagnose::{GpuDiagnosis, best_and_median, model};
use std::collections::BTreeMap;

/// How many different wrong hashes are told; a broken GPU may give another with every run.
const WRONG_HASHES_MAX: usize = 8;

/// What one kind of product gave on one GPU.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tally {
    pub(super) kind: Kind,
    /// Of the small product: what the GPU made, and what a CPU makes.
    pub(super) small: (u64, u64),
    /// How often each hash of the large product was seen.
    pub(super) hashes: BTreeMap<u64, u32>,
    /// The first run, counted from 1, whose hash was not the known one.
    pub(super) first_wrong_run: Option<u32>,
    /// Seconds of each.
    pub(super) times: Vec<f64>,
}

pub(super) fn run(
    gpu: &Gpu,
    runs: u32,
    inject_bit_flip: bool,
    share: &Share<'_>,
) -> Result<Vec<Tally>, CudaError> {
    let kinds: &[Kind] = if gpu.has_bf16() { &[Kind::F32, Kind::Bf16] } else { &[Kind::F32] };
    let mut tallies = Vec::new();
    for (kind, part) in kinds.iter().copied().zip(0_u32..) {
        let product = Product::new(gpu, kind, EDGE_SMALL)?;
        let small = (product.make()?.1, hash(kind, EDGE_SMALL));
        drop(product);
        let mut tally = Tally {
            kind,
            small,
            hashes: BTreeMap::new(),
            first_wrong_run: None,
            times: Vec::new(),
        };
        let product = Product::new(gpu, kind, EDGE)?;
        for run in 0..runs {
            let done = (f64::from(part) + f64::from(run) / f64::from(runs)) / kinds.len() as f64;
            share.at(done, || format!("{} product {} of {runs}", kind.as_str(), run + 1));
            let spoil = inject_bit_flip && run == runs / 2;
            if spoil {
                product.spoil()?;
            }
            let (seconds, hash) = product.make()?;
            if spoil {
                // The same bit again: the operand is as it was.
                product.spoil()?;
            }
            tally.times.push(seconds);
            *tally.hashes.entry(hash).or_default() += 1;
            if hash != kind.known() {
                tally.first_wrong_run.get_or_insert(run + 1);
            }
        }
        tallies.push(tally);
    }
    Ok(tallies)
}

/// Two operands and their product, on a GPU.
pub(super) struct Product<'gpu> {
    gpu: &'gpu Gpu,
    kind: Kind,
    edge: u32,
    a: Buffer<'gpu>,
    b: Buffer<'gpu>,
    c: Buffer<'gpu>,
    sum: Buffer<'gpu>,
}

impl<'gpu> Product<'gpu> {
    /// Draws the operands.
    pub(super) fn new(gpu: &'gpu Gpu, kind: Kind, edge: u32) -> Result<Self, CudaError> {
        let count = u64::from(edge) * u64::from(edge);
        let (left, right) = kind.seeds();
        let len = match kind {
            Kind::F32 => count * 4,
            Kind::Bf16 => count * 2,
        };
        let (a, b) = (gpu.allocate(len)?, gpu.allocate(len)?);
        for (operand, seed) in [(&a, left), (&b, right)] {
            match kind {
                Kind::F32 => gpu.generate_f32(operand, count, seed)?,
                Kind::Bf16 => gpu.generate_bf16(operand, count, seed)?,
            }
        }
        let (c, sum) = (gpu.allocate(count * 4)?, gpu.allocate(8)?);
        Ok(Self { gpu, kind, edge, a, b, c, sum })
    }

    /// Multiplies once, without waiting.
    pub(super) fn multiply(&self) -> Result<(), CudaError> {
        match self.kind {
            Kind::F32 => self.gpu.product_f32(&self.a, &self.b, &self.c, self.edge),
            Kind::Bf16 => self.gpu.product_bf16(&self.a, &self.b, &self.c, self.edge),
        }
    }

    /// The hash of the product that was made last.
    pub(super) fn hash(&self) -> Result<u64, CudaError> {
        self.gpu.set(&self.sum, 0)?;
        self.gpu.hash_words(&self.c, u64::from(self.edge) * u64::from(self.edge), &self.sum)?;
        Ok(self.gpu.read_words(&self.sum, 1)?.first().copied().unwrap_or_default())
    }

    /// Multiplies once: seconds, and the hash. What was there before is wiped, so that a product that was
    /// not made is not taken for the last one.
    pub(super) fn make(&self) -> Result<(f64, u64), CudaError> {
        self.gpu.set(&self.c, 0xff)?;
        let seconds = self.gpu.timed(|| self.multiply())?;
        Ok((seconds, self.hash()?))
    }

    /// Flips one bit of an operand, as a fault would.
    pub(super) fn spoil(&self) -> Result<(), CudaError> {
        // A bit of the upper half of a word: of the fraction of a float, and of the second of two bfloat16.
        self.gpu.flip_bit(&self.a, self.a.len() / 8, 18)
    }

    /// Operations of one product.
    pub(super) fn operations(&self) -> f64 {
        2.0 * f64::from(self.edge).powi(3)
    }
}

/// What most runs of all GPUs agree on, by kind.
pub(super) fn majorities(all: &[Vec<Tally>]) -> BTreeMap<Kind, u64> {
    let mut counts: BTreeMap<Kind, BTreeMap<u64, u64>> = BTreeMap::new();
    for tally in all.iter().flatten() {
        for (hash, count) in &tally.hashes {
            *counts.entry(tally.kind).or_default().entry(*hash).or_default() += u64::from(*count);
        }
    }
    counts
        .into_iter()
        .filter_map(|(kind, hashes)| {
            let (hash, _) = hashes.into_iter().max_by_key(|(_, count)| *count)?;
            Some((kind, hash))
        })
        .collect()
}

/// The verdict on one GPU, knowing what all of them gave.
pub(super) fn judge(
    tallies: &[Tally],
    majorities: &BTreeMap<Kind, u64>,
    mut gpu: GpuDiagnosis,
) -> GpuDiagnosis {
    let mut complaints = Vec::new();
    let mut well = Vec::new();
    let expected = model::find(&gpu.name);
    for tally in tallies {
        let word = tally.kind.as_str();
        let runs: u32 = tally.hashes.values().sum();
        let wrong = runs - tally.hashes.get(&tally.kind.known()).copied().unwrap_or_default();
        gpu.figure(&format!("{word}_runs"), f64::from(runs));
        gpu.figure(&format!("{word}_wrong_runs"), f64::from(wrong));
        gpu.words.insert(format!("{word}_hash"), format!("{:016x}", tally.kind.known()));
        if let Some((best, median)) = best_and_median(&tally.times) {
            let tflops = |seconds: f64| 2.0 * f64::from(EDGE).powi(3) / seconds / 1e12;
            gpu.figure(&format!("{word}_tflops"), tflops(best));
            gpu.figure(&format!("{word}_median_tflops"), tflops(median));
            well.push(format!("{word} {:.1} TFLOP/s", tflops(best)));
        }
        let range = expected.and_then(|model| match tally.kind {
            Kind::F32 => model.fp32(),
            Kind::Bf16 => model.bf16(),
        });
        if let Some(range) = range {
            gpu.expected.insert(format!("{word}_tflops"), range);
        }
        complaints.extend(complaint(tally, majorities.get(&tally.kind).copied(), runs, wrong));
        if 0 < wrong {
            let odd = tally.hashes.iter().filter(|(hash, _)| **hash != tally.kind.known());
            let list: Vec<_> = odd
                .take(WRONG_HASHES_MAX)
                .map(|(hash, count)| format!("{hash:016x} x{count}"))
                .collect();
            gpu.words.insert(format!("{word}_wrong_hashes"), list.join(", "));
        }
    }
    let runs = tallies.first().map_or(0, |tally| tally.hashes.values().sum());
    let well = format!("{runs} runs, each bit for bit as it must be; {}", well.join(", "));
    gpu.judged(complaints, &well)
}

fn complaint(tally: &Tally, majority: Option<u64>, runs: u32, wrong: u32) -> Option<String> {
    let word = tally.kind.as_str();
    let (made, reference) = tally.small;
    if made != reference {
        return Some(format!(
            "the small {word} product has the hash {made:016x} and a CPU's has {reference:016x}: silent \
             corruption"
        ));
    }
    if wrong == 0 {
        return None;
    }
    let first = tally.first_wrong_run.unwrap_or_default();
    if majority.is_some_and(|majority| majority != tally.kind.known()) {
        // Most runs agree on another hash than a CPU: a fault that is always there, or a driver that
        // compiles the kernel wrongly. Either way nothing computed here can be trusted.
        return Some(format!(
            "{wrong} of {runs} {word} products differ from the known hash, and most agree with each other: \
             a fault that is always there, or the driver's compiler"
        ));
    }
    Some(format!(
        "{wrong} of {runs} {word} products are wrong, the first in run {first}: silent corruption"
    ))
}

#[cfg(test)]
mod tests;
