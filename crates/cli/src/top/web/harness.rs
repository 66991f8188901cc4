//! The page on bytes instead of a connection, for fuzzing.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::runtime::Runtime;

use super::server::{LIMITS, Site};
use super::{LEAST_INTERVAL, answer};
use crate::http;

/// A server of the page, whose device is gone.
pub struct Web {
    site: Arc<Site>,
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
        let site = Site::new(Self::SECRET, LEAST_INTERVAL, token.map(str::to_owned));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Self { site: Arc::new(site), runtime: runtime.expect("an event queue") }
    }

    /// What is answered on a connection that brings these bytes and then ends.
    ///
    /// # Panics
    /// If the connection does not end.
    #[must_use]
    pub fn ask(&self, bytes: &[u8]) -> Vec<u8> {
        self.runtime.block_on(async {
            let (mut client, server) = duplex(1 << 20);
            client.write_all(bytes).await.expect("there is room for it");
            client.shutdown().await.expect("it can be ended");
            let site = Arc::clone(&self.site);
            let answered = http::converse(server, LIMITS, move |request| {
                let site = Arc::clone(&site);
                async move { answer::answer(&request, &site) }
            });
            let mut said = Vec::new();
            // What is not HTTP is the client's to notice.
            let _ = answered.await;
            client.read_to_end(&mut said).await.expect("it ends");
            said
        })
    }
}
