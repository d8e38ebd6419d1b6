use super::{Host, HostError, HostSample, Roots, Sampler};
use jiff::Timestamp;
use proptest::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A made-up machine, gone with its test.
struct Machine(PathBuf);

impl Machine {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("argosy-host-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    fn sampler(&self) -> Sampler {
        Sampler::new(Roots::under(&self.0))
    }

    fn sample(&self) -> HostSample {
        self.sampler().sample(at(1_000_000))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// All the files that a sample reads, with what a real machine has in them.
const FILES: [(&str, &str); 36] = [
    (
        "proc/stat",
        "cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 50 0 50 350 50 0 0 0 0 0\ncpu1 50 0 50 350 50 0 0 0 0 0\nintr 12345\nbtime 1\n",
    ),
    (
        "proc/meminfo",
        "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    400 kB\nSwapTotal:        10 kB\nSwapFree:          5 kB\n",
    ),
    ("proc/loadavg", "1.50 2.25 3.00 2/345 6789\n"),
    ("proc/uptime", "1000.25 2000.50\n"),
    (
        "proc/self/mounts",
        "proc /proc proc rw 0 0\n/dev/vda / ext4 rw,relatime 0 0\n/dev/vda /var/lib/x ext4 ro 0 0\nserver:/a /b nfs rw 0 0\n",
    ),
    ("proc/77/stat", "77 (a) b) D 1 77 77 0 -1 0 0 0 0 0 30 12 0 0 20 0 1 0 4242 0 0\n"),
    ("proc/78/stat", "78 (sleeps) S 1 78 78 0 -1 0 0 0 0 0 30 12 0 0 20 0 1 0 4242 0 0\n"),
    ("proc/79/stat", "79 (kworker/0:1) D 2 0 0 0 -1 0 0 0 0 0 0 12 0 0 20 0 1 0 4242 0 0\n"),
    ("sys/class/net/eth0/device/vendor", "0x15b3\n"),
    ("sys/class/net/eth0/operstate", "up\n"),
    ("sys/class/net/eth0/speed", "100000\n"),
    ("sys/class/net/eth0/carrier_changes", "3\n"),
    ("sys/class/net/eth0/statistics/rx_bytes", "12\n"),
    ("sys/class/net/eth0/statistics/tx_errors", "4\n"),
    ("sys/class/net/lo/operstate", "unknown\n"),
    ("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n"),
    ("sys/class/infiniband/mlx5_0/ports/1/phys_state", "5: LinkUp\n"),
    ("sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n"),
    ("sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n"),
    ("sys/class/infiniband/mlx5_0/ports/1/counters/link_downed", "2\n"),
    ("sys/class/infiniband/mlx5_0/ports/1/hw_counters/rnr_nak_retry_err", "9\n"),
    ("sys/class/infiniband/mlx5_1/device/physfn/vendor", "0x15b3\n"),
    ("sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n"),
    ("sys/class/infiniband/mlx5_1/ports/1/counters/link_downed", "2\n"),
    ("sys/bus/pci/devices/0000:18:00.0/vendor", "0x10de\n"),
    ("sys/bus/pci/devices/0000:18:00.0/class", "0x030200\n"),
    ("sys/bus/pci/devices/0000:18:00.0/device", "0x2335\n"),
    ("sys/bus/pci/devices/0000:18:00.0/current_link_width", "8\n"),
    ("sys/bus/pci/devices/0000:18:00.0/max_link_width", "16\n"),
    ("sys/bus/pci/devices/0000:18:00.0/power/runtime_status", "active\n"),
    ("sys/bus/pci/devices/0000:18:00.0/aer_dev_correctable", "RxErr 1\nTOTAL_ERR_COR 5\n"),
    ("sys/bus/pci/devices/0000:18:00.0/aer_dev_nonfatal", "TOTAL_ERR_NONFATAL 2\n"),
    ("sys/bus/pci/devices/0000:18:00.0/aer_dev_fatal", "TOTAL_ERR_FATAL 1\n"),
    ("sys/bus/pci/devices/0000:19:00.0/vendor", "0x15b3\n"),
    ("sys/bus/pci/devices/0000:1a:00.0/vendor", "0x10de\n"),
    ("sys/bus/pci/devices/0000:1a:00.0/class", "0x068000\n"),
];

fn machine() -> Machine {
    let machine = Machine::new();
    for (name, text) in FILES {
        machine.write(name, text);
    }
    machine
}

#[test]
fn everything_a_machine_tells_is_read() {
    let machine = machine();
    machine.write("run/systemd/timesync/synchronized", "");
    let mut sampler = machine.sampler();
    let sample = sampler.sample(at(1_000_000));
    let json = serde_json::to_value(&sample).unwrap();
    let check = |pointer: &str, expected: serde_json::Value| {
        assert_eq!(json.pointer(pointer), Some(&expected), "{pointer}");
    };
    check("/cpu/count", 2.into());
    check("/cpu/used_percent", serde_json::Value::Null);
    check("/memory/total_bytes", (1000 * 1024).into());
    check("/memory/available_bytes", (400 * 1024).into());
    check("/load/five", 2.25.into());
    check("/uptime_s", 1000.into());
    check("/booted_at", at(999_000).to_string().into());
    check("/disks/0/mount", "/".into());
    check("/disks/0/read_only", false.into());
    assert_eq!(sample.disks.len(), 1);
    assert!(sample.disks[0].total_bytes.unwrap() > 0, "the real root was asked");
    check("/links/0/name", "eth0".into());
    check("/links/0/up", true.into());
    check("/links/0/send_errors", 4.into());
    check("/links/0/receive_errors", serde_json::Value::Null);
    assert_eq!(sample.links.len(), 1);
    check("/ports/0/rate_gbps", 400.0.into());
    check("/ports/0/physical_state", "LinkUp".into());
    check("/ports/0/counters", serde_json::json!({"link_downed": 2, "rnr_nak_retry_err": 9}));
    check("/ports/1/active", false.into());
    check("/ports/1/is_virtual", true.into());
    assert!(sample.ports[1].counters.is_empty(), "a virtual function is not asked");
    check("/nvidia/0/address", "0000:18:00.0".into());
    check("/nvidia/0/width", 8.into());
    check("/nvidia/0/width_max", 16.into());
    check("/nvidia/0/aer", serde_json::json!({"corrected": 5, "non_fatal": 2, "fatal": 1}));
    check("/nvidia/1/class", 0x06_8000.into());
    assert_eq!((sample.nvidia.len(), sample.gpus_on_bus()), (2, 1));
    check("/clock_synchronised", true.into());
    check("/blocked/0/name", "a) b".into());
    check("/blocked/0/worked_ticks", 42.into());
    assert_eq!(sample.blocked.len(), 1);
    let back: HostSample = serde_json::from_value(json.clone()).unwrap();
    assert_eq!(back, sample);
    // 100 ticks later, of which 25 were work.
    machine.write("proc/stat", "cpu  125 0 100 750 125 0 0 0 0 0\ncpu0 1 1 1 1\n");
    let cpu = sampler.sample(at(1_000_010)).cpu.unwrap();
    assert_eq!((cpu.count, cpu.used_percent), (1, Some(25.0)));
}

#[test]
fn a_machine_that_tells_nothing_gives_a_sample_of_nothing() {
    assert_eq!(Machine::new().sample(), HostSample::empty(at(1_000_000)));
}

#[test]
fn a_slot_narrower_than_its_gpu_is_not_a_narrow_link() {
    let machine = machine();
    let devices = machine.0.join("sys/bus/pci/devices");
    let above = machine.0.join("sys/devices/pci0000:17/0000:17:01.0");
    std::fs::create_dir_all(&above).unwrap();
    std::fs::write(above.join("max_link_width"), "8\n").unwrap();
    std::fs::rename(devices.join("0000:18:00.0"), above.join("0000:18:00.0")).unwrap();
    std::os::unix::fs::symlink(above.join("0000:18:00.0"), devices.join("0000:18:00.0")).unwrap();
    let gpu = machine.sample().nvidia.remove(0);
    assert_eq!((gpu.width, gpu.width_max), (Some(8), Some(8)));
}

#[test]
fn a_huge_file_is_read_up_to_a_limit() {
    let machine = machine();
    // Sparse: it has a gigabyte and takes none.
    for name in ["proc/stat", "proc/meminfo", "sys/class/net/eth0/speed", "proc/77/stat"] {
        let file = std::fs::OpenOptions::new().write(true).open(machine.0.join(name)).unwrap();
        file.set_len(1 << 30).unwrap();
    }
    let sample = machine.sample();
    assert_eq!(sample.memory.unwrap().total_bytes, 1000 * 1024);
    assert_eq!(super::read::text(&machine.0.join("proc/stat")).unwrap().len(), 1 << 20);
}

#[test]
fn this_machine_gives_a_sample() {
    let mut sampler = Sampler::new(Roots::default());
    let sample = sampler.sample(at(1_000_000));
    assert!(0 < sample.cpu.unwrap().count);
    assert!(0 < sample.memory.unwrap().total_bytes);
    assert!(sample.uptime_s.is_some());
}

#[tokio::test]
async fn a_disk_that_hangs_costs_the_sample_and_not_the_caller() {
    let machine = machine();
    // Opening a pipe that nobody writes to hangs as a dead disk does.
    let pipe = machine.0.join("proc/meminfo");
    std::fs::remove_file(&pipe).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
    tokio::time::pause();
    let mut host = Host::start(Roots::under(&machine.0)).unwrap();
    let hung = HostError::Hung { since: at(1) };
    assert_eq!(host.sample(at(1)).await, Err(hung.clone()));
    assert_eq!(host.sample(at(61)).await, Err(hung), "and no second thread hangs");
    // The disk answers again, and so does the machine.
    drop(std::fs::OpenOptions::new().write(true).open(&pipe).unwrap());
    std::fs::remove_file(&pipe).unwrap();
    machine.write("proc/meminfo", FILES[1].1);
    tokio::time::resume();
    let sample = loop {
        match host.sample(at(121)).await {
            Ok(sample) => break sample,
            Err(HostError::Hung { .. }) => tokio::task::yield_now().await,
            Err(HostError::Gone) => panic!("the thread is gone"),
        }
    };
    assert_eq!(sample.at, at(121));
}

#[tokio::test]
async fn a_caller_that_gives_up_is_not_a_machine_that_hangs() {
    let machine = machine();
    let mut host = Host::start(Roots::under(&machine.0)).unwrap();
    for second in 0..20 {
        {
            let mut sample = Box::pin(host.sample(at(second)));
            let _ = futures_util::poll!(&mut sample);
        }
        assert_eq!(host.sample(at(second)).await.unwrap().at, at(second));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn garbage_in_any_file_gives_a_sample(
        garbage in prop::collection::vec((0..FILES.len(), prop::collection::vec(any::<u8>(), 0..300)), 1..6),
        cuts in prop::collection::vec((0..FILES.len(), 0_usize..60), 0..6),
    ) {
        let machine = machine();
        for (file, at) in cuts {
            let (name, text) = FILES[file];
            machine.write(name, &text[..at.min(text.len())]);
        }
        for (file, bytes) in garbage {
            machine.write(FILES[file].0, bytes);
        }
        let mut sampler = machine.sampler();
        let mut watch = crate::watch::host::HostWatch::default();
        for second in [1, 60, 120] {
            let sample = sampler.sample(at(second));
            watch.on(&sample);
            prop_assert!(serde_json::to_string(&sample).is_ok());
        }
    }
}
