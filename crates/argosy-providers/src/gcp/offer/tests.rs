use super::*;

fn offer_of(kind: &str, cpus: u32, gpus: u32) -> Offer {
    let kind = MachineType {
        name: kind.to_owned(),
        guest_cpus: cpus,
        accelerators: vec![Accelerator { guest_accelerator_count: gpus }],
        deprecated: None,
    };
    offer(&kind, "us-central1")
}

#[test]
fn each_machine_uses_the_quotas_of_its_family() {
    let check = |kind: &str, spot: bool, granted: f64, expected: &str| {
        let lent = Quota { metric: "PREEMPTIBLE_CPUS".to_owned(), limit: granted, usage: 0.0 };
        let needs = needs(&offer_of(kind, 12, 2), spot, &[lent]);
        let needs: Vec<String> =
            needs.iter().map(|(metric, each)| format!("{metric}:{each}")).collect();
        assert_eq!(needs.join(" "), expected, "{kind}");
    };
    check("a2-highgpu-2g", false, 0.0, "NVIDIA_A100_GPUS:2 A2_CPUS:12 INSTANCES:1");
    check("a2-ultragpu-2g", false, 0.0, "NVIDIA_A100_80GB_GPUS:2 A2_CPUS:12 INSTANCES:1");
    check("a3-highgpu-8g", true, 0.0, "PREEMPTIBLE_NVIDIA_H100_GPUS:2 A3_CPUS:12 INSTANCES:1");
    check(
        "a3-megagpu-8g",
        true,
        99.0,
        "PREEMPTIBLE_NVIDIA_H100_MEGA_GPUS:2 PREEMPTIBLE_CPUS:12 INSTANCES:1",
    );
    check("g2-standard-24", false, 0.0, "NVIDIA_L4_GPUS:2 G2_CPUS:12 INSTANCES:1");
    check("n1-standard-4", false, 0.0, "CPUS:12 INSTANCES:1");
    check("", false, 0.0, "_CPUS:12 INSTANCES:1");
}

#[test]
fn what_is_left_is_a_number_whatever_google_says() {
    for (limit, usage, expected) in [
        (16.0, 4.0, 12),
        (4.0, 16.0, 0),
        (0.0, 0.0, 0),
        (f64::INFINITY, 0.0, u64::MAX),
        (f64::NAN, 1.0, 0),
        (1e300, 0.0, u64::MAX),
        (16.0, -1.5, 17),
    ] {
        let quota = Quota { metric: String::new(), limit, usage };
        assert_eq!(left(&quota), expected, "{limit} {usage}");
    }
}

#[test]
fn a_price_is_known_only_where_it_was_looked_up() {
    assert_eq!(offer_of("a2-highgpu-1g", 12, 1).price_per_hour, Some(3.673_385));
    assert_eq!(offer_of("a9-future-1g", 12, 1).price_per_hour, None);
    let kind = MachineType { name: "a2-highgpu-1g".to_owned(), ..MachineType::default() };
    assert_eq!(offer(&kind, "asia-east1").price_per_hour, None);
    assert_eq!(offer_of("a2-highgpu-1g", 12, 1).spot_price_per_hour, None);
}

#[test]
fn the_nearest_name_is_told_with_some_others() {
    let known = ["a2-highgpu-1g", "a2-highgpu-8g", "n1-standard-4"];
    let told = hint("machine types", "a2-higpgu-8g", &known);
    let listed = "Known machine types: a2-highgpu-1g, a2-highgpu-8g, n1-standard-4.";
    assert_eq!(told, format!("Did you mean a2-highgpu-8g? {listed}"));
    assert_eq!(hint("machine types", "zebra", &known), listed);
    assert!(hint("x", "zebra", &["aaaa"; 13]).ends_with("aaaa, …."));
}
