//! What GPUs of known models can do, by their data sheets, and how much of it our tests must see.
//!
//! A name that is not here gets figures and no verdict about them: better silent than wrong.

use crate::diagnose::Expected;

/// What NVIDIA's data sheet says of a model: without sparsity, at boost clocks.
///
/// Sources: the data sheets "NVIDIA H200 Tensor Core GPU", "NVIDIA H100 Tensor Core GPU", "NVIDIA A100
/// Tensor Core GPU", "NVIDIA A30", "NVIDIA A40", "NVIDIA A10", "NVIDIA L40S", "NVIDIA L40", "NVIDIA L4",
/// "NVIDIA V100", "NVIDIA T4" and "NVIDIA DGX B200" (divided by its eight GPUs). Only the H200's row was
/// held against a real GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// As NVML says it, without `NVIDIA ` or `Tesla `.
    pub name: &'static str,
    /// Of the memory.
    pub memory_gb_per_s: f64,
    /// HBM, or GDDR: the latter gives part of itself to ECC.
    pub hbm: bool,
    /// Of the bus, at 16 lanes.
    pub pcie_generation: u32,
    /// Floats on the ordinary units; `None` where the power limit, not the chip, decides.
    pub fp32_tflops: Option<f64>,
    /// bfloat16 on the tensor cores; `None` where our kernel cannot say what they can do: there are none,
    /// or they need instructions of their own.
    pub bf16_tflops: Option<f64>,
    /// How much of `bf16_tflops` our kernel must reach. Hopper's own instructions are twice as fast as
    /// the ones all generations have in common, which we use.
    pub bf16_share_min: f64,
    /// The most it draws.
    pub watts: f64,
}

/// Of what the data sheet says, a copy must reach this much of the memory's bandwidth. Tuned copies reach
/// 0.86 to 0.93 with HBM; a GPU that reaches less than 0.8 has fewer channels or lower clocks.
const HBM_SHARE_MIN: f64 = 0.80;
const GDDR_SHARE_MIN: f64 = 0.65;

/// A tiled product without tricks reaches 0.6 to 0.8 of the peak. Clocks of half the boost must be seen.
const FP32_SHARE_MIN: f64 = 0.40;

/// Pinned copies reach 0.80 to 0.88 of the bus's raw rate. A link of half the width must be seen, and
/// a virtual machine's detour through the wrong socket must not.
const PCIE_SHARE_MIN: f64 = 0.55;

/// Above the data sheet by this much, a figure is doubtful: some parts boost a little higher.
const ABOVE: f64 = 1.10;

macro_rules! models {
    ($($name:literal $gb:literal $kind:ident gen $generation:literal fp32 $fp32:expr, bf16 $bf16:expr, $share:literal, $watts:literal W;)*) => {
        &[$(Model {
            name: $name,
            memory_gb_per_s: $gb,
            hbm: models!(@ $kind),
            pcie_generation: $generation,
            fp32_tflops: $fp32,
            bf16_tflops: $bf16,
            bf16_share_min: $share,
            watts: $watts,
        }),*]
    };
    (@ hbm) => { true };
    (@ gddr) => { false };
}

/// All that are known.
pub const MODELS: &[Model] = models! {
    "B200"             8000.0 hbm  gen 5 fp32 Some(75.0), bf16 None,        0.0, 1000.0 W;
    "H200"             4800.0 hbm  gen 5 fp32 Some(67.0), bf16 Some(989.5), 0.25, 700.0 W;
    "H200 NVL"         4800.0 hbm  gen 5 fp32 Some(60.0), bf16 Some(835.5), 0.25, 600.0 W;
    "H100 80GB HBM3"   3350.0 hbm  gen 5 fp32 Some(67.0), bf16 Some(989.5), 0.25, 700.0 W;
    "H100 NVL"         3900.0 hbm  gen 5 fp32 Some(60.0), bf16 Some(835.5), 0.25, 400.0 W;
    "H100 PCIe"        2000.0 hbm  gen 5 fp32 Some(51.0), bf16 Some(756.0), 0.25, 350.0 W;
    "A100-SXM4-80GB"   2039.0 hbm  gen 4 fp32 Some(19.5), bf16 Some(312.0), 0.4,  400.0 W;
    "A100-SXM4-40GB"   1555.0 hbm  gen 4 fp32 Some(19.5), bf16 Some(312.0), 0.4,  400.0 W;
    "A100 80GB PCIe"   1935.0 hbm  gen 4 fp32 Some(19.5), bf16 Some(312.0), 0.4,  300.0 W;
    "A100-PCIE-40GB"   1555.0 hbm  gen 4 fp32 Some(19.5), bf16 Some(312.0), 0.4,  250.0 W;
    "A30"               933.0 hbm  gen 4 fp32 Some(10.3), bf16 Some(165.0), 0.4,  165.0 W;
    "A40"               696.0 gddr gen 4 fp32 Some(37.4), bf16 Some(149.7), 0.4,  300.0 W;
    "A10"               600.0 gddr gen 4 fp32 None,       bf16 None,        0.0,  150.0 W;
    "L40S"              864.0 gddr gen 4 fp32 Some(91.6), bf16 Some(362.0), 0.3,  350.0 W;
    "L40"               864.0 gddr gen 4 fp32 Some(90.5), bf16 Some(181.0), 0.3,  300.0 W;
    "L4"                300.0 gddr gen 4 fp32 None,       bf16 None,        0.0,   72.0 W;
    "V100-SXM2-16GB"    900.0 hbm  gen 3 fp32 Some(15.7), bf16 None,        0.0,  300.0 W;
    "V100-SXM2-32GB"    900.0 hbm  gen 3 fp32 Some(15.7), bf16 None,        0.0,  300.0 W;
    "V100-PCIE-16GB"    900.0 hbm  gen 3 fp32 Some(14.0), bf16 None,        0.0,  250.0 W;
    "V100-PCIE-32GB"    900.0 hbm  gen 3 fp32 Some(14.0), bf16 None,        0.0,  250.0 W;
    "T4"                320.0 gddr gen 3 fp32 None,       bf16 None,        0.0,   70.0 W;
};

/// The model of a GPU, by the name the driver gives it.
pub fn find(name: &str) -> Option<&'static Model> {
    let name = name.trim();
    let name = name.strip_prefix("NVIDIA ").or_else(|| name.strip_prefix("Tesla ")).unwrap_or(name);
    MODELS.iter().find(|model| model.name == name)
}

/// Whether anything is expected of a GPU of this name.
pub fn is_known(name: &str) -> bool {
    find(name).is_some()
}

impl Model {
    /// Device to device, counting what is read and what is written.
    pub fn device_to_device_gb_per_s(&self) -> Expected {
        let share = if self.hbm { HBM_SHARE_MIN } else { GDDR_SHARE_MIN };
        range(self.memory_gb_per_s, share)
    }

    /// Each way over the bus, in a slot of this generation and width; what the slot does not say is taken
    /// as the model has it.
    pub fn host_gb_per_s(&self, generation: Option<u32>, width: Option<u32>) -> Expected {
        let generation = generation.unwrap_or(self.pcie_generation).clamp(1, self.pcie_generation);
        let width = width.unwrap_or(16).clamp(1, 16);
        // 250 MB/s a lane in the first generation, twice that with each that follows.
        let raw = 0.25 * f64::from(1_u32 << (generation - 1)) * f64::from(width);
        // The bus promises `raw` at most: nothing can be above it.
        Expected { low: round(raw * PCIE_SHARE_MIN), high: raw }
    }

    /// The float product.
    pub fn fp32(&self) -> Option<Expected> {
        self.fp32_tflops.map(|peak| range(peak, FP32_SHARE_MIN))
    }

    /// The bfloat16 product.
    pub fn bf16(&self) -> Option<Expected> {
        self.bf16_tflops.map(|peak| range(peak, self.bf16_share_min))
    }
}

fn range(peak: f64, share_min: f64) -> Expected {
    Expected { low: round(peak * share_min), high: round(peak * ABOVE) }
}

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests;
