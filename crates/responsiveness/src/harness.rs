//! The document of a server that may be anybody's, for fuzzing.

use crate::document::Document;
use crate::{Error, Security};

/// What a client takes from a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// Where it asks for large and small answers, and where it sends to.
    pub urls: [String; 3],
    /// Which host it asks instead of the one that the document came from, and the port there.
    pub instead: Option<(String, u16)>,
    /// The same document, as a server writes it.
    pub again: Vec<u8>,
}

/// Reads the document of the server at an address.
///
/// # Errors
/// Those of a client that finds such a document.
///
/// # Panics
/// If a document that was read cannot be written.
pub fn document(bytes: &[u8], security: Security, address: &str) -> Result<Read, Error> {
    let foreign = |found| Error::Foreign { address: address.to_owned(), found };
    let document = Document::parse(bytes, security.scheme()).map_err(foreign)?;
    let instead = document.instead(security.port());
    let urls = &document.urls;
    Ok(Read {
        urls: [&urls.large, &urls.small, &urls.upload].map(ToString::to_string),
        instead: instead.map(|(host, port)| (host.to_owned(), port)),
        again: serde_json::to_vec(&document).expect("a document has nothing that JSON lacks"),
    })
}
