use super::*;

#[test]
fn the_end_of_a_file_is_no_longer_than_asked() {
    let check = |text: &str, len_max: u64, end: &str| {
        assert_eq!(tail(io::Cursor::new(text), len_max).unwrap(), end.as_bytes());
    };
    check("", 4, "");
    check("abc", 4, "abc");
    check("abcdef", 4, "cdef");
}

#[test]
fn rooms_that_were_never_finished_and_files_of_others_are_passed_over() {
    let dir = std::env::temp_dir().join(format!("argosy-rooms-{}", std::process::id()));
    for name in [".workers-1.7.new", "UPPER", "workers-2"] {
        fs::create_dir_all(dir.join(name)).unwrap();
    }
    fs::write(dir.join("notes"), "").unwrap();
    assert!(Room::all(&dir).unwrap().is_empty());
    // A record that cannot be read is no reason to pass over a machine that may run.
    fs::write(dir.join("workers-2/machine.json"), "{").unwrap();
    assert!(Room::all(&dir).is_err());
    fs::remove_dir_all(&dir).unwrap();
}
