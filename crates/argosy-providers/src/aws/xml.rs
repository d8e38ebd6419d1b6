//! Answers in XML, read with limits: nothing that AWS, or somebody who answers in its place, sends can make
//! us run out of stack, memory or time.

use quick_xml::Reader;
use quick_xml::events::Event;
use serde::de::DeserializeOwned;

/// How much one answer may hold. A page of a thousand machines is about 6 MiB; bytes.
pub(super) const BODY_MAX: usize = 16 * 1024 * 1024;

/// How deep elements may lie in each other. EC2's own deepest is about ten.
const DEPTH_MAX: usize = 32;

/// Why an answer cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum XmlError {
    #[error("the answer is longer than {BODY_MAX} bytes")]
    TooLong,
    #[error("the answer is not UTF-8")]
    NotText,
    #[error("the elements of the answer lie deeper than {DEPTH_MAX} in each other")]
    TooDeep,
    #[error("the answer brings its own entities")]
    Entities,
    #[error("the answer is not XML: {0}")]
    Malformed(String),
    #[error("the answer is not what was asked for: {0}")]
    Unexpected(String),
}

/// Reads an answer.
pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, XmlError> {
    if BODY_MAX < body.len() {
        return Err(XmlError::TooLong);
    }
    let text = std::str::from_utf8(body).map_err(|_| XmlError::NotText)?;
    check(text)?;
    quick_xml::de::from_str(text).map_err(|cause| XmlError::Unexpected(cause.to_string()))
}

/// Whether it is one whole document of bearable depth.
fn check(text: &str) -> Result<(), XmlError> {
    let mut reader = Reader::from_str(text);
    let mut depth = 0_usize;
    let mut roots = 0_usize;
    loop {
        let event = reader.read_event().map_err(|cause| XmlError::Malformed(cause.to_string()))?;
        match event {
            Event::Start(_) => {
                roots += usize::from(depth == 0);
                depth += 1;
                if DEPTH_MAX < depth {
                    return Err(XmlError::TooDeep);
                }
            }
            Event::Empty(_) => roots += usize::from(depth == 0),
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::DocType(_) => return Err(XmlError::Entities),
            Event::Eof => break,
            Event::Text(_)
            | Event::CData(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::PI(_)
            | Event::GeneralRef(_) => {}
        }
    }
    match (depth, roots) {
        (0, 1) => Ok(()),
        (0, _) => Err(XmlError::Malformed(format!("{roots} root elements"))),
        // An answer that broke off looks like this.
        (depth, _) => Err(XmlError::Malformed(format!("{depth} elements have no end"))),
    }
}

/// Text as it may stand in an element or attribute.
pub(super) fn escape(text: &str) -> String {
    quick_xml::escape::escape(text).into_owned()
}

#[cfg(test)]
mod tests;
