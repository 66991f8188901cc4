//! An HTTP server for one document.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use tokio::sync::Mutex;

use super::encode;
use crate::http::{self, Limits, names_loopback};
use crate::{Failure, attach, say};

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";
const LIMITS: Limits = Limits {
    connections: 16,
    longest: Duration::from_secs(300),
    unread: Duration::from_secs(30),
    keep_alive: true,
};

/// What a scrape gets.
pub(super) fn read() -> Result<String, Failure> {
    let statuses = attach::attached(None)?;
    encode::text(statuses)
        .map_err(|_| Failure::Failed("the metrics could not be written as text".into()))
}

/// Answers until a signal comes.
pub(super) fn serve(listen: SocketAddr) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::Failed(format!("serving metrics: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(failed)?.block_on(async {
        let listener = http::listen("--listen", listen).await?;
        let stop = http::stop_signals().map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        say(&format!("metrics: http://{address}/metrics"));
        // Attachments are asked one scrape at a time.
        let turn = Arc::new(Mutex::new(()));
        let answered = http::accept(listener, LIMITS, move |request| {
            let turn = Arc::clone(&turn);
            async move { answer(request, address, &turn).await }
        });
        tokio::select! {
            ended = answered => ended.map_err(failed),
            () = stop => Ok(()),
        }
    })
}

type Answer = Response<Full<Bytes>>;

/// `at` is where it listens.
async fn answer<B>(request: Request<B>, at: SocketAddr, turn: &Mutex<()>) -> Answer {
    let host = request.headers().get(HOST).map(|host| host.to_str().unwrap_or_default());
    // A name that a page in a browser has made lead here is none of this machine's.
    if at.ip().is_loopback() && host.is_some_and(|host| !names_loopback(host)) {
        return plain(
            StatusCode::FORBIDDEN,
            "this is for 127.0.0.1, [::1] and localhost; the request names another host",
        );
    }
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let mut answer = plain(StatusCode::METHOD_NOT_ALLOWED, "it takes GET and HEAD");
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return answer;
    }
    match request.uri().path() {
        "/metrics" => {
            let _turn = turn.lock().await;
            match tokio::task::spawn_blocking(read).await {
                Ok(Ok(text)) => respond(StatusCode::OK, OPENMETRICS, text),
                Ok(Err(failure)) => plain(StatusCode::SERVICE_UNAVAILABLE, failure.text()),
                Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "reading failed"),
            }
        }
        "/" => plain(StatusCode::OK, "shortlane: /metrics has what is attached"),
        _ => plain(StatusCode::NOT_FOUND, "there is /metrics"),
    }
}

fn plain(status: StatusCode, text: &str) -> Answer {
    respond(status, TEXT, format!("{text}\n"))
}

fn respond(status: StatusCode, kind: &'static str, text: String) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(text)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn on_the_loopback_no_other_host_is_answered() {
        let turn = Mutex::new(());
        let asked = async |host: Option<&str>, at: &str| {
            let mut request = Request::new(());
            if let Some(host) = host {
                request.headers_mut().insert(HOST, host.parse().unwrap());
            }
            answer(request, at.parse().unwrap(), &turn).await.status()
        };
        for host in [None, Some("localhost:9750"), Some("127.0.0.1"), Some("[::1]:9750")] {
            assert_eq!(asked(host, "127.0.0.1:9750").await, StatusCode::OK, "{host:?}");
        }
        for host in ["evil.example", "evil.example:9750", "127.0.0.1.evil.example"] {
            assert_eq!(asked(Some(host), "[::1]:9750").await, StatusCode::FORBIDDEN, "{host}");
            assert_eq!(asked(Some(host), "192.0.2.1:9750").await, StatusCode::OK, "{host}");
        }
    }
}
