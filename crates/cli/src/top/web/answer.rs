//! Who gets an answer, and which.

use std::sync::Arc;

use http_body_util::{Either, Full, channel::Channel};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_DISPOSITION, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use super::page::{self, Saved};
use super::server::Site;
use crate::http::names_loopback;

/// A whole text, or a stream of events.
pub(super) type Answer = Response<Either<Full<Bytes>, Channel<Bytes>>>;

const TEXT: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";

pub(super) fn answer(request: &Request<Incoming>, site: &Arc<Site>) -> Answer {
    let mut answer = route(request, site);
    for (name, value) in [
        ("content-security-policy", page::POLICY),
        ("cross-origin-resource-policy", "same-origin"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("cache-control", "no-store"),
    ] {
        let value = HeaderValue::from_static(value);
        answer.headers_mut().insert(HeaderName::from_static(name), value);
    }
    answer
}

fn route(request: &Request<Incoming>, site: &Arc<Site>) -> Answer {
    if let Some(refusal) = refusal(request, site) {
        return refusal;
    }
    match request.uri().path() {
        "/" => respond(StatusCode::OK, HTML, page::live()),
        "/stream" => match site.stream() {
            Some(stream) => {
                let mut answer = Response::new(Either::Right(stream));
                let kind = HeaderValue::from_static("text/event-stream");
                answer.headers_mut().insert(CONTENT_TYPE, kind);
                answer
            }
            None => plain(StatusCode::SERVICE_UNAVAILABLE, "as many pages are open as are served"),
        },
        "/save" => match site.random() {
            Ok(nonce) => save(site, &nonce),
            Err(text) => plain(StatusCode::INTERNAL_SERVER_ERROR, &text),
        },
        path => match page::file(path) {
            Some((kind, text)) => respond(StatusCode::OK, kind, text),
            None => plain(StatusCode::NOT_FOUND, "there is the page, at /"),
        },
    }
}

fn save(site: &Site, nonce: &str) -> Answer {
    let (samples, now) = site.all();
    let text = page::saved(&Saved { begin: site.begin(), samples: &samples, now: &now }, nonce);
    let mut answer = respond(StatusCode::OK, HTML, text);
    let name = format!("attachment; filename=\"{}\"", site.file_name());
    if let Ok(name) = HeaderValue::from_str(&name) {
        answer.headers_mut().insert(CONTENT_DISPOSITION, name);
    }
    answer
}

/// What whoever may not ask is told.
fn refusal(request: &Request<Incoming>, site: &Site) -> Option<Answer> {
    if request.method() != Method::GET {
        let mut refusal = plain(StatusCode::METHOD_NOT_ALLOWED, "it takes GET");
        refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
        return Some(refusal);
    }
    let header = |name: HeaderName| {
        let mut values = request.headers().get_all(name).iter();
        let only = values.next()?.to_str().ok()?;
        values.next().is_none().then_some(only)
    };
    let forbidden = |text| Some(plain(StatusCode::FORBIDDEN, text));
    let path = request.uri().path();
    match &site.token {
        // A name that an attacker has made lead here is none of this machine's.
        None if !header(HOST).is_some_and(names_loopback) => {
            return forbidden(
                "this is for 127.0.0.1, [::1] and localhost; the request names another host",
            );
        }
        Some(token) if page::file(path).is_none() && !has_token(request.uri().query(), token) => {
            return forbidden("it takes the address with the token that shortlane has printed");
        }
        _ => {}
    }
    // Pages of others could not read it, but they could take up places. To follow a link is fine.
    let from = header(HeaderName::from_static("sec-fetch-site"));
    if path != "/" && !matches!(from, None | Some("same-origin" | "none")) {
        return forbidden("this is for the page itself");
    }
    None
}

pub(super) fn has_token(query: Option<&str>, token: &str) -> bool {
    let mut pairs = query.unwrap_or_default().split('&');
    pairs.find_map(|pair| pair.strip_prefix("token=")).is_some_and(|given| is_same(given, token))
}

/// Compares in a time that does not tell how much is the same.
fn is_same(given: &str, token: &str) -> bool {
    let differing = given.bytes().zip(token.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == token.len() && std::hint::black_box(differing) == 0
}

fn plain(status: StatusCode, text: &str) -> Answer {
    respond(status, TEXT, format!("{text}\n"))
}

fn respond(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Either::Left(Full::new(text.into())));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}
