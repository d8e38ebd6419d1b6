use super::*;

#[test]
fn models_are_found_by_the_names_the_driver_gives() {
    let check = |name: &str, found: Option<&str>| {
        assert_eq!(find(name).map(|model| model.name), found, "{name}");
    };
    check("NVIDIA H200", Some("H200"));
    check("NVIDIA H200 NVL", Some("H200 NVL"));
    check("NVIDIA H100 80GB HBM3", Some("H100 80GB HBM3"));
    check("NVIDIA A100-SXM4-40GB", Some("A100-SXM4-40GB"));
    check("Tesla V100-SXM2-32GB", Some("V100-SXM2-32GB"));
    check("NVIDIA H200 MIG 1g.18gb", None);
    check("NVIDIA L4000", None);
    check("", None);
}

#[test]
fn every_range_is_one() {
    let mut names = std::collections::BTreeSet::new();
    for model in MODELS {
        assert!(names.insert(model.name), "{} is there twice", model.name);
        let ranges = [
            Some(model.device_to_device_gb_per_s()),
            Some(model.host_gb_per_s(None, None)),
            model.fp32(),
            model.bf16(),
        ];
        for range in ranges.into_iter().flatten() {
            assert!(0.0 < range.low && range.low < range.high, "{}: {range:?}", model.name);
        }
    }
}

#[test]
fn an_h200_must_copy_near_what_a_tuned_copy_reaches() {
    let expected = find("NVIDIA H200").unwrap().device_to_device_gb_per_s();
    assert!(expected.low < 4300.0 && 3800.0 < expected.low && 4300.0 < expected.high);
}

#[test]
fn the_slot_lowers_what_is_expected_of_the_bus() {
    let check = |generation, width, low: f64, high: f64| {
        let found = find("NVIDIA H200").unwrap().host_gb_per_s(generation, width);
        assert_eq!((found.low, found.high), (low, high), "{generation:?} x{width:?}");
    };
    check(None, None, 35.2, 64.0);
    check(Some(5), Some(16), 35.2, 64.0);
    check(Some(4), Some(16), 17.6, 32.0);
    check(Some(5), Some(8), 17.6, 32.0);
    // What the driver cannot mean.
    check(Some(99), Some(99), 35.2, 64.0);
    check(Some(0), Some(0), 0.1, 0.25);
}
