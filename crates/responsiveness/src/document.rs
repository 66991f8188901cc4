//! The document at the well-known address: where a server has what.

use hyper::Uri;
use serde::{Deserialize, Serialize};

/// The draft's well-known path.
pub(crate) const PATH: &str = "/.well-known/nq";
/// Most bytes of a document that are read.
pub(crate) const LARGEST: usize = 64 << 10;
/// Most characters that are told of one.
const TOLD: usize = 300;

/// The draft's document. A name that appears twice or is missing makes it invalid; names that
/// are not known are ignored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Document {
    version: u64,
    pub(crate) urls: Urls,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    test_endpoint: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Urls {
    #[serde(rename = "large_download_url", with = "text")]
    pub(crate) large: Uri,
    #[serde(rename = "small_download_url", with = "text")]
    pub(crate) small: Uri,
    #[serde(rename = "upload_url", with = "text")]
    pub(crate) upload: Uri,
}

impl Document {
    /// That of a server whose addresses begin so: `https://router:4043`.
    pub(crate) fn of(base: &str) -> Result<Self, hyper::http::uri::InvalidUri> {
        let url = |name: &str| format!("{base}/{name}").parse();
        let urls = Urls { large: url("large")?, small: url("small")?, upload: url("upload")? };
        Ok(Self { version: 1, urls, test_endpoint: None })
    }

    /// Reads one; says in a line what is wrong with it.
    pub(crate) fn parse(bytes: &[u8], scheme: &str) -> Result<Self, String> {
        Self::read(bytes, scheme).map_err(|found| line(&found))
    }

    fn read(bytes: &[u8], scheme: &str) -> Result<Self, String> {
        let document: Self = serde_json::from_slice(bytes)
            .map_err(|error| format!("its document at {PATH} is not one: {error}"))?;
        if document.version != 1 {
            return Err(format!("its document has version {}, not 1", document.version));
        }
        let Urls { large, small, upload } = &document.urls;
        for url in [large, small, upload] {
            if url.scheme_str() != Some(scheme) || url.authority() != large.authority() {
                return Err(format!(
                    "its addresses {large}, {small}, {upload} must begin with {scheme}:// and \
                     name one host"
                ));
            }
        }
        match &document.test_endpoint {
            Some(text) if !is_host_name(text) => {
                Err(format!("its test endpoint '{text}' is no host name"))
            }
            _ => Ok(document),
        }
    }

    /// The host that is to be asked instead of the one that the document came from, and the port
    /// there, which is `port` if the addresses name none.
    pub(crate) fn instead(&self, port: u16) -> Option<(&str, u16)> {
        let endpoint = self.test_endpoint.as_deref()?;
        Some((endpoint, self.urls.small.port_u16().unwrap_or(port)))
    }
}

/// Whether a text can be the name of a host, as the draft asks for, or an IPv4 address.
fn is_host_name(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    !text.is_empty() && text.bytes().all(is_part)
}

/// What a server has said, as a line that does nothing to a terminal, cut off where it gets long.
pub(crate) fn line(found: &str) -> String {
    let shown: String = found.chars().take(TOLD + 1).map(shown).collect();
    match shown.char_indices().nth(TOLD) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown,
    }
}

fn shown(character: char) -> String {
    if character.is_control() || "\u{2028}\u{2029}".contains(character) {
        character.escape_unicode().to_string()
    } else {
        character.to_string()
    }
}

mod text {
    use hyper::Uri;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(uri: &Uri, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(uri)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Uri, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"version": 1, "new": 7, "urls": {"large_download_url": "https://h/l",
        "small_download_url": "https://h/s", "upload_url": "https://h/u"}}"#;

    fn refusal(text: &str) -> String {
        Document::parse(text.as_bytes(), "https").unwrap_err()
    }

    #[test]
    fn unknown_names_are_ignored() {
        let document = Document::parse(GOOD.as_bytes(), "https").unwrap();
        assert_eq!(document.urls.small.path(), "/s");
        assert_eq!(document.test_endpoint, None);
    }

    #[test]
    fn capitals_in_a_host_are_of_no_account() {
        let text = GOOD.replace("https://h/s", "https://H/s");
        let document = Document::parse(text.as_bytes(), "https").unwrap();
        assert_eq!(document.urls.small.host(), Some("H"));
    }

    #[test]
    fn a_test_endpoint_is_the_name_of_a_host() {
        let with = |name: &str| {
            GOOD.replace("\"new\"", &format!("\"test_endpoint\": \"{name}\", \"new\""))
        };
        for name in ["near-1.example.com", "192.0.2.1"] {
            assert!(Document::parse(with(name).as_bytes(), "https").is_ok(), "{name}");
        }
        for name in ["", "a b", "near.example.com/x", "host\u{2029}", "\\u001b[2J", "[::1]"] {
            let said = refusal(&with(name));
            assert!(said.contains("test endpoint") && !said.contains('\u{1b}'), "{said}");
        }
    }

    #[test]
    fn what_the_draft_calls_invalid_is_refused() {
        assert!(refusal(&GOOD.replace("\"version\": 1", "\"version\": 2")).contains("version 2"));
        assert!(refusal(&GOOD.replace("https://h/s", "https://other/s")).contains("one host"));
        assert!(refusal(&GOOD.replace("https://h/s", "http://h/s")).contains("https://"));
        assert!(refusal(&GOOD.replace("upload_url", "up")).contains("upload_url"));
        assert!(refusal(&GOOD.replace("\"new\"", "\"version\"")).contains("duplicate"));
        assert!(refusal("<html>").contains("is not one"));
    }

    #[test]
    fn a_refusal_is_a_line_whatever_the_server_says() {
        let odd = GOOD.replace("https://h/s", "http://h/\u{9b}2J\u{85}\u{2028}");
        let said = refusal(&odd);
        assert!(said.contains("http://h/\\u{9b}2J\\u{85}\\u{2028}, https://h/u"), "{said}");
        let long = GOOD.replace("https://h/s", &format!("http://h/{}", "s".repeat(60_000)));
        for said in [refusal(&long), refusal(&format!("{{\"version\": \"{}\"", "v".repeat(60_000)))]
        {
            assert!(said.starts_with("its ") && said.ends_with('…'), "{said}");
            assert_eq!(said.chars().count(), TOLD + 1);
        }
    }

    #[test]
    fn what_a_server_writes_a_client_reads() {
        let written = serde_json::to_vec(&Document::of("https://[fe80::1]:4043").unwrap()).unwrap();
        let read = Document::parse(&written, "https").unwrap();
        assert_eq!(read.urls.large.to_string(), "https://[fe80::1]:4043/large");
    }
}
