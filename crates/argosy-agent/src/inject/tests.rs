use super::*;
use crate::gpu::GpuIdentity;
use std::str::FromStr;

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("argosy-inject-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    fn socket(&self) -> PathBuf {
        self.0.join(SOCKET)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _left = std::fs::remove_dir_all(&self.0);
    }
}

/// The next one, which is then made to happen, or refused.
async fn next(injections: &mut Injections, injected: Result<(), String>) -> Injection {
    let asked = injections.next().await;
    let injection = asked.injection.clone();
    asked.answer(injected).await;
    injection
}

async fn sent(socket: PathBuf, injection: Injection) -> Result<(), SendError> {
    tokio::task::spawn_blocking(move || send(&socket, &injection)).await.unwrap()
}

#[tokio::test]
async fn what_is_sent_is_what_comes_next() {
    let dir = Dir::new("next");
    let mut injections = Injections::listen(&dir.socket()).unwrap();
    let mode = std::fs::metadata(dir.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "nobody else may inject");
    let wanted = Injection::from_str("xid:79 gpu:3").unwrap();
    let heard = next(&mut injections, Ok(()));
    let (answer, heard) = tokio::join!(sent(dir.socket(), wanted.clone()), heard);
    answer.unwrap();
    assert_eq!(heard, wanted);
    let refused = next(&mut injections, Err("there is no GPU 3 here".to_owned()));
    let (answer, _) = tokio::join!(sent(dir.socket(), wanted.clone()), refused);
    assert!(answer.unwrap_err().to_string().contains("no GPU 3 here"));
}

#[tokio::test]
async fn one_that_was_given_up_on_is_not_lost() {
    let dir = Dir::new("cancel");
    let mut injections = Injections::listen(&dir.socket()).unwrap();
    let wanted = Injection::from_str("lost gpu:1").unwrap();
    let mut slow = UnixStream::connect(dir.socket()).await.unwrap();
    // `next` begins to talk, and is dropped in the middle of it.
    tokio::select! {
        biased;
        asked = injections.next() => panic!("{} before it was said", asked.injection),
        () = tokio::task::yield_now() => {}
    }
    let mut line = serde_json::to_vec(&wanted).unwrap();
    line.push(b'\n');
    slow.write_all(&line).await.unwrap();
    assert_eq!(next(&mut injections, Ok(())).await, wanted);
    let mut answer = String::new();
    slow.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "{\"accepted\":true}\n");
}

#[tokio::test]
async fn nonsense_is_answered_and_the_next_one_is_heard() {
    let dir = Dir::new("nonsense");
    let mut injections = Injections::listen(&dir.socket()).unwrap();
    let long = vec![b'x'; REQUEST_LEN_MAX + 8 * 1024];
    let rows: [(&[u8], &str); 4] = [
        (b"rm -rf /\n", "this is no injection"),
        (b"{\"inject\":\"earthquake\"}\n", "unknown variant"),
        (b"{\"inject\":\"lost\",\"gpu\":1,\"more\":2}\n", "unknown field"),
        // Its sender may be cut off before it reads why.
        (&long, ""),
    ];
    for (request, expected) in rows {
        let socket = dir.socket();
        let ask = async {
            let mut stream = UnixStream::connect(&socket).await.unwrap();
            // The long one is cut off in the middle, by whoever has had enough.
            let _cut = stream.write_all(request).await;
            let mut answer = String::new();
            let _reset = stream.read_to_string(&mut answer).await;
            answer
        };
        tokio::select! {
            asked = injections.next() => panic!("{} was made of {request:?}", asked.injection),
            answer = ask => assert!(answer.contains(expected), "{answer} for {expected}"),
        }
    }
    let wanted = Injection::from_str("heal").unwrap();
    let heard = next(&mut injections, Ok(()));
    let (answer, heard) = tokio::join!(sent(dir.socket(), wanted.clone()), heard);
    answer.unwrap();
    assert_eq!(heard, wanted);
}

#[tokio::test]
async fn a_socket_left_behind_is_replaced_and_one_in_use_is_not() {
    let dir = Dir::new("left");
    drop(std::os::unix::net::UnixListener::bind(dir.socket()).unwrap());
    let first = Injections::listen(&dir.socket()).unwrap();
    let Err(error) = Injections::listen(&dir.socket()) else { panic!("two agents listen") };
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    drop(first);
    let gone = sent(dir.socket(), Injection::Heal { gpu: None }).await.unwrap_err();
    assert!(gone.to_string().contains("--allow-inject"), "{gone}");
}

#[test]
fn on_real_gpus_an_injection_is_a_marked_signal() {
    let gpu =
        |index: u32| GpuIdentity { index, uuid: format!("GPU-{index}"), ..Default::default() };
    let inventory = Inventory { gpus: vec![gpu(0), gpu(3)], ..Inventory::default() };
    let said =
        |text: &str| signal(&Injection::from_str(text).unwrap(), &inventory, Timestamp::UNIX_EPOCH);
    let rows = [
        ("xid:79 gpu:3", SignalKind::Xid, "xid_code", "79"),
        ("lost gpu:3", SignalKind::DriverError, "reason", "GpuLost"),
        ("missing gpu:3", SignalKind::DriverError, "reason", "GpuMissing"),
        ("hang gpu:3", SignalKind::DriverError, "reason", "ProbeHung"),
        ("ecc-corrected:200 gpu:3", SignalKind::EccSbe, "ecc_sbe_count", "200"),
        ("ecc-uncorrected:1 gpu:3", SignalKind::EccDbe, "ecc_dbe_count", "1"),
        ("row-remap-pending gpu:3", SignalKind::Memory, "row_remap_pending", "1"),
        ("row-remap-failed gpu:3", SignalKind::Memory, "row_remap_failure", "1"),
        ("temperature:96 gpu:3", SignalKind::Thermal, "temperature", "96"),
        (
            "throttle:HwPowerBrakeSlowdown gpu:3",
            SignalKind::Power,
            "throttle",
            "HwPowerBrakeSlowdown",
        ),
        ("nvlink-down:2 gpu:3", SignalKind::Nvlink, "nvlinks_down", "2"),
        ("nvlink-errors:5 gpu:3", SignalKind::Nvlink, "nvlink_errors", "5"),
        ("pcie-replays:50 gpu:3", SignalKind::Pcie, "pcie_replays", "50"),
        ("pcie-width:8 gpu:3", SignalKind::Pcie, "pcie_width", "8"),
        ("recovery:gpu-reset gpu:3", SignalKind::DriverError, "recovery_action", "gpu-reset"),
    ];
    for (text, kind, metric, value) in rows {
        let signal = said(text).unwrap().unwrap();
        assert_eq!(signal.kind, kind, "{text}");
        assert_eq!(signal.gpu.as_ref().map(|gpu| gpu.uuid.as_str()), Some("GPU-3"), "{text}");
        assert_eq!(signal.metrics.get(metric).map(String::as_str), Some(value), "{text}");
        assert_eq!(signal.metrics.get("injected").map(String::as_str), Some("true"), "{text}");
    }
    assert_eq!(said("heal"), Ok(None));
    assert_eq!(said("xid:79 gpu:5"), Err(NoSignal::NoSuchGpu(5)));
    for text in ["process:1 gpu:3", "mig:2 gpu:3", "line:NVRM: Xid"] {
        assert!(matches!(said(text), Err(NoSignal::OnlyFake(_))), "{text}");
    }
}
