//! An HTTP server for one document.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::timeout;

use super::encode;
use crate::{Failure, attach, say};

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";
/// Connections at a time; more wait.
const CONNECTIONS: usize = 16;
/// What a client may take to send its request.
const PATIENCE: Duration = Duration::from_secs(10);
/// What a connection may take in all.
const LONGEST: Duration = Duration::from_secs(300);

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
        let listener = TcpListener::bind(listen).await.map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => Failure::Failed(format!(
                "--listen {listen}: the port is in use; another one does, such as \
                 {}:{}",
                listen.ip(),
                listen.port().saturating_add(1)
            )),
            _ => Failure::Failed(format!("--listen {listen}: {error}")),
        })?;
        let mut ends = [
            signal(SignalKind::terminate()).map_err(failed)?,
            signal(SignalKind::interrupt()).map_err(failed)?,
        ];
        let address = listener.local_addr().map_err(failed)?;
        say(&format!("metrics: http://{address}/metrics"));
        let [term, int] = &mut ends;
        tokio::select! {
            ended = accept(listener) => ended.map_err(failed),
            _ = term.recv() => Ok(()),
            _ = int.recv() => Ok(()),
        }
    })
}

async fn accept(listener: TcpListener) -> io::Result<()> {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    // Attachments are asked one scrape at a time.
    let turn = Arc::new(Mutex::new(()));
    loop {
        let permit = Arc::clone(&room).acquire_owned().await.map_err(io::Error::other)?;
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // Out of descriptors, or a client that has gone again: others may still come.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let turn = Arc::clone(&turn);
        tokio::spawn(async move {
            // What goes wrong on a connection is its client's to notice.
            let _ = timeout(LONGEST, converse(stream, turn)).await;
            drop(permit);
        });
    }
}

async fn converse(stream: TcpStream, turn: Arc<Mutex<()>>) -> hyper::Result<()> {
    let service = service_fn(|request| {
        let turn = Arc::clone(&turn);
        async move { Ok::<_, Infallible>(answer(request, &turn).await) }
    });
    let mut connection = http1::Builder::new();
    connection.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    connection.serve_connection(TokioIo::new(stream), service).await
}

type Answer = Response<Full<Bytes>>;

async fn answer(request: Request<Incoming>, turn: &Mutex<()>) -> Answer {
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let mut answer = plain(StatusCode::METHOD_NOT_ALLOWED, "it takes GET and HEAD");
        answer.headers_mut().insert(ALLOW, "GET, HEAD".parse().expect("a header's value"));
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
    answer.headers_mut().insert(CONTENT_TYPE, kind.parse().expect("a header's value"));
    answer
}
