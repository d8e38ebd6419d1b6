use super::*;

#[test]
fn the_hashes_of_the_small_products_are_those_of_another_program() {
    // Made by a C program with its own loops; and by the kernels themselves: `scripts/ptx --on-cpu`.
    assert_eq!(hash(Kind::F32, EDGE_SMALL), 0x7e33_c959_97a7_8901);
    assert_eq!(hash(Kind::Bf16, EDGE_SMALL), 0xfa9f_d5ec_4383_0271);
}

#[test]
fn the_generators_keep_to_their_ranges_and_use_them() {
    let floats = floats(1, 100_000);
    assert!(floats.iter().all(|value| (-1.0..1.0).contains(value)));
    assert!(
        floats.iter().any(|value| *value < -0.999) && floats.iter().any(|value| 0.999 < *value)
    );
    let wholes = wholes(3, 100_000);
    assert_eq!((wholes.iter().min(), wholes.iter().max()), (Some(&-63), Some(&63)));
}

#[test]
fn one_bit_of_one_operand_changes_the_product() {
    let edge = 128;
    let product = |flip: Option<(usize, u32)>| {
        let mut a = floats(1, edge * edge);
        if let Some((at, bit)) = flip {
            a[at] = f32::from_bits(a[at].to_bits() ^ (1 << bit));
        }
        product_f32(&a, &floats(2, edge * edge), edge)
    };
    let well = product(None);
    for (at, bit) in [(0, 22), (77, 13), (edge * edge - 1, 31), (4000, 9)] {
        assert!(well != product(Some((at, bit))), "bit {bit} of word {at}");
    }
}

#[test]
fn no_sum_of_whole_numbers_can_leave_what_a_float_counts() {
    // Six sigma and then some; the largest of the 4096 product is 482,251.
    let sigma = f64::from(EDGE).sqrt() * 63.0 * 64.0 / 3.0;
    assert!(40.0 * sigma < f64::from(1 << 24));
}
