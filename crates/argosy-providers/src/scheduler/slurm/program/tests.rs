use super::*;
use std::io::{BufRead, BufReader, Read};
use tokio::sync::oneshot;

fn sh() -> Program {
    let [sh, _] =
        Program::of_one(["/bin/sh".into(), "/bin/sh".into()], Some(&"/etc/own.conf".into()));
    sh
}

#[tokio::test]
async fn words_are_words_and_both_outputs_are_kept() {
    let script = "printf '%s|' \"$0\" \"$@\"; echo oops >&2; exit 3";
    let said = sh().run(&["-c", script, "a b", "$(id)", "c;d", ""]).await.unwrap();
    assert_eq!((said.well, said.stdout.as_str()), (false, "a b|$(id)|c;d||"));
    assert_eq!(said.stderr, "oops\n");
    assert!(sh().run(&["-c", "true"]).await.unwrap().well);
}

#[tokio::test]
async fn the_environment_is_ours_to_choose() {
    let said = sh().run(&["-c", "env | cut -d= -f1 | sort; echo $SLURM_CONF"]).await.unwrap();
    let mut lines: Vec<&str> = said.stdout.lines().collect();
    assert_eq!(lines.pop(), Some("/etc/own.conf"));
    // `PWD` and `_` are the shell's own.
    lines.retain(|name| !["PWD", "_", "SHLVL", "OLDPWD"].contains(name));
    for name in lines {
        assert!(name == "LC_ALL" || ENVIRONMENT.contains(&name), "{name} was handed down");
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_needs_a_person() {
    let [missing, _] =
        Program::of_one(["/nowhere/scontrol".into(), "/nowhere/squeue".into()], None);
    let Err(SchedulerError::Refused(message)) = missing.run(&["show"]).await else {
        panic!("it was run");
    };
    assert!(message.starts_with("/nowhere/scontrol cannot be run: No such file"), "{message}");
}

#[tokio::test]
async fn output_without_end_is_cut() {
    for script in ["yes", "yes >&2", "head -c 65537 /dev/zero"] {
        let Err(SchedulerError::Refused(message)) = sh().run(&["-c", script]).await else {
            panic!("{script} was read to its end");
        };
        assert_eq!(message, "/bin/sh printed more than 65536 bytes");
    }
    let said = sh().run(&["-c", "head -c 65536 /dev/zero"]).await.unwrap();
    assert_eq!(said.stdout.len(), OUTPUT_BYTES_MAX);
}

#[tokio::test(start_paused = true)]
async fn a_program_that_hangs_is_given_up() {
    assert_eq!(
        sh().run(&["-c", "exec sleep 1000"]).await.err(),
        Some(SchedulerError::Later("/bin/sh was not done in 15 s".to_owned()))
    );
}

#[tokio::test]
async fn a_call_that_is_dropped_takes_its_process_with_it() {
    let dir = std::env::temp_dir().join(format!("argosy-program-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let pipe = dir.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (tell, up) = oneshot::channel();
    let reading = pipe.clone();
    // The pipe ends when the last process that holds it does.
    let ended = tokio::task::spawn_blocking(move || {
        let mut pipe = BufReader::new(std::fs::File::open(reading).unwrap());
        let mut line = String::new();
        pipe.read_line(&mut line).unwrap();
        tell.send(line).unwrap();
        pipe.read_to_end(&mut Vec::new()).unwrap()
    });
    let script = format!("exec >{}; echo up; exec sleep 1000", pipe.display());
    let (program, words) = (sh(), ["-c", script.as_str()]);
    tokio::select! {
        said = program.run(&words) => panic!("it ended by itself: {said:?}"),
        line = up => assert_eq!(line.unwrap(), "up\n"),
    }
    let ended = tokio::time::timeout(Duration::from_secs(60), ended).await;
    assert_eq!(ended.expect("the process is gone").unwrap(), 0);
    std::fs::remove_dir_all(&dir).unwrap();
}
