//! What a pool may be measured by, as the configuration and its owner allow: asked before a spec is stored, and the
//! scope of credentials once more before they are sent.
//!
//! What a newcomer gets wrong: the name of credentials in a spec is a claim. Whoever may write a spec must not be able
//! to have somebody else's token sent to an address of his own.

use super::{Autoscaling, Jobs, MetricsFrom, Source};
use crate::field::{Constraint, FieldError, quotable};
use std::collections::BTreeMap;

/// What pools may be measured by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricsAccess {
    /// The credentials that are configured, by the name that stands in specs.
    pub credentials: BTreeMap<String, CredentialScope>,
    /// Whether something that is built in says how many jobs wait, although a spec names no source for that.
    pub knows_jobs: bool,
}

/// Where one credential may be sent, and for whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialScope {
    /// The beginning of every address that it may be sent to: scheme, host, port, and whole segments of the path.
    pub url: String,
    /// Whose specs may name it.
    pub tenant: String,
}

impl CredentialScope {
    /// Why it cannot be a scope; `None` if it can.
    pub fn complaint(&self) -> Option<&'static str> {
        match Address::of(&self.url) {
            None => {
                Some("write the beginning of an address, like https://prometheus.example:9090/")
            }
            Some(address) if !address.is_private() => Some(
                "a token must not cross a network in clear: write https, or http to a loopback address",
            ),
            Some(_) => None,
        }
    }

    /// Whether it may be sent to this address.
    pub fn covers(&self, url: &str) -> bool {
        let (Some(scope), Some(address)) = (Address::of(&self.url), Address::of(url)) else {
            return false;
        };
        let below = |rest: &str| {
            rest.is_empty() || scope.path.ends_with('/') || rest.starts_with(['/', '?', '#'])
        };
        address.is_private()
            && (address.scheme, &address.authority) == (scope.scheme, &scope.authority)
            && address.path.strip_prefix(scope.path).is_some_and(below)
    }
}

/// An address as far as credentials depend on it.
struct Address<'a> {
    scheme: &'static str,
    /// Host and port, in lower case; the scheme's own port is left out.
    authority: String,
    /// From the first `/`; empty if there is none.
    path: &'a str,
}

impl<'a> Address<'a> {
    /// `None` if it is none, or one that clients may read in more than one way.
    fn of(url: &'a str) -> Option<Self> {
        let (scheme, rest) = [("https", "https://"), ("http", "http://")].into_iter().find_map(
            |(scheme, start)| {
                let head = url.get(..start.len())?;
                head.eq_ignore_ascii_case(start).then(|| (scheme, url.get(start.len()..)))
            },
        )?;
        let rest = rest?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = (rest.get(..end)?, rest.get(end..)?);
        let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '\\' | '@');
        if authority.is_empty() || !authority.chars().all(plain) || path.contains('\\') {
            return None;
        }
        // A server may take such a segment for the way up, out of the scope.
        let up = |segment: &str| {
            matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..")
        };
        if path.split(['?', '#']).next().is_some_and(|path| path.split('/').any(up)) {
            return None;
        }
        let authority = authority.to_ascii_lowercase();
        let usual = if scheme == "https" { ":443" } else { ":80" };
        let authority = authority.strip_suffix(usual).unwrap_or(&authority).to_owned();
        Some(Self { scheme, authority, path: if path.is_empty() { "/" } else { path } })
    }

    /// Whether what is sent there is read by nobody on the way.
    fn is_private(&self) -> bool {
        self.scheme == "https" || self.is_loopback()
    }

    fn is_loopback(&self) -> bool {
        let host = match self.authority.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => self.authority.split(':').next().unwrap_or_default(),
        };
        let ip = host.parse::<core::net::IpAddr>();
        host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
    }
}

impl MetricsAccess {
    /// What speaks against a pool of this tenant being measured as it asks; empty if nothing does. `field` is where
    /// its `autoscaling` stands.
    pub fn check(&self, autoscaling: &Autoscaling, field: &str, tenant: &str) -> Vec<FieldError> {
        let from = &autoscaling.metrics;
        let mut errors: Vec<FieldError> = sources(from)
            .into_iter()
            .filter_map(|(name, source)| {
                let path = format!("{field}.metrics.{name}");
                self.check_source(source, &path, tenant)
            })
            .collect();
        if self.knows_jobs {
            return errors;
        }
        let wanted = autoscaling.policy.jobs();
        for (jobs, name, source) in [
            (Jobs::PendingJobs, "pendingJobs", &from.pending_jobs),
            (Jobs::QueueDepth, "queueDepth", &from.queue_depth),
        ] {
            if wanted.contains(&jobs) && *source == Source::Heartbeats {
                let path = format!("{field}.metrics.{name}");
                let message = format!(
                    "{path} is missing: a queue policy goes by the number of jobs, and agents do not send it. \
                     Say where it comes from: {{prometheus: {{url, query}}}} or {{http: {{url, pointer}}}}"
                );
                errors.push(FieldError::new(path, Constraint::Required, message));
            }
        }
        errors
    }

    fn check_source(&self, source: &Source, path: &str, tenant: &str) -> Option<FieldError> {
        let (kind, url, name) = match source {
            Source::Heartbeats => return None,
            Source::Prometheus { url, credentials, .. } => ("prometheus", url, credentials),
            Source::Http { url, credentials, .. } => ("http", url, credentials),
        };
        let name = name.as_deref()?;
        let message = self.refusal(name, url, tenant)?;
        let path = format!("{path}.{kind}.credentials");
        let message = format!("{path}: {message}");
        Some(FieldError::new(path, Constraint::Enum, message))
    }

    /// Why this credential is not sent to an address for a tenant; `None` if it is.
    pub fn refusal(&self, name: &str, url: &str, tenant: &str) -> Option<String> {
        let shown = quotable(name);
        // To somebody else's tenant there is no such credential.
        let Some(scope) = self.credentials.get(name).filter(|scope| scope.tenant == tenant) else {
            return Some(format!(
                "no credentials called `{shown}` are configured for the tenant {tenant}; see \
                 `metrics_credentials` in the server's configuration"
            ));
        };
        (!scope.covers(url)).then(|| {
            format!(
                "the credentials `{shown}` are for addresses below {} alone, by https or on a loopback address; \
                 change the url, or metrics_credentials.{shown}.url in the server's configuration",
                scope.url
            )
        })
    }
}

fn sources(from: &MetricsFrom) -> [(&'static str, &Source); 3] {
    let MetricsFrom { utilization, pending_jobs, queue_depth, age_max: _ } = from;
    [("utilization", utilization), ("pendingJobs", pending_jobs), ("queueDepth", queue_depth)]
}

#[cfg(test)]
mod tests;
