//! The numbers of `kernels.cu`, made on a CPU: what a product must be, bit for bit.
//!
//! A float's product is one chain of fused multiply-adds, which IEEE 754 defines to the last bit; the
//! products of bfloat16 are sums of whole numbers far below 2^24, which no order of adding can change. So
//! these hashes hold for every GPU there is and will be.

/// The kinds of product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Floats, on the ordinary units.
    F32,
    /// bfloat16, on the tensor cores.
    Bf16,
}

/// The edge of the matrices that a CPU can multiply while somebody waits.
pub(super) const EDGE_SMALL: u32 = 256;

/// The edge of the matrices of each run: every multiprocessor of the largest GPU has work.
pub(super) const EDGE: u32 = 4096;

impl Kind {
    /// Its word in figures.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::F32 => "fp32",
            Self::Bf16 => "bf16_tensor",
        }
    }

    /// The streams that the two operands are drawn from.
    pub(super) fn seeds(self) -> (u64, u64) {
        match self {
            Self::F32 => (1, 2),
            Self::Bf16 => (3, 4),
        }
    }

    /// The hash of the product of edge `EDGE`, which takes a CPU a while: `scripts/ptx --known` made it.
    pub(super) fn known(self) -> u64 {
        match self {
            Self::F32 => 0xbd67_d264_db07_436e,
            Self::Bf16 => 0x367c_2308_0b0f_b8f8,
        }
    }
}

/// The hash of the product of this kind and edge, made here.
pub(super) fn hash(kind: Kind, edge: u32) -> u64 {
    let edge = edge as usize;
    let (left, right) = kind.seeds();
    let words = match kind {
        Kind::F32 => {
            let (a, b) = (floats(left, edge * edge), floats(right, edge * edge));
            product_f32(&a, &b, edge)
        }
        Kind::Bf16 => {
            let (a, b) = (wholes(left, edge * edge), wholes(right, edge * edge));
            product_wholes(&a, &b, edge)
        }
    };
    words.iter().zip(0_u64..).fold(0, |sum, (value, at)| {
        sum.wrapping_add(mix((at << 32) ^ u64::from(value.to_bits()) ^ 0x6a09_e667_f3bc_c909))
    })
}

/// The finalizer of splitmix64.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn draw(seed: u64, index: u64) -> u64 {
    mix(seed.wrapping_add((index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// 24 bits, in [-1, 1): a float holds them.
fn floats(seed: u64, count: usize) -> Vec<f32> {
    let one = |index| {
        let whole = (draw(seed, index) >> 40) as i32 - (1 << 23);
        whole as f32 * (1.0 / 8_388_608.0)
    };
    (0..count as u64).map(one).collect()
}

/// Whole numbers from -63 to 63.
fn wholes(seed: u64, count: usize) -> Vec<i32> {
    (0..count as u64).map(|index| ((draw(seed, index) >> 33) % 127) as i32 - 63).collect()
}

/// Row by row; each element is one chain with k going up.
fn product_f32(a: &[f32], b: &[f32], edge: usize) -> Vec<f32> {
    let mut c = Vec::with_capacity(edge * edge);
    for row in a.chunks_exact(edge) {
        let mut sums = vec![0.0_f32; edge];
        for (left, others) in row.iter().zip(b.chunks_exact(edge)) {
            for (sum, right) in sums.iter_mut().zip(others) {
                *sum = left.mul_add(*right, *sum);
            }
        }
        c.extend(sums);
    }
    c
}

/// `b` is column by column. The sums are whole and small, so a float holds them exactly.
fn product_wholes(a: &[i32], b: &[i32], edge: usize) -> Vec<f32> {
    let mut c = Vec::with_capacity(edge * edge);
    for row in a.chunks_exact(edge) {
        for column in b.chunks_exact(edge) {
            let sum: i32 = row.iter().zip(column).map(|(left, right)| left * right).sum();
            c.push(sum as f32);
        }
    }
    c
}

#[cfg(test)]
mod tests;
