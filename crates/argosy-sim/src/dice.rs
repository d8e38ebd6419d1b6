//! Chance by seed: the same numbers on any machine and in any release.

/// A source of numbers. Each part of the world has its own, so that one more draw here changes nothing there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dice(u64);

impl Dice {
    /// The numbers of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The numbers of a part of the world, by its name.
    #[must_use]
    pub fn part(seed: u64, name: &str) -> Self {
        // FNV-1a: `DefaultHasher` may change between Rust releases, and replays must not.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(mix(seed ^ hash))
    }

    /// Any number. SplitMix64.
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number from 0 to `end`, without it; 0 if there is none.
    pub fn below(&mut self, end: u64) -> u64 {
        // The high half of the product: no modulo, and a bias that nobody could measure.
        let product = u128::from(self.any()) * u128::from(end);
        u64::try_from(product >> 64).unwrap_or(0)
    }

    /// A number from 0 to 1, without 1.
    pub fn share(&mut self) -> f64 {
        (self.any() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Whether something of this probability happens.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.share() < probability
    }

    /// One of them.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(usize::try_from(self.below(of.len() as u64)).unwrap_or(0))
    }

    /// How long until something happens that happens once in `mean` on average. Exponential.
    pub fn wait(&mut self, mean: f64) -> f64 {
        // 1 - share is never 0.
        -ln(1.0 - self.share()) * mean
    }

    /// Around `mean`, about two thirds within `deviation` and all within six. Normal, as near as twelve shares
    /// add up to it.
    pub fn around(&mut self, mean: f64, deviation: f64) -> f64 {
        let sum: f64 = (0..12).map(|_| self.share()).sum();
        mean + deviation * (sum - 6.0)
    }
}

/// The natural logarithm of a number from 0 to infinity, without both, by nothing but what every machine rounds
/// the same: `f64::ln` is the platform's, and its last bit is another elsewhere.
pub fn ln(x: f64) -> f64 {
    let (mut x, mut halvings) = (x, 0.0);
    while 1.5 < x {
        (x, halvings) = (x / 2.0, halvings + 1.0);
    }
    while x < 0.75 {
        (x, halvings) = (x * 2.0, halvings - 1.0);
    }
    // ln x = 2 atanh((x - 1) / (x + 1)), whose terms shrink 25-fold and more from one to the next.
    let s = (x - 1.0) / (x + 1.0);
    let terms = (0..13).rev().map(|nth| 1.0 / f64::from(2 * nth + 1));
    let series = terms.fold(0.0, |sum, term| sum * s * s + term);
    halvings * std::f64::consts::LN_2 + 2.0 * s * series
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests;
