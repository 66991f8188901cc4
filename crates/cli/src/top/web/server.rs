//! Looks at the device, remembers, and tells all pages that are open.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use engine::status::Status;
use http_body_util::channel::{Channel, Sender};
use hyper::body::Bytes;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::time::MissedTickBehavior;

use super::answer;
use super::history::{History, KEPT_MS};
use super::sample::Sample;
use crate::http::{self, Limits};
use crate::top::view::View;
use crate::{Failure, say};

/// Pages that are open at a time.
pub(super) const PAGES: usize = 16;
/// What one write to a page takes of the history.
const ROOM: usize = 64 * 1024;
pub(super) const LIMITS: Limits = Limits {
    connections: 64,
    // A page connects anew.
    longest: Duration::from_secs(24 * 3600),
    unread: Duration::from_secs(30),
    keep_alive: false,
};

/// What is to be served.
pub(super) struct Plan<'a> {
    pub(super) device: &'a str,
    pub(super) listen: SocketAddr,
    pub(super) interval: Duration,
}

/// Serves until a signal comes.
pub(super) fn serve<L>(plan: &Plan<'_>, first: Vec<Status>, look: L) -> Result<(), Failure>
where
    L: Fn() -> Result<Vec<Status>, Failure> + Send + Sync + 'static,
{
    let failed = |error: io::Error| Failure::Failed(format!("serving the page: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(failed)?;
    let ended = runtime.block_on(async {
        let listener = http::listen("--web", plan.listen).await?;
        let stop = http::stop_signals().map_err(failed)?;
        let at = listener.local_addr().map_err(failed)?;
        let token = match at.ip().is_loopback() {
            true => None,
            false => Some(random().map_err(Failure::Failed)?),
        };
        let site = Arc::new(Site::new(plan.device, plan.interval, token));
        say(&format!("top: {}", address(at, site.token.as_deref())));
        tokio::select! {
            ended = answered(listener, LIMITS, &site) => ended.map_err(failed),
            ended = watch_device(&site, plan.interval, first, look) => match ended {},
            () = stop => Ok(()),
        }
    });
    // A look that is under way may take as long as its engine does.
    runtime.shutdown_background();
    ended
}

/// What a browser is told to open. Who listens on all addresses is reached by name.
fn address(at: SocketAddr, token: Option<&str>) -> String {
    let host = match nix::unistd::gethostname() {
        Ok(name) if at.ip().is_unspecified() => format!("{}:{}", name.display(), at.port()),
        _ => at.to_string(),
    };
    match token {
        Some(token) => format!("http://{host}/?token={token}"),
        None => format!("http://{host}/"),
    }
}

pub(super) async fn answered(
    listener: TcpListener,
    limits: Limits,
    site: &Arc<Site>,
) -> io::Result<()> {
    let site = Arc::clone(site);
    http::accept(listener, limits, move |request| {
        let site = Arc::clone(&site);
        async move { answer::answer(&request, &site) }
    })
    .await
}

/// 128 bits that nobody guesses, as text.
fn random() -> Result<String, String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| format!("no random number: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What pages are told, and who may ask.
pub(super) struct Site {
    device: String,
    begin: String,
    pub(super) token: Option<String>,
    /// When it began, by the clock on the wall, which may jump, and by one that does not.
    began: (SystemTime, Instant),
    held: Mutex<Held>,
    /// The number of the look that comes next.
    news: watch::Sender<u64>,
    pages: Arc<Semaphore>,
}

#[derive(Default)]
struct Held {
    history: History,
    /// The latest status, as `show --json` has it.
    now: Bytes,
}

impl Site {
    pub(super) fn new(device: &str, interval: Duration, token: Option<String>) -> Self {
        let begin = json!({
            "device": device,
            "version": env!("CARGO_PKG_VERSION"),
            "interval_ms": u64::try_from(interval.as_millis()).unwrap_or(u64::MAX),
            "kept_ms": KEPT_MS,
        });
        Self {
            device: device.to_owned(),
            begin: begin.to_string(),
            token,
            began: (SystemTime::now(), Instant::now()),
            held: Mutex::new(Held { now: Bytes::from_static(b"null"), ..Held::default() }),
            news: watch::Sender::new(0),
            pages: Arc::new(Semaphore::new(PAGES)),
        }
    }

    fn with_held<T>(&self, job: impl FnOnce(&mut Held) -> T) -> T {
        job(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Unix time; it never goes back.
    fn now_ms(&self) -> u64 {
        let since = (self.began.0 + self.began.1.elapsed()).duration_since(UNIX_EPOCH);
        since.map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn take(&self, sample: &Sample, now: Option<Bytes>) {
        let text = serde_json::to_vec(sample).expect("a sample has nothing that JSON lacks");
        let end = self.with_held(|held| {
            held.history.push(sample.at_ms, Bytes::from(text));
            if let Some(now) = now {
                held.now = now;
            }
            held.history.end()
        });
        self.news.send_replace(end);
    }

    pub(super) fn begin(&self) -> &str {
        &self.begin
    }

    /// All that is remembered.
    pub(super) fn all(&self) -> (Vec<Bytes>, Bytes) {
        self.with_held(|held| (held.history.since(0, usize::MAX).0, held.now.clone()))
    }

    pub(super) fn random(&self) -> Result<String, String> {
        random()
    }

    /// What a saved page is called.
    pub(super) fn file_name(&self) -> String {
        let fits = |letter: char| letter.is_ascii_alphanumeric() || ".-_".contains(letter);
        let device = self.device.replace(|letter| !fits(letter), "_");
        let now = UNIX_EPOCH + Duration::from_millis(self.now_ms());
        let now = humantime::format_rfc3339_seconds(now).to_string().replace([':', '-'], "");
        format!("shortlane-{device}-{now}.html")
    }

    /// What a page reads: the history first, then what comes. None if there are too many pages.
    pub(super) fn stream(self: &Arc<Self>) -> Option<Channel<Bytes>> {
        let permit = Arc::clone(&self.pages).try_acquire_owned().ok()?;
        let (sender, stream) = Channel::new(1);
        let site = Arc::clone(self);
        tokio::spawn(async move {
            // It ends with its page.
            let _ = site.feed(sender).await;
            drop(permit);
        });
        Some(stream)
    }

    /// A page that is slow is given what there is when it is ready for more: nothing waits for it.
    async fn feed(
        &self,
        mut page: Sender<Bytes>,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let mut news = self.news.subscribe();
        page.send_data(Bytes::from(format!("event: begin\ndata: {}\n\n", self.begin))).await?;
        let mut next = 0;
        loop {
            let end = *news.borrow_and_update();
            while next < end {
                let (samples, after) = self.with_held(|held| held.history.since(next, ROOM));
                let mut text = Vec::with_capacity(ROOM);
                samples.iter().for_each(|sample| event(&mut text, b"sample", sample));
                next = after;
                page.send_data(Bytes::from(text)).await?;
            }
            let mut text = Vec::new();
            event(&mut text, b"now", &self.with_held(|held| held.now.clone()));
            page.send_data(Bytes::from(text)).await?;
            news.changed().await?;
        }
    }
}

fn event(text: &mut Vec<u8>, name: &[u8], data: &[u8]) {
    for part in [b"event: ", name, b"\ndata: ", data, b"\n\n"] {
        text.extend_from_slice(part);
    }
}

/// Looks at the device again and again.
pub(super) async fn watch_device<L>(
    site: &Arc<Site>,
    interval: Duration,
    first: Vec<Status>,
    look: L,
) -> std::convert::Infallible
where
    L: Fn() -> Result<Vec<Status>, Failure> + Send + Sync + 'static,
{
    let look = Arc::new(look);
    let mut view = View::new(first);
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let look = Arc::clone(&look);
        let seen = tokio::task::spawn_blocking(move || look()).await;
        let at_ms = site.now_ms();
        match seen {
            Ok(Ok(statuses)) => {
                let now = json!({ "attached": statuses }).to_string();
                view.update(statuses);
                site.take(&Sample::of(&view, at_ms), Some(Bytes::from(now)));
            }
            Ok(Err(failure)) => {
                // What comes next is attached anew.
                view.update(Vec::new());
                site.take(&Sample::gone(failure.text(), at_ms), None);
            }
            Err(_) => site.take(&Sample::gone("looking failed", at_ms), None),
        }
    }
}
