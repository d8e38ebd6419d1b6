use super::*;
use crate::pulse::GpuSample;

fn sample(gpus: &[(u16, f32, u32)]) -> Sample {
    let gpus = gpus.iter().map(|&(index, utilization, ecc_corrected)| GpuSample {
        index,
        utilization: Some(utilization),
        temperature: Some(50),
        power: Some(300),
        memory_used: Some(3 * MEMORY_STEP - 1),
        ecc_corrected: Some(ecc_corrected),
        ecc_uncorrected: Some(0),
    });
    Sample { gpus: gpus.collect(), ..Sample::default() }
}

fn after(history: &mut History, seconds: std::ops::Range<u64>, sample: &Sample) {
    seconds.for_each(|second| history.push(sample, Duration::from_secs(second)));
}

#[test]
fn points_are_close_together_at_first_and_an_hour_fits_in_the_end() {
    for (seconds, points, span_min) in
        [(1, 1, 0), (60, 30, 55), (240, 120, 230), (1_000, 120, 900), (9_000, 120, 3_300)]
    {
        let mut history = History::default();
        after(&mut history, 0..seconds, &sample(&[(0, 1.0, 0), (1, 2.0, 0)]));
        let kept = history.points();
        let span = kept.last().unwrap().at_s - kept.first().unwrap().at_s;
        assert!(kept.len() <= points && points <= 2 * kept.len(), "{seconds}: {}", kept.len());
        assert!(span_min <= span, "{seconds}: {span} s");
        assert!(kept.iter().zip(kept.iter().skip(1)).all(|(a, b)| a.at_s < b.at_s));
        // What was thinned out of one was thinned out of the other.
        for track in history.tracks() {
            assert_eq!(track.moments.len(), kept.len());
            assert!(track.moments.iter().all(Option::is_some), "{seconds}");
        }
    }
}

#[test]
fn each_gpu_has_its_own_past_and_gaps_where_it_was_not_measured() {
    let mut history = History::default();
    after(&mut history, 0..1, &sample(&[(0, 10.0, 0), (1, 20.0, 0)]));
    // GPU 1 does not answer any more.
    after(&mut history, 2..3, &sample(&[(0, 11.0, 0)]));
    let tracks = history.tracks();
    let percent: Vec<Vec<Option<u8>>> = tracks
        .iter()
        .map(|track| track.moments.iter().map(|it| it.and_then(|it| it.utilization)).collect())
        .collect();
    assert_eq!(percent, [[Some(10), Some(11)], [Some(20), None]]);
    let first = tracks.first().and_then(|track| *track.moments.first()?).unwrap();
    assert_eq!((first.power, first.temperature), (Some(300), Some(50)));
    assert_eq!(first.memory_used, Some(3 * MEMORY_STEP));
    // A third one appears; the others' past under fewer GPUs is forgotten, its moments are not.
    after(&mut history, 4..5, &sample(&[(2, 30.0, 0)]));
    let seen = |track: &GpuTrack| track.moments.iter().filter(|it| it.is_some()).count();
    assert_eq!(history.tracks().iter().map(seen).collect::<Vec<_>>(), [0, 0, 1]);
    assert_eq!(history.points().len(), 3);
}

#[test]
fn error_counts_are_known_at_every_point_until_too_many_changed() {
    let mut history = History::default();
    after(&mut history, 0..4, &sample(&[(0, 1.0, 0)]));
    after(&mut history, 4..8, &sample(&[(0, 1.0, 7)]));
    let counts = |history: &History| -> Vec<Option<(u32, u32)>> {
        let tracks = history.tracks();
        tracks.iter().flat_map(|track| &track.moments).map(|it| it.and_then(|it| it.ecc)).collect()
    };
    assert_eq!(counts(&history), [Some((0, 0)), Some((0, 0)), Some((7, 0)), Some((7, 0))]);
    for count in 0..=u32::try_from(CHANGES_MAX).unwrap() {
        after(&mut history, 8..9, &sample(&[(0, 1.0, 8 + count)]));
    }
    assert_eq!(counts(&history).first(), Some(&None));
}
