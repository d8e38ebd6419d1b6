use super::*;

const GIB: u64 = 1 << 30;

#[test]
fn all_memory_is_never_taken() {
    let check = |free: u64, percent: u32, taken: u64| {
        assert_eq!(budget(free, percent), taken, "{percent} % of {free}");
    };
    check(140 * GIB, 100, 140 * GIB - LEFT_FREE);
    check(10_000, 1, 0);
    check(100 * GIB, 50, 50 * GIB);
    check(LEFT_FREE, 100, 0);
    check(0, 100, 0);
    check(u64::MAX, 100, u64::MAX - LEFT_FREE);
}

#[test]
fn the_passes_walk_a_bit_through_every_place_of_a_word() {
    let all: Vec<_> = (0..PASSES).map(pattern).collect();
    assert_eq!((all[0].kind, all[1].kind, all[66].kind), (1, 2, 2));
    assert_ne!(all[1], all[66], "the two streams differ");
    let walks: Vec<u64> = all.iter().filter(|pattern| pattern.kind == 0).map(|p| p.seed).collect();
    assert_eq!(walks, (0..64).collect::<Vec<_>>());
    assert_eq!(all[0].inverse().inverse(), all[0]);
}

#[test]
fn the_first_wrong_word_is_found_in_the_memory_as_a_whole() {
    let mut found = Found::default();
    let chunks = [(0x7000_0000, 4096), (0x9000_0000, 4096)];
    found.add(&[0, u64::MAX, 0, 0, u64::MAX, 0], &chunks, pattern(0));
    assert_eq!(found, Found::default());
    found.add(&[0, u64::MAX, 0, 2, 3, 0b101], &chunks, pattern(2));
    found.add(&[1, 0, 0b10, 0, u64::MAX, 0], &chunks, pattern(3));
    assert_eq!((found.wrong_words, found.wrong_bits), (3, 0b111));
    let first = found.first.unwrap();
    assert_eq!((first.address, first.offset), (0x9000_0018, 4096 + 24));
    assert_eq!(first.pattern, "walking bit 1 of 64");
}

#[test]
fn a_word_that_was_not_kept_fails_the_gpu() {
    let well =
        Found { tested_bytes: GIB, free_bytes: GIB, passes: 67, seconds: 1.0, ..Found::default() };
    let gpu = judge(&well, GpuDiagnosis::default());
    assert!(
        gpu.passed && gpu.message.starts_with("1.0 GiB kept every pattern, 67 of 67"),
        "{gpu:?}"
    );

    let first = Some(FirstWrong { address: 0x10, offset: 16, pattern: "noise".to_owned() });
    let bad = Found { wrong_words: 1, wrong_bits: 1 << 5, first, ..well.clone() };
    let gpu = judge(&bad, GpuDiagnosis::default());
    assert!(!gpu.passed && gpu.message.contains("byte 16 of the tested memory"), "{}", gpu.message);
    assert_eq!(gpu.words["memory_wrong_bits"], "0x0000000000000020");

    let nothing = Found { tested_bytes: 0, free_bytes: 100 << 20, ..well };
    let gpu = judge(&nothing, GpuDiagnosis::default());
    assert!(!gpu.passed && gpu.message.contains("only 100 MiB"), "{}", gpu.message);
}
