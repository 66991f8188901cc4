//! Client and server over the loopback; and servers that are none, lie or die.

use std::time::Duration;

use responsiveness::{Client, Error, Load, Security, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

async fn started(security: Security) -> (String, oneshot::Sender<()>) {
    let server = Server::listen("127.0.0.1:0".parse().unwrap(), security).await.unwrap();
    let address = server.address().unwrap().to_string();
    let (end, ended) = oneshot::channel();
    tokio::spawn(server.serve_until(async { drop(ended.await) }));
    (address, end)
}

async fn measures(security: Security) {
    let (address, _end) = started(security).await;
    let client = Client::find(&address, security).await.unwrap();
    assert_eq!(client.server().to_string(), address);
    for load in Load::ALL {
        let measured = client.measure(load, 4).await.unwrap();
        assert_eq!(measured.down_bps > 0.0, load.is_down(), "{load:?}");
        assert_eq!(measured.up_bps > 0.0, load.is_up(), "{load:?}");
        assert_eq!(measured.samples.tls.is_empty(), security == Security::Plain);
        assert_eq!(measured.samples.tcp.len(), measured.delays.len());
        let rpm = measured.samples.round_trips_per_minute(load != Load::Idle).unwrap();
        assert!(rpm > 0.0, "{load:?}: {rpm}");
    }
}

#[tokio::test]
async fn it_measures_over_tls() {
    measures(Security::Tls).await;
}

#[tokio::test]
async fn it_measures_without_tls() {
    measures(Security::Plain).await;
}

#[tokio::test]
async fn nobody_there_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let error = Client::find(&address, Security::Tls).await.err().unwrap();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains(&address), "{error}");
}

#[tokio::test]
async fn another_kind_of_server_is_told() {
    for security in [Security::Tls, Security::Plain] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 1000]).await;
            let _ = stream.write_all(b"SSH-2.0-nothing\r\n").await;
        });
        let error = Client::find(&address, security).await.err().unwrap();
        assert!(matches!(error, Error::Foreign { .. }), "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
    }
}

#[tokio::test]
async fn tls_on_one_side_alone_is_told() {
    for (server, client) in [(Security::Plain, Security::Tls), (Security::Tls, Security::Plain)] {
        let (address, _end) = started(server).await;
        let error = Client::find(&address, client).await.err().unwrap();
        assert!(matches!(error, Error::Foreign { .. }), "{error}");
        assert!(error.to_string().ends_with("is --plain given to one side only?"), "{error}");
    }
}

/// Its connections break with it, since its runtime ends.
#[test]
fn a_server_that_dies_ends_the_phase() {
    let (say, hear) = std::sync::mpsc::channel();
    let (kill, killed) = oneshot::channel::<()>();
    let server = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (address, _end) = started(Security::Tls).await;
            say.send(address).unwrap();
            let _ = killed.await;
        });
    });
    let address = hear.recv().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::find(&address, Security::Tls).await.unwrap();
        let end = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            kill.send(()).unwrap();
        };
        let (result, ()) = tokio::join!(client.measure(Load::Both, 60), end);
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Gone { phase: "both", .. }), "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
    });
    server.join().unwrap();
}
