use super::{parse, unescaped};

#[test]
fn only_real_disks_are_read() {
    let check = |line: &str, expected: &str| {
        let told = parse(line).map(|disk| {
            let ro = if disk.read_only { " ro" } else { "" };
            format!("{} on {} as {}{ro}", disk.device, disk.mount, disk.filesystem)
        });
        assert_eq!(told.unwrap_or_default(), expected, "{line}");
    };
    check("/dev/vda / ext4 rw,relatime 0 0", "/dev/vda on / as ext4");
    check("/dev/md0 /mnt/local\\040ssd xfs ro,noatime 0 0", "/dev/md0 on /mnt/local ssd as xfs ro");
    check("server:/home /home nfs4 rw 0 0", "");
    check("tmpfs /dev/shm tmpfs rw 0 0", "");
    check("proc /proc proc rw 0 0", "");
    check("/dev/vda /", "");
    check("", "");
}

#[test]
fn escaped_places_are_what_they_were() {
    assert_eq!(unescaped("a\\040b\\011\\134"), "a b\t\\");
    assert_eq!(unescaped("\\9\\04\\777"), "\\9\\04\\777");
}
