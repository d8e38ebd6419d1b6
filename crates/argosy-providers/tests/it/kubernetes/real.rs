//! A real API server with its etcd, if `scripts/kube-apiserver` has built them; one for all tests.
//!
//! There is no kubelet and no controller: pods are objects, and the tests end them. Everything that
//! the API server itself decides is real: evictions, budgets, versions, rights.

use super::cluster::{ADMIN, ARGOSY, Access, Cluster, NOBODY};
use crate::harness::{await_until, free_ports};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tokio::sync::OnceCell;

/// Where `scripts/kube-apiserver` puts the programs.
const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/kube-apiserver");

/// Signs service accounts' tokens, which nobody uses here.
const KEY: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../argosy-server/tests/keys/test-only-rsa-a.pem");

/// What a cluster has to allow us, as the documentation says.
const ROLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/kubernetes-role.yaml");

/// Starts both, and ends them and their directory when its standard input ends: with the process that
/// runs the tests, however that ends.
const KEEPER: &str = r#"
"$PROGRAMS/etcd" --data-dir "$DIR/etcd" --unsafe-no-fsync \
  --listen-client-urls "$ETCD" --advertise-client-urls "$ETCD" \
  --listen-peer-urls "$PEER" --initial-advertise-peer-urls "$PEER" \
  --initial-cluster "default=$PEER" >"$DIR/etcd.log" 2>&1 &
etcd=$!
"$PROGRAMS/kube-apiserver" --etcd-servers="$ETCD" --secure-port="$PORT" \
  --bind-address=127.0.0.1 --advertise-address=127.0.0.1 --cert-dir="$DIR/certs" \
  --token-auth-file="$DIR/tokens.csv" --authorization-mode=RBAC \
  --service-account-issuer=https://argosy.test --service-account-key-file="$KEY" \
  --service-account-signing-key-file="$KEY" --service-cluster-ip-range=10.0.0.0/24 \
  --disable-admission-plugins=ServiceAccount >"$DIR/kube-apiserver.log" 2>&1 &
api=$!
cat >/dev/null
kill -9 "$api" "$etcd"
wait
rm -rf "$DIR"
"#;

struct Real {
    access: Access,
    _keeper: Child,
}

/// The API server, ready; `None` if it was not built, and the tests need not have it.
pub(crate) async fn cluster() -> Option<Cluster> {
    static REAL: OnceCell<Option<Real>> = OnceCell::const_new();
    let real = REAL.get_or_init(start).await.as_ref()?;
    Some(Cluster::at(real.access.clone()).await)
}

async fn start() -> Option<Real> {
    if !Path::new(PROGRAMS).join("kube-apiserver").exists() {
        let wanted = std::env::var_os("ARGOSY_TEST_KUBERNETES").is_some();
        assert!(!wanted, "there is no {PROGRAMS}/kube-apiserver: run scripts/kube-apiserver");
        println!("kubernetes: no API server was built, so only the one in these tests was asked");
        return None;
    }
    let dir = std::env::temp_dir().join(format!("argosy-kube-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a writable directory");
    let tokens =
        format!("{ADMIN},admin,1,\"system:masters\"\n{ARGOSY},argosy,2\n{NOBODY},nobody,3\n");
    std::fs::write(dir.join("tokens.csv"), tokens).expect("a writable directory");
    let [etcd, peer, port] = free_ports();
    let keeper = Command::new("sh")
        .args(["-c", KEEPER])
        .env("PROGRAMS", PROGRAMS)
        .env("DIR", &dir)
        .env("KEY", KEY)
        .env("ETCD", format!("http://127.0.0.1:{etcd}"))
        .env("PEER", format!("http://127.0.0.1:{peer}"))
        .env("PORT", port.to_string())
        .stdin(Stdio::piped())
        .spawn()
        .expect("a shell");
    let access = access(&dir, port).await;
    let cluster = Cluster::at(access.clone()).await;
    await_until("the API server is ready", async || cluster.is_ready().await.then_some(())).await;
    cluster.grant(&std::fs::read_to_string(ROLE).expect("the documentation's role")).await;
    println!("kubernetes: a real API server was asked, {}", cluster.version().await);
    Some(Real { access, _keeper: keeper })
}

/// The address, once the server has made itself a certificate.
async fn access(dir: &Path, port: u16) -> Access {
    let authority: PathBuf = dir.join("certs/apiserver.crt");
    await_until("the API server has a certificate", async || {
        let text = std::fs::read_to_string(&authority).unwrap_or_default();
        (text.matches("END CERTIFICATE").count() == 2).then_some(())
    })
    .await;
    Access { url: format!("https://127.0.0.1:{port}"), authority: Some(authority) }
}
