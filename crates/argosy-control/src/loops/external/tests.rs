use super::*;

/// Answers as words: `d` drained or done, `w` work is left, `u` unknown, `l` later, `r` refused.
fn check(answers: &str, expected: &str) {
    let answer = |(at, word): (usize, char)| {
        let said = match word {
            'd' => Ok(DrainStatus::Drained),
            'w' => Ok(DrainStatus::Draining { left: Some(1), message: String::new() }),
            'u' => Err(SchedulerError::UnknownNode("unknown".to_owned())),
            'l' => Err(SchedulerError::Later("later".to_owned())),
            _ => Err(SchedulerError::Refused("refused".to_owned())),
        };
        (["slurm", "kubernetes", "webhook"][at], said)
    };
    let line = match together(answers.chars().enumerate().map(answer).collect()) {
        Answer::Done(systems) => format!("done by {systems}"),
        Answer::StillDraining => "still draining".to_owned(),
        Answer::Failed { system, message } => format!("{system}: {message}"),
    };
    assert_eq!(line, expected, "{answers}");
}

#[test]
fn several_systems_agree_before_something_counts_as_done() {
    check("d", "done by slurm");
    check("dd", "done by slurm, kubernetes");
    check("w", "still draining");
    check("dw", "still draining");
    check("l", "slurm: later");
    check("r", "slurm: refused");
    check("dl", "kubernetes: later");
    check("wr", "kubernetes: refused");
    // Whoever does not know the node does not run its work, if another does.
    check("du", "done by slurm");
    check("uw", "still draining");
    // If nobody knows it, its name is wrong, and nobody can say what runs there.
    check("u", "slurm: unknown");
    check("uu", "kubernetes: unknown");
}
