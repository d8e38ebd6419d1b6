//! Google's sign-in, and the metadata server's.

use super::{Inner, error};
use crate::standin::Reply;
use http::StatusCode;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode};
use serde::Deserialize;
use serde_json::json;

const PRIVATE: &str = include_str!("../../../tests/keys/test-only-rsa-a.pem");
const PUBLIC: &str = include_str!("../../../tests/keys/test-only-rsa-a.pub.pem");

const EMAIL: &str = "argosy@fleet-project.iam.gserviceaccount.com";

const GRANT: &str = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=";

#[derive(Deserialize)]
struct Wish {
    scope: String,
    iat: i64,
    exp: i64,
}

/// A key as Google gives it out.
pub(super) fn key(url: &str) -> String {
    json!({
        "type": "service_account",
        "project_id": super::PROJECT,
        "private_key_id": "0123456789abcdef",
        "private_key": PRIVATE,
        "client_email": EMAIL,
        "client_id": "100000000000000000000",
        "token_uri": format!("{url}/token"),
    })
    .to_string()
}

impl Inner {
    pub(super) fn give_token(&mut self, url: &str, body: &[u8]) -> Reply {
        let refuse = |why: &str| {
            let body = json!({ "error": "invalid_grant", "error_description": why });
            Reply::Json(StatusCode::BAD_REQUEST, body)
        };
        if self.lies.sign_in_down {
            return error(StatusCode::SERVICE_UNAVAILABLE, "backendError", "Try again.");
        }
        let form = String::from_utf8_lossy(body);
        let Some(wish) = form.strip_prefix(GRANT) else {
            return refuse("Bad Request");
        };
        let Ok(key) = DecodingKey::from_rsa_pem(PUBLIC.as_bytes()) else {
            return refuse("The stand-in has no key.");
        };
        let mut rules = Validation::new(Algorithm::RS256);
        rules.set_audience(&[format!("{url}/token")]);
        rules.set_issuer(&[EMAIL]);
        // Its clock may be a simulated one.
        rules.validate_exp = false;
        let wish = match decode::<Wish>(wish, &key, &rules) {
            Ok(wish) => wish.claims,
            Err(_) => return refuse("Invalid JWT Signature."),
        };
        let short = 0 < wish.exp - wish.iat && wish.exp - wish.iat <= 3600;
        if !short || !wish.scope.contains("https://www.googleapis.com/auth/compute") {
            return refuse("Invalid JWT: Token must be a short-lived token (60 minutes).");
        }
        if self.lies.revoked {
            return refuse("Invalid grant: account not found");
        }
        self.new_token()
    }

    pub(super) fn give_metadata_token(&mut self, flavor: &str) -> Reply {
        if flavor != "Google" {
            return error(StatusCode::FORBIDDEN, "forbidden", "Missing Metadata-Flavor header");
        }
        if self.lies.revoked {
            return error(StatusCode::NOT_FOUND, "notFound", "no such service account");
        }
        self.new_token()
    }

    fn new_token(&mut self) -> Reply {
        self.tokens_given += 1;
        let token = format!("ya29.secret-token-{}", self.tokens_given);
        self.tokens.insert(token.clone());
        let body = json!({
            "access_token": token, "expires_in": self.token_s, "token_type": "Bearer",
        });
        Reply::Json(StatusCode::OK, body)
    }
}
