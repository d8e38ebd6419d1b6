//! What machine types cost, and what GPUs are in them: list prices, in US dollars an hour.

/// What is known of a machine type beside its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tariff {
    /// On demand.
    pub(super) price_per_hour: f64,
    /// The GPU, by a name that fake GPUs have; empty without any.
    pub(super) gpu_model: &'static str,
}

/// The types of the built-in catalog, as their providers priced them in 2025.
const KNOWN: [(&str, f64, &str); 15] = [
    ("n1-standard-4", 0.19, ""),
    ("n1-standard-8", 0.38, ""),
    ("n1-highmem-8", 0.47, ""),
    ("a2-highgpu-1g", 3.67, "A100"),
    ("a2-highgpu-8g", 29.39, "A100"),
    ("a3-highgpu-8g", 88.25, "H100"),
    ("m5.xlarge", 0.192, ""),
    ("m5.2xlarge", 0.384, ""),
    ("g5.xlarge", 1.006, "L4"),
    ("p4d.24xlarge", 32.77, "A100"),
    ("p5.48xlarge", 98.32, "H100"),
    ("gpu_1x_a10", 0.75, "L4"),
    ("gpu_1x_h100_pcie", 2.49, "H100"),
    ("gpu_8x_a100", 10.32, "A100"),
    ("gpu_8x_h100_sxm5", 23.92, "H100"),
];

/// A type that nobody priced costs what its parts do.
const PER_CPU: f64 = 0.048;
/// See `PER_CPU`.
const PER_GPU: f64 = 4.0;

/// What part of the price on demand a spot machine costs.
const SPOT_SHARE: f64 = 1.0 / 3.0;

impl Tariff {
    pub(super) fn of(machine_type: &str, cpus: u32, gpus: u32) -> Self {
        let known = KNOWN.iter().find(|(name, ..)| *name == machine_type);
        if let Some(&(_, price_per_hour, gpu_model)) = known {
            return Self { price_per_hour, gpu_model };
        }
        let price_per_hour = f64::from(cpus) * PER_CPU + f64::from(gpus) * PER_GPU;
        Self { price_per_hour, gpu_model: if gpus == 0 { "" } else { "H100" } }
    }

    pub(super) fn spot_price_per_hour(&self) -> f64 {
        // To a tenth of a cent, as providers quote it.
        (self.price_per_hour * SPOT_SHARE * 1_000.0).round() / 1_000.0
    }
}
