use super::*;

fn facts(index: u32) -> Facts {
    Facts {
        index,
        uuid: format!("GPU-{index}"),
        name: "NVIDIA H200".to_owned(),
        ..Facts::default()
    }
}

#[test]
fn busy_missing_and_divided_gpus_are_refused() {
    let mut busy = facts(1);
    busy.user = Some((4242, "python3".to_owned()));
    let mig = Facts { mig: true, ..facts(2) };
    let all = [facts(0), busy, mig];
    let check = |gpu: Option<u32>, force: bool, expected: &str| {
        let plan = Plan { gpu, force, ..Plan::new(Test::Bandwidth { runs: 1 }) };
        let mut problems = Vec::new();
        let found = match choose(&plan, all.to_vec(), Vec::new(), &mut problems) {
            Ok(targets) => format!("{} targets, {}", targets.len(), problems.join("; ")),
            Err(refusal) => refusal.to_string(),
        };
        assert_eq!(found, expected, "{gpu:?}");
    };
    check(Some(0), false, "0 targets, GPU 0 (GPU-0) is known to NVML and not to CUDA");
    check(
        Some(1),
        false,
        "GPU 1 is in use by process 4242 (python3); drain the node first, or test with force",
    );
    check(Some(1), true, "0 targets, GPU 1 (GPU-1) is known to NVML and not to CUDA");
    check(Some(2), true, "GPU 2 is cut into MIG instances; these tests are of whole GPUs");
    check(Some(3), false, "there is no GPU 3; there are 3, counted from 0");
}

#[test]
fn a_driver_that_fails_in_the_middle_of_a_test_is_a_finding() {
    let error = CudaError::Driver {
        call: "cuStreamSynchronize",
        code: "CUDA_ERROR_ECC_UNCORRECTABLE".to_owned(),
        message: "uncorrectable ECC error encountered".to_owned(),
    };
    let outcomes = vec![Ok(5.0), Err(error.to_string())];
    let found = judged(&[facts(0), facts(1)], outcomes, |figure, _, mut gpu| {
        gpu.figure("figure", figure);
        gpu.judged(Vec::new(), "well")
    });
    assert_eq!((found[0].passed, found[0].message.as_str()), (true, "well"));
    assert!(!found[1].passed && found[1].uuid == "GPU-1");
    assert_eq!(
        found[1].message,
        "cuStreamSynchronize says CUDA_ERROR_ECC_UNCORRECTABLE: uncorrectable ECC error encountered"
    );
}

#[test]
fn progress_is_that_of_all_gpus_together_and_never_goes_back() {
    let board = Board::new(2);
    let share = |at: usize| Share { board: &board, at, gpu: at as u32 };
    let percent = || board.0.lock().unwrap().percent;
    share(0).at(0.0, || "opening".to_owned());
    assert_eq!(percent(), Some(0.0));
    share(0).at(0.5, || "half".to_owned());
    assert_eq!(percent(), Some(25.0));
    // Less than is worth a line.
    share(1).at(0.01, || unreachable!("not said, so not made"));
    assert_eq!(percent(), Some(25.0));
    share(0).at(0.1, || unreachable!("not said, so not made"));
    share(1).at(7.0, || "done".to_owned());
    assert_eq!(percent(), Some(75.0));
}
