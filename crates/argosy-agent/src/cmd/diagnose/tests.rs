use super::*;
use clap::Parser;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: Args,
}

fn parsed(line: &str) -> Result<Plan, String> {
    let words = std::iter::once("diagnose").chain(line.split_whitespace());
    let cli = Cli::try_parse_from(words).map_err(|error| error.to_string())?;
    plan(&cli.args).map_err(|error| error.to_string())
}

#[test]
fn flags_are_read_as_a_commands_parameters_are() {
    let check = |line: &str, expected: &str| {
        let found = match parsed(line) {
            Ok(plan) => {
                let list: Vec<_> = plan
                    .parameters()
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                list.join(" ")
            }
            Err(error) => error,
        };
        assert!(found.contains(expected), "{line}: {found}");
    };
    check("", "test=quick");
    check("compute --runs 1000 --gpu 0", "gpu=0 runs=1000 test=compute");
    check(
        "memory --fraction 0.5 --seconds 5 --force",
        "force=true fraction=0.50 seconds=5 test=memory",
    );
    check("stress --seconds 0", "parameter seconds must be a whole number from 1 to 3600, not `0`");
    check("compute --runs ;rm", "parameter runs must be a whole number from 1 to 10000, not `;rm`");
    check("quick --runs 5", "the test quick has no parameter runs");
    check("shell", "invalid value 'shell'");
}

#[test]
fn a_plan_reaches_the_child_as_it_was_made() {
    for line in
        ["memory --seconds 7 --fraction 1", "bandwidth --gpu 3", "compute --force", "stress"]
    {
        let plan = parsed(line).unwrap();
        let words: Vec<_> =
            plan.parameters().iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(parsed(&format!("--worker {}", words.join(" "))).unwrap(), plan, "{line}");
        let spoiled = parsed(&format!("--worker {} --inject-bit-flip", words.join(" "))).unwrap();
        assert!(spoiled.inject_bit_flip);
    }
}

#[test]
fn a_result_is_shown_with_what_was_expected() {
    let gpu = GpuDiagnosis {
        index: 0,
        uuid: "GPU-1".to_owned(),
        name: "NVIDIA H200".to_owned(),
        passed: false,
        message: "device_to_device_gb_per_s is 100, below 3840".to_owned(),
        figures: BTreeMap::from([("device_to_device_gb_per_s".to_owned(), 100.0)]),
        expected: BTreeMap::from([(
            "device_to_device_gb_per_s".to_owned(),
            crate::diagnose::Expected { low: 3840.0, high: 5280.0 },
        )]),
        ..GpuDiagnosis::default()
    };
    let text = show(&Diagnosis::of("bandwidth", Vec::new(), vec![gpu], 1.26));
    assert!(text.starts_with("GPU 0 NVIDIA H200 GPU-1 FAILED: device_to_device"), "{text}");
    assert!(text.contains("3840 to 5280") && text.contains("low"), "{text}");
    assert!(text.ends_with("bandwidth FAILED in 1.3 s: GPU 0 failed"), "{text}");
}
