//! A connection to the server, and what is asked on it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::header::{ACCEPT_ENCODING, CONTENT_TYPE};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, ProtocolVersion, SignatureScheme};
use socket2::Socket;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::body::{LARGE, Zeros};
use crate::document::{self, Document, Urls};
use crate::error::Error;
use crate::socket::{self, Keeper};
use crate::{Security, WINDOW_BYTES};

/// What anything but a load may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// A server that has said where it has what.
#[derive(Clone)]
pub(crate) struct Target {
    address: SocketAddr,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    urls: Urls,
}

impl Target {
    /// Asks the server's document. `server` is a host and a port.
    pub(crate) async fn find(server: &str, security: Security) -> Result<Self, Error> {
        let unreachable = |source| Error::Unreachable { address: server.to_owned(), source };
        let address = first_address(server).await.map_err(unreachable)?;
        let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
        let tls = match security {
            Security::Plain => None,
            Security::Tls => {
                let name = host.trim_matches(['[', ']']).to_owned();
                let name = ServerName::try_from(name)
                    .map_err(|error| unreachable(io::Error::other(error)))?;
                Some((connector(), name))
            }
        };
        let scheme = security.scheme();
        let base = format!("{scheme}://{server}");
        let foreign = |found: String| Error::Foreign { address: base.clone(), found };
        // One side with TLS and one without hear nothing that makes sense of each other.
        let garbled =
            |found: String| foreign(format!("{found}; is --plain given to one side only?"));
        let urls = Document::of(&base).map_err(|error| foreign(error.to_string()))?.urls;
        let mut target = Self { address, tls, urls };
        let at: Uri = format!("{base}{}", document::PATH).parse().expect("as `urls` were");
        let mut connection = match timeout(PATIENCE, target.connect()).await {
            Ok(connected) => connected.map_err(|fault| match fault {
                Fault::Connect(source) => unreachable(source),
                Fault::Other(found) => garbled(found),
            })?,
            Err(_) => return Err(unreachable(io::ErrorKind::TimedOut.into())),
        };
        let read = async {
            let response = connection.request(Method::GET, &at, Zeros(0)).await?;
            let body = Limited::new(response.into_body(), document::LARGEST).collect().await;
            body.map(|body| body.to_bytes()).map_err(|error| error.to_string())
        };
        let bytes = timeout(PATIENCE, read)
            .await
            .map_err(|_| foreign(format!("no answer within {PATIENCE:?}")))?
            .map_err(garbled)?;
        let document = Document::parse(&bytes, scheme).map_err(foreign)?;
        if let Some((host, port)) = document.instead(security.port()) {
            let found = first_address(&format!("{host}:{port}")).await;
            target.address = found.map_err(|error| {
                foreign(document::line(&format!("its test endpoint {host}: {error}")))
            })?;
        }
        target.urls = document.urls;
        Ok(target)
    }

    /// Where the server is.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) async fn connect(&self) -> Result<Connection, Fault> {
        let begin = Instant::now();
        let stream = TcpStream::connect(self.address).await.map_err(Fault::Connect)?;
        let tcp = begin.elapsed();
        let system = |error: io::Error| Fault::Other(error.to_string());
        let network = socket::round_trip(&stream).map_err(system)?;
        let unsent = socket::keep_unsent_short(&stream).map_err(system)?;
        let socket = Socket::from(stream.as_fd().try_clone_to_owned().map_err(system)?);
        let mut tls = None;
        let stream: Box<dyn Transport> = match &self.tls {
            None => Box::new(stream),
            Some((connector, name)) => {
                let begin = Instant::now();
                let stream = connector.connect(name.clone(), stream).await.map_err(system)?;
                let session = stream.get_ref().1;
                if session.alpn_protocol() != Some(b"h2") {
                    return Err(Fault::Other("it does not speak HTTP/2".into()));
                }
                // Before version 1.3 a handshake is two round trips.
                let trips = if session.protocol_version() == Some(ProtocolVersion::TLSv1_3) {
                    1
                } else {
                    2
                };
                tls = Some(begin.elapsed() / trips);
                Box::new(stream)
            }
        };
        let (requests, driver) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| Fault::Other(error.to_string()))?;
        // It ends with the last handle of its requests; how is seen there.
        tokio::spawn(async move { drop(driver.await) });
        Ok(Connection {
            requests,
            socket: Arc::new(socket),
            unsent: Arc::new(unsent),
            took: Handshakes { tcp, tls, network },
        })
    }

    /// Times a connection of its own and a small request on it.
    pub(crate) async fn probe(&self) -> Result<(Handshakes, Duration), String> {
        let mut connection = self.connect().await.map_err(|fault| fault.to_string())?;
        let http = connection.small(&self.urls.small).await?;
        Ok((connection.took, http))
    }

    /// Times a small request on a connection that carries load.
    pub(crate) async fn probe_on(&self, connection: &Connection) -> Result<Duration, String> {
        connection.clone().small(&self.urls.small).await
    }

    /// Receives on the connection; returns only when that fails.
    pub(crate) async fn download(&self, mut connection: Connection) -> String {
        let response = match connection.request(Method::GET, &self.urls.large, Zeros(0)).await {
            Ok(response) => response,
            Err(found) => return found,
        };
        let mut body = response.into_body();
        loop {
            match body.frame().await {
                Some(Ok(_)) => {}
                Some(Err(error)) => return format!("a download broke off: {}", root(&error)),
                None => return "a download ended before the test did".into(),
            }
        }
    }

    /// Sends on the connection; returns only when that fails.
    pub(crate) async fn upload(&self, mut connection: Connection) -> String {
        match connection.request(Method::POST, &self.urls.upload, Zeros(LARGE)).await {
            Ok(_) => "an upload was answered before it ended".into(),
            Err(found) => found,
        }
    }
}

async fn first_address(server: &str) -> io::Result<SocketAddr> {
    let mut addresses = lookup_host(server).await?;
    addresses.next().ok_or_else(|| io::Error::other("the name has no address"))
}

trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}

/// Why there is no connection.
pub(crate) enum Fault {
    Connect(io::Error),
    Other(String),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Connect(error) => write!(f, "{error}"),
            Self::Other(found) => f.write_str(found),
        }
    }
}

/// How long it took until the connection stood.
#[derive(Clone, Copy)]
pub(crate) struct Handshakes {
    pub(crate) tcp: Duration,
    /// For one round trip; none without TLS.
    pub(crate) tls: Option<Duration>,
    /// The TCP handshake as the kernel timed it: the network alone, without this program.
    pub(crate) network: Duration,
}

/// A connection that stands.
#[derive(Clone)]
pub(crate) struct Connection {
    requests: SendRequest<Zeros>,
    socket: Arc<Socket>,
    #[expect(dead_code, reason = "it works as long as it is held")]
    unsent: Arc<Keeper>,
    took: Handshakes,
}

impl Connection {
    /// Bytes that it has received and sent for good.
    pub(crate) fn carried(&self) -> io::Result<(u64, u64)> {
        socket::info(&*self.socket).map(|info| (info.bytes_received, info.bytes_acked))
    }

    async fn small(&mut self, at: &Uri) -> Result<Duration, String> {
        let begin = Instant::now();
        let response = self.request(Method::GET, at, Zeros(0)).await?;
        let body = Limited::new(response.into_body(), 1).collect().await;
        let took = begin.elapsed();
        match body.map(|body| body.to_bytes().len()) {
            Ok(1) => Ok(took),
            Ok(_) => Err(format!("{at} has no byte in it")),
            Err(error) => Err(format!("{at}: {error}")),
        }
    }

    async fn request(
        &mut self,
        method: Method,
        at: &Uri,
        body: Zeros,
    ) -> Result<Response<Incoming>, String> {
        let mut request = Request::builder().method(method).uri(at);
        request = request.header(ACCEPT_ENCODING, "identity");
        if body.0 > 0 {
            request = request.header(CONTENT_TYPE, "application/octet-stream");
        }
        let request = request.body(body).expect("a method, an address and known headers");
        let response = self.requests.send_request(request).await;
        let response = response.map_err(|error| format!("{at}: {}", root(&error)))?;
        match response.status() {
            StatusCode::OK => Ok(response),
            other => Err(format!("{at}: it answers {other}")),
        }
    }
}

/// What is at the bottom of it: hyper's own words are general.
fn root(error: &hyper::Error) -> String {
    let mut error: &dyn std::error::Error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// Speaks HTTP/2 to servers whoever they are: zeros are exchanged, and timed; a router's own
/// certificate is as good as any.
fn connector() -> TlsConnector {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("the provider has them")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    // Each probe is somebody new.
    config.resumption = rustls::client::Resumption::disabled();
    TlsConnector::from(Arc::new(config))
}

#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
