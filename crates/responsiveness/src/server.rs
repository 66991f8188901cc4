//! The server: a small object, a large one, somewhere to send to, and a document that names them.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::body::{LARGE, Zeros};
use crate::document::{self, Document};
use crate::error::Error;
use crate::{Security, WINDOW_BYTES, socket};

/// Connections at a time; more wait.
const CONNECTIONS: usize = 256;
/// What a client may take for its TLS handshake.
const PATIENCE: Duration = Duration::from_secs(10);
/// What a connection may take in all: longer than any test.
const LONGEST: Duration = Duration::from_secs(300);
/// Requests at a time on a connection.
const STREAMS: u32 = 128;

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
}

impl Server {
    /// Listens; with TLS under a certificate of its own making that lives as long as it.
    ///
    /// # Errors
    /// If the address cannot be had.
    pub async fn listen(address: SocketAddr, security: Security) -> Result<Self, Error> {
        let listener = TcpListener::bind(address)
            .await
            .map_err(|source| Error::Listen { address: address.to_string(), source })?;
        let tls = match security {
            Security::Plain => None,
            Security::Tls => Some(acceptor(address).map_err(|source| Error::System {
                what: "making a certificate",
                source: io::Error::other(source),
            })?),
        };
        Ok(Self { listener, tls })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `end` comes.
    pub async fn serve_until(self, end: impl Future<Output = ()>) {
        tokio::select! {
            () = self.accept() => {}
            () = end => {}
        }
    }

    async fn accept(self) {
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
            let Ok((stream, _)) = self.listener.accept().await else {
                // Out of descriptors, or a client that has gone again: others may still come.
                sleep(Duration::from_millis(100)).await;
                continue;
            };
            let tls = self.tls.clone();
            tokio::spawn(async move {
                // What goes wrong on a connection is its client's to notice.
                let _ = timeout(LONGEST, converse(stream, tls)).await;
                drop(permit);
            });
        }
    }
}

fn acceptor(address: SocketAddr) -> Result<TlsAcceptor, Box<dyn std::error::Error + Send + Sync>> {
    let names = vec![address.ip().to_string(), "localhost".to_owned()];
    let made = rcgen::generate_simple_self_signed(names)?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn converse(stream: TcpStream, tls: Option<TlsAcceptor>) -> Result<(), io::Error> {
    let _unsent = socket::keep_unsent_short(&stream)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let mut connection = http2::Builder::new(TokioExecutor::new());
    connection
        .timer(TokioTimer::new())
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .max_concurrent_streams(STREAMS);
    let service =
        service_fn(
            move |request| async move { Ok::<_, Infallible>(answer(request, scheme).await) },
        );
    match tls {
        Some(acceptor) => {
            let stream = timeout(PATIENCE, acceptor.accept(stream)).await??;
            connection.serve_connection(TokioIo::new(stream), service).await
        }
        None => connection.serve_connection(TokioIo::new(stream), service).await,
    }
    .map_err(io::Error::other)
}

type Answer = Response<Either<Full<Bytes>, Zeros>>;

async fn answer(request: Request<Incoming>, scheme: &str) -> Answer {
    let (method, path) = (request.method(), request.uri().path());
    match (path, method) {
        ("/small", &Method::GET) => zeros(1),
        ("/large", &Method::GET) => zeros(LARGE),
        ("/upload", &Method::POST) => {
            let mut body = request.into_body();
            while let Some(Ok(_)) = body.frame().await {}
            zeros(0)
        }
        (document::PATH, &Method::GET) => describe(&request, scheme),
        ("/upload", _) => refuse_method("POST"),
        ("/small" | "/large" | document::PATH, _) => refuse_method("GET"),
        _ => text(StatusCode::NOT_FOUND, "text/plain", format!("there is {}\n", document::PATH)),
    }
}

/// The document, with the host as the client calls it.
fn describe(request: &Request<Incoming>, scheme: &str) -> Answer {
    let host = request.uri().authority().map(ToString::to_string);
    let document = host.and_then(|host| Document::of(&format!("{scheme}://{host}")).ok());
    match document.as_ref().map(serde_json::to_string) {
        Some(Ok(document)) => text(StatusCode::OK, "application/json", document),
        _ => text(StatusCode::BAD_REQUEST, "text/plain", "the request names no host\n".into()),
    }
}

fn zeros(bytes: u64) -> Answer {
    let mut answer = Response::new(Either::Right(Zeros(bytes)));
    let kind = HeaderValue::from_static("application/octet-stream");
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

fn refuse_method(allowed: &'static str) -> Answer {
    let mut answer =
        text(StatusCode::METHOD_NOT_ALLOWED, "text/plain", format!("it takes {allowed}\n"));
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

fn text(status: StatusCode, kind: &'static str, text: String) -> Answer {
    let mut answer = Response::new(Either::Left(Full::new(Bytes::from(text))));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}
