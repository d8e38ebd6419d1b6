use super::*;

/// `known*97 1*3` is 97 runs with the known hash and three with the hash 1.
fn tally(kind: Kind, row: &str) -> Tally {
    let mut hashes = BTreeMap::new();
    for part in row.split_whitespace() {
        let (hash, count) = part.split_once('*').unwrap();
        let hash = if hash == "known" { kind.known() } else { hash.parse().unwrap() };
        hashes.insert(hash, count.parse().unwrap());
    }
    let wrong = hashes.keys().any(|hash| *hash != kind.known());
    Tally {
        kind,
        small: (7, 7),
        hashes,
        first_wrong_run: wrong.then_some(51),
        times: vec![0.003, 0.004],
    }
}

fn verdict(own: &str, other: &str) -> GpuDiagnosis {
    let all = [vec![tally(Kind::F32, own)], vec![tally(Kind::F32, other)]];
    judge(&all[0], &majorities(&all), GpuDiagnosis::default())
}

#[test]
fn a_minority_hash_is_silent_corruption() {
    let check = |own: &str, other: &str, passed: bool, said: &str| {
        let gpu = verdict(own, other);
        assert_eq!(gpu.passed, passed, "{own} / {other}: {}", gpu.message);
        assert!(gpu.message.contains(said), "{own} / {other}: {}", gpu.message);
    };
    check(
        "known*100",
        "known*100",
        true,
        "100 runs, each bit for bit as it must be; fp32 45.8 TFLOP/s",
    );
    check(
        "known*99 1*1",
        "known*100",
        false,
        "1 of 100 fp32 products are wrong, the first in run 51",
    );
    check("1*100", "known*1000", false, "100 of 100 fp32 products are wrong");
    check("1*100", "1*100", false, "a fault that is always there, or the driver's compiler");
    // Another GPU's fault is not this one's.
    check("known*100", "1*1", true, "100 runs");
}

#[test]
fn a_small_product_that_differs_from_a_cpu_fails() {
    let mut own = tally(Kind::Bf16, "known*10");
    own.small = (1, 2);
    let gpu = judge(&[own], &BTreeMap::new(), GpuDiagnosis::default());
    assert!(
        !gpu.passed && gpu.message.contains("the small bf16_tensor product"),
        "{}",
        gpu.message
    );
}

#[test]
fn a_gpu_that_gives_another_hash_each_time_does_not_fill_the_report() {
    let mut own = tally(Kind::F32, "known*1");
    own.hashes.extend((0..5000).map(|hash| (hash, 1)));
    let gpu = judge(&[own], &BTreeMap::new(), GpuDiagnosis::default());
    assert!(!gpu.passed);
    assert!(gpu.words["fp32_wrong_hashes"].len() < 200);
}

#[test]
fn a_slow_gpu_of_a_known_model_fails() {
    let check = |seconds: f64, passed: bool| {
        let mut own = tally(Kind::F32, "known*10");
        own.times = vec![seconds];
        let gpu = GpuDiagnosis { name: "NVIDIA H200".to_owned(), ..GpuDiagnosis::default() };
        let gpu = judge(&[own], &BTreeMap::new(), gpu);
        assert_eq!(gpu.passed, passed, "{}", gpu.message);
    };
    check(0.003, true);
    check(0.010, false);
}
