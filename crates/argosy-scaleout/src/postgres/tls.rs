//! How connections are encrypted.

use argosy_store::engine::Error;
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

/// Trusts what the system trusts; nothing is read when `sslmode=disable`.
pub(super) fn connector(mode: SslMode) -> Result<MakeRustlsConnect, Error> {
    let mut roots = RootCertStore::empty();
    if mode != SslMode::Disable {
        // What cannot be read is not trusted; if it was needed, the connection says so.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let config = ClientConfig::builder_with_provider(aws_lc_rs::default_provider().into())
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Refused(format!("TLS cannot be set up: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}
