use super::{Dice, ln};

#[test]
fn the_logarithm_is_the_logarithm() {
    for exponent in -53..60 {
        for part in 0..64 {
            let x = (1.0 + f64::from(part) / 64.0) * 2.0_f64.powi(exponent);
            let (ours, platform) = (ln(x), x.ln());
            assert!(
                (ours - platform).abs() <= platform.abs() * 1e-14 + 1e-15,
                "{x}: {ours} {platform}"
            );
        }
    }
}

#[test]
fn what_is_drawn_has_the_mean_and_the_spread_that_were_asked_for() {
    let mut dice = Dice::new(1);
    let count = 200_000;
    let mean_of =
        |draw: &mut dyn FnMut() -> f64| (0..count).map(|_| draw()).sum::<f64>() / f64::from(count);
    let waited = mean_of(&mut || dice.wait(3.0));
    assert!((waited - 3.0).abs() < 0.05, "{waited}");
    let around = mean_of(&mut || dice.around(10.0, 2.0));
    assert!((around - 10.0).abs() < 0.05, "{around}");
    let spread = mean_of(&mut || (dice.around(10.0, 2.0) - 10.0).powi(2)).sqrt();
    assert!((spread - 2.0).abs() < 0.05, "{spread}");
}

#[test]
fn numbers_never_change() {
    let mut dice = Dice::part(1, "fault");
    let drawn = [dice.wait(60.0), dice.around(100.0, 10.0), dice.share()].map(f64::to_bits);
    let known = [4_633_104_206_014_597_620, 4_636_807_619_050_977_915, 4_606_964_695_895_637_518];
    assert_eq!(drawn, known, "a seed must tell the same story in any release");
}
