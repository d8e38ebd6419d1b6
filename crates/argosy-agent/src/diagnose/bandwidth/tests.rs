use super::*;

/// An H200 that copies 4 GiB in this many milliseconds, and over the bus at this rate.
fn found(device_ms: f64, host_gb_per_s: f64, width: u32) -> Found {
    let host_len = 1_000_000_000;
    Found {
        host_len,
        host_to_device: vec![1.0 / host_gb_per_s],
        device_to_host: vec![1.0 / host_gb_per_s],
        device_len: 4 << 30,
        driver_copy: vec![device_ms / 1000.0 * 1.2],
        kernel_copy: vec![device_ms / 1000.0, device_ms / 900.0],
        link: (Some(5), Some(width)),
    }
}

#[test]
fn a_gpu_is_judged_by_what_its_model_can_do() {
    let check = |name: &str, found: &Found, passed: bool, said: &str| {
        let facts =
            Facts { pcie_generation_max: Some(5), pcie_width_max: Some(16), ..Facts::default() };
        let gpu = GpuDiagnosis { name: name.to_owned(), ..GpuDiagnosis::default() };
        let gpu = judge(found, &facts, gpu);
        assert_eq!(gpu.passed, passed, "{}", gpu.message);
        assert!(gpu.message.contains(said), "{}", gpu.message);
    };
    check("NVIDIA H200", &found(2.0, 55.0, 16), true, "device to device 4295 GB/s");
    check("NVIDIA H200", &found(4.0, 55.0, 16), false, "device_to_device_gb_per_s is 2147");
    check("NVIDIA H200", &found(2.0, 26.0, 16), false, "host_to_device_gb_per_s is 26, below 35.2");
    check("NVIDIA H200", &found(2.0, 55.0, 8), false, "the bus has 8 of 16 lanes");
    check("NVIDIA H200", &found(1.0, 55.0, 16), true, "doubtful");
    check("NVIDIA X1", &found(400.0, 1.0, 16), true, "no expected range is known for this model");
}

#[test]
fn the_better_of_the_two_copies_counts() {
    let mut found = found(2.0, 55.0, 16);
    found.driver_copy = vec![0.001];
    let gpu = judge(&found, &Facts::default(), GpuDiagnosis::default());
    assert_eq!(gpu.figures["device_to_device_gb_per_s"], gpu.figures["driver_copy_gb_per_s"]);
    assert!(gpu.figures["kernel_copy_gb_per_s"] < gpu.figures["driver_copy_gb_per_s"]);
}
