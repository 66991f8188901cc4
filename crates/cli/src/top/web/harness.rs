//! The page on bytes instead of a connection, for fuzzing.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::runtime::Runtime;

use super::sample::Sample;
use super::server::{LIMITS, Site};
use super::{LEAST_INTERVAL, answer};
use crate::http;

/// Times that everything goes on, until what is still open stays so: a page is told of its device
/// for as long as it is there.
const TURNS: usize = 16;
/// Until who tells a page has seen that it is gone.
const SEEN: usize = 2;

/// A server of the page, whose device is gone.
pub struct Web {
    token: Option<String>,
    runtime: Runtime,
}

impl Web {
    /// What it tells of the device.
    pub const SECRET: &str = "what-only-the-page-may-know";

    /// One that takes this token, or none.
    ///
    /// # Panics
    /// If the system gives no event queue.
    #[must_use]
    pub fn new(token: Option<&str>) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Self { token: token.map(str::to_owned), runtime: runtime.expect("an event queue") }
    }

    /// What is answered on a connection that brings these bytes and then ends, as far as that comes
    /// without news of the device.
    ///
    /// # Panics
    /// If what is in memory cannot be read or written.
    #[must_use]
    pub fn ask(&self, bytes: &[u8]) -> Vec<u8> {
        let site = Arc::new(Site::new(Self::SECRET, LEAST_INTERVAL, self.token.clone()));
        self.runtime.block_on(async {
            let (mut client, server) = duplex(1 << 20);
            client.write_all(bytes).await.expect("there is room for it");
            client.shutdown().await.expect("it can be ended");
            let answered = http::converse(server, LIMITS, |request| {
                let site = Arc::clone(&site);
                async move { answer::answer(&request, &site) }
            });
            tokio::select! {
                // What is not HTTP is the client's to notice.
                _ = answered => {}
                () = turns(TURNS) => {}
            }
            let mut said = Vec::new();
            client.read_to_end(&mut said).await.expect("it ends");
            // Whoever tells a page that is gone notices that with the next news.
            site.take(&Sample::gone("it is gone", 0), None);
            turns(SEEN).await;
            said
        })
    }
}

async fn turns(turns: usize) {
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
}
