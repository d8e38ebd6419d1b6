//! What signs what we send.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use reqwest::RequestBuilder;
use sha2::Sha256;
use std::fmt;

/// What signs the events of one receiver. It shows itself to nobody.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

/// A secret that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a webhook secret must have at least {min} bytes, this one has {0}", min = Secret::LEN_MIN)]
pub struct SecretError(usize);

impl Secret {
    /// The fewest bytes: as many as Standard Webhooks asks for, too many to guess.
    pub const LEN_MIN: usize = 24;

    /// Takes the bytes of a secret.
    ///
    /// # Errors
    /// If they are too few.
    pub fn new(bytes: Vec<u8>) -> Result<Self, SecretError> {
        if bytes.len() < Self::LEN_MIN { Err(SecretError(bytes.len())) } else { Ok(Self(bytes)) }
    }

    /// Gives a request its body and the headers of Standard Webhooks: `webhook-id`,
    /// `webhook-timestamp` and `webhook-signature`.
    pub(crate) fn seal(
        &self,
        request: RequestBuilder,
        id: &str,
        unix_s: i64,
        body: Vec<u8>,
    ) -> RequestBuilder {
        request
            .header("webhook-id", id)
            .header("webhook-timestamp", unix_s)
            .header("webhook-signature", self.sign(id, unix_s, &body))
            .body(body)
    }

    /// `v1,` and the signature over the id, the time and the body.
    fn sign(&self, id: &str, unix_s: i64, body: &[u8]) -> String {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.update(format!("{id}.{unix_s}.").as_bytes());
        mac.update(body);
        format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests;
