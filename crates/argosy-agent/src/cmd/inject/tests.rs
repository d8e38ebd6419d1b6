use super::*;
use crate::inject::Injections;
use clap::Parser;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: Args,
}

fn args(words: &[&str]) -> Args {
    Cli::try_parse_from(std::iter::once("inject").chain(words.iter().copied())).unwrap().args
}

#[test]
fn words_and_a_gpu_make_an_injection() {
    let rows = [
        (&["xid:79", "--gpu", "3"][..], "xid:79 gpu:3"),
        (&["xid:79", "gpu:3"], "xid:79 gpu:3"),
        (&["heal"], "heal"),
        (
            &["line:NVRM: Xid (PCI:0000:18:00): 79, gone"],
            "line:NVRM: Xid (PCI:0000:18:00): 79, gone",
        ),
    ];
    for (words, expected) in rows {
        assert_eq!(injection(&args(words)).unwrap().to_string(), expected);
    }
    for words in [&["earthquake"][..], &["xid:79"], &["line:x", "--gpu", "3"]] {
        injection(&args(words)).unwrap_err();
    }
}

#[tokio::test]
async fn nothing_is_injected_without_the_flag() {
    let dir = std::env::temp_dir().join(format!("argosy-inject-cmd-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let mut injections = Injections::listen(&dir.join(SOCKET)).unwrap();
    let words = ["xid:79", "--gpu", "3", "--data-dir", dir.to_str().unwrap()];
    let refused = run(args(&words)).unwrap();
    assert_eq!(format!("{refused:?}"), format!("{:?}", ExitCode::from(2)));

    let mut sure = words.to_vec();
    sure.push("--yes-inject-a-fault");
    let sure = args(&sure);
    let sent = tokio::task::spawn_blocking(move || run(sure));
    let (sent, heard) = tokio::join!(sent, async {
        let asked = injections.next().await;
        let heard = asked.injection.clone();
        asked.answer(Ok(())).await;
        heard
    });
    sent.unwrap().unwrap();
    assert_eq!(heard.to_string(), "xid:79 gpu:3", "the one that was refused did not come");
    drop(injections);
    std::fs::remove_dir_all(&dir).unwrap();
}
