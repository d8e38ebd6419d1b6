use super::*;

fn facts() -> Facts {
    Facts { slowdown_celsius: Some(90), sm_clock_max_mhz: Some(1980), ..Facts::default() }
}

fn load(wrong: u32) -> Load {
    Load {
        kind: Some(Kind::Bf16),
        seconds: 60.0,
        products: 1000,
        wrong,
        batches: 100,
        thirds: [500.0, 480.0, 470.0],
    }
}

fn curve(celsius: u32, mhz: u32, reasons: &[&str], samples: u32) -> Curve {
    let mut curve = Curve::default();
    for second in 0..60_u32 {
        let throttled = second < samples;
        curve.push(Point {
            seconds: f64::from(second),
            temperature_celsius: Some(celsius),
            power_watts: Some(690.0),
            sm_clock_mhz: Some(mhz),
            throttle_reasons: if throttled {
                reasons.iter().map(|reason| (*reason).to_owned()).collect()
            } else {
                Vec::new()
            },
        });
    }
    curve
}

#[test]
fn heat_slow_clocks_and_wrong_results_fail_and_a_power_limit_does_not() {
    let check = |load: &Load, curve: Curve, passed: bool, said: &str| {
        let gpu = judge(load, curve, &facts(), GpuDiagnosis::default());
        assert_eq!(gpu.passed, passed, "{}", gpu.message);
        assert!(gpu.message.contains(said), "{}", gpu.message);
    };
    check(
        &load(0),
        curve(70, 1700, &["SwPowerCap"], 60),
        true,
        "470.0 TFLOP/s, at most 70 °C and 690 W",
    );
    check(&load(0), curve(70, 700, &["SwPowerCap"], 60), true, "60 s of load");
    check(&load(0), curve(70, 700, &[], 0), false, "far below 1980 MHz, and nobody asked for that");
    check(&load(0), curve(88, 1700, &[], 0), false, "88 °C hot; it slows down at 90 °C");
    check(&load(0), curve(87, 1700, &[], 0), true, "87");
    check(
        &load(0),
        curve(80, 1700, &["HwThermalSlowdown"], 2),
        false,
        "HwThermalSlowdown in 2 of 60",
    );
    check(&load(0), curve(80, 1700, &["HwThermalSlowdown"], 1), true, "60 s");
    check(&load(0), curve(80, 1700, &["HwPowerBrakeSlowdown"], 9), false, "HwPowerBrakeSlowdown");
    check(&load(2), curve(70, 1700, &[], 0), false, "2 of 100 batches");
    // NVML said nothing: no figures, no verdict about them.
    check(&load(0), Curve::default(), true, "60 s of load");
}

#[test]
fn a_long_curve_keeps_its_shape_and_its_peak_in_few_points() {
    let mut curve = Curve::default();
    for second in 0..100_000_u32 {
        let peak = second == 77_777;
        curve.push(Point {
            seconds: f64::from(second),
            temperature_celsius: Some(if peak { 99 } else { 60 }),
            throttle_reasons: if peak { vec!["HwSlowdown".to_owned()] } else { Vec::new() },
            ..Point::default()
        });
    }
    assert!(POINTS_MAX / 2 <= curve.points.len() && curve.points.len() <= POINTS_MAX);
    assert_eq!((curve.temperature_max, curve.reasons["HwSlowdown"]), (Some(99), 1));
    let steps: Vec<f64> =
        curve.points.windows(2).map(|pair| pair[1].seconds - pair[0].seconds).collect();
    assert!(steps.iter().all(|step| *step == steps[0]), "points are equally far apart");
    assert!(99_000.0 < curve.points.last().unwrap().seconds);
}
