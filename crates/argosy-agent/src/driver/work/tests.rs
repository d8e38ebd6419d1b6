use super::*;
use crate::testing::Dir;
use rustix::process::Signal;

#[test]
fn r2_i9_only_the_machines_own_process_numbers_are_signalled() {
    for (namespace, allowed) in
        [(Some(MACHINES_OWN_NUMBERS), true), (Some("pid:[4026532198]"), false), (None, false)]
    {
        let dir = Dir::new();
        let ns = dir.path().join("self/ns");
        std::fs::create_dir_all(&ns).unwrap();
        if let Some(namespace) = namespace {
            std::os::unix::fs::symlink(namespace, ns.join("pid")).unwrap();
        }
        let known = Processes::under(dir.path().to_owned());
        assert_eq!(known.is_ok(), allowed, "{namespace:?}");
        if let Err(why) = known {
            assert!(why.contains("hostPID"), "{why}");
        }
    }
}

#[test]
fn r2_i9_a_process_that_is_another_by_now_is_not_signalled() {
    let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let proc = PathBuf::from("/proc");
    // The kernel gives it its name a moment after it was started.
    let comm = proc.join(format!("{}/comm", child.id()));
    while std::fs::read_to_string(&comm).unwrap().trim() != "sleep" {
        std::thread::yield_now();
    }
    let known = Processes { proc };
    let named =
        |name: &str| Process { pid: child.id(), name: name.to_owned(), ..Process::default() };
    let (other, ours) = (named("python3"), named("/usr/bin/sleep"));
    known.signal(&[other], Signal::KILL);
    known.signal(&[ours], Signal::TERM);
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(child.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));
}
