use super::*;

#[test]
fn mvp_knows_two_words() {
    let rows = [
        (Profile::Full, "Pending Not Ready Ready Terminating"),
        (Profile::Mvp, "Not Ready Not Ready Ready Not Ready"),
        (Profile::Upstream, "Pending Not Ready Ready Terminating"),
    ];
    let phases = [Phase::Pending, Phase::NotReady, Phase::Ready, Phase::Terminating];
    for (profile, words) in rows {
        assert_eq!(phases.map(|phase| profile.phase(phase)).join(" "), words);
    }
}

#[test]
fn a_word_means_every_phase_that_is_shown_as_it() {
    let rows: [(Profile, &str, &[Phase]); 5] = [
        (Profile::Full, "Not Ready", &[Phase::NotReady]),
        (Profile::Full, "NotReady", &[Phase::NotReady]),
        (Profile::Full, "Terminating", &[Phase::Terminating]),
        (Profile::Mvp, "Not Ready", &[Phase::NotReady, Phase::Pending, Phase::Terminating]),
        (Profile::Mvp, "Ready", &[Phase::Ready]),
    ];
    for (profile, word, phases) in rows {
        assert_eq!(profile.phases(word, Kind::Cluster).as_deref(), Ok(phases), "{word}");
    }
}

#[test]
fn a_bad_phase_gets_the_sentence_of_its_profile() {
    let rows = [
        (
            Profile::Full,
            Kind::Cluster,
            "Invalid phase value 'X'. Supported values: Not Ready, Ready, Pending, Terminating",
        ),
        (
            Profile::Mvp,
            Kind::Cluster,
            "Invalid phase value 'X'. Supported values: Not Ready, Ready",
        ),
        (
            Profile::Mvp,
            Kind::NodePool,
            "Invalid phase value 'X'. Supported values for MVP: Not Ready, Ready",
        ),
    ];
    for (profile, kind, sentence) in rows {
        assert_eq!(profile.phases("X", kind), Err(sentence.to_owned()));
    }
    assert!(Profile::Mvp.phases("Pending", Kind::Cluster).is_err());
    assert!(Profile::Full.phases("ready", Kind::Cluster).is_err(), "case matters");
}
