use super::*;

fn gpu(index: u32, passed: bool) -> GpuDiagnosis {
    let figures = BTreeMap::from([(format!("figure_{index}"), 1.0)]);
    GpuDiagnosis { index, passed, message: "said".to_owned(), figures, ..GpuDiagnosis::default() }
}

#[test]
fn the_word_of_all_gpus_is_that_of_the_worst() {
    let check = |gpus: &[bool], problems: &[&str], passed: bool, message: &str| {
        let gpus = gpus.iter().zip(0..).map(|(passed, index)| gpu(index, *passed)).collect();
        let problems = problems.iter().map(|problem| (*problem).to_owned()).collect();
        let found = Diagnosis::of("quick", problems, gpus, 0.0);
        assert_eq!((found.passed, found.message.as_str()), (passed, message));
    };
    check(&[true], &[], true, "the GPU passed");
    check(&[true, true], &[], true, "all 2 GPUs passed");
    check(&[true, false, true], &[], false, "GPU 1 failed");
    check(&[false, false, true], &[], false, "2 of 3 GPUs failed: 0, 1");
    check(&[true], &["GPU 1 is gone"], false, "the GPU passed; GPU 1 is gone");
    // A test of nothing proves nothing.
    check(&[], &[], false, "no GPU was tested");
}

#[test]
fn tests_joined_keep_every_figure_and_every_fault() {
    let one =
        Diagnosis::of("quick", vec!["a fan".to_owned()], vec![gpu(0, true), gpu(1, true)], 1.0);
    let mut other = Diagnosis::of("memory", Vec::new(), vec![gpu(1, false)], 2.5);
    other.gpus[0].figures = BTreeMap::from([("memory_wrong_words".to_owned(), 3.0)]);
    other.cuda_version = Some("13.0".to_owned());
    let joined = Diagnosis::joined("all", vec![one, other]);
    assert!(!joined.passed);
    assert_eq!((joined.seconds, joined.cuda_version.as_deref()), (3.5, Some("13.0")));
    assert_eq!(joined.message, "GPU 1 failed; a fan");
    assert_eq!(joined.gpus.len(), 2);
    assert_eq!(joined.gpus[1].message, "quick: said; memory: said");
    assert_eq!(joined.gpus[1].figures.len(), 2);
}

#[test]
fn a_diagnosis_is_json_and_back() {
    let mut whole = Diagnosis::of("stress", Vec::new(), vec![gpu(0, true)], 1.0);
    whole.gpus[0].expected.insert("figure_0".to_owned(), Expected { low: 1.0, high: 2.0 });
    whole.gpus[0].curve.push(Point { seconds: 0.5, power_watts: Some(700.0), ..Point::default() });
    let text = serde_json::to_string(&whole).unwrap();
    assert!(text.starts_with(r#"{"passed":true,"test":"stress""#), "{text}");
    assert!(text.contains(r#""expected":{"figure_0":{"low":1.0,"high":2.0}}"#), "{text}");
    assert_eq!(serde_json::from_str::<Diagnosis>(&text).unwrap(), whole);
}
