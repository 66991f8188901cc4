//! Anonymous network namespaces.
//!
//! They live as long as something refers to them, a process in them or a [`Namespace`], and are
//! gone with all their interfaces after that, even if it was killed.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::thread;

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::unistd::{getegid, geteuid};

/// Why no network namespace can be had, with the remedy.
#[derive(Debug)]
pub struct NetnsError {
    source: io::Error,
    remedy: Option<String>,
}

impl fmt::Display for NetnsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot make a private network namespace: {}", self.source)?;
        match &self.remedy {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for NetnsError {}

/// Moves the calling process into a fresh network namespace of its own. One that is not root
/// first gets a user namespace in which it is; that requires that it has one thread only, so
/// this is for the start of a program. Its children start in the same namespaces.
///
/// # Errors
/// If the system allows neither; the error says what would make it.
pub fn isolate() -> Result<(), NetnsError> {
    let Err(refused) = unshare(CloneFlags::CLONE_NEWNET) else {
        return Ok(());
    };
    if refused != Errno::EPERM {
        return Err(NetnsError { source: refused.into(), remedy: None });
    }
    let (user, group) = (geteuid(), getegid());
    let map = || {
        unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET)?;
        // A process may map its group only after giving up the right to drop groups.
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("0 {group} 1"))
    };
    map().map_err(|source| NetnsError { source, remedy: Some(remedy()) })
}

/// What keeps an ordinary user from making user namespaces here.
fn remedy() -> String {
    let setting = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let knobs = [
        ("kernel.unprivileged_userns_clone", "0", "1"),
        ("user.max_user_namespaces", "0", "10000"),
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ];
    let blocking = knobs.iter().find(|(name, forbids, _)| {
        setting(&format!("/proc/sys/{}", name.replace('.', "/"))).as_deref() == Some(forbids)
    });
    match blocking {
        Some((name, forbids, allows)) => format!(
            "run as root, or allow user namespaces: {name} is {forbids} here, \
             `sysctl {name}={allows}` changes that"
        ),
        None => "run as root; user namespaces are refused here (in a container, its \
                 configuration has to allow them)"
            .to_owned(),
    }
}

/// A network namespace without a name. It vanishes, with the interfaces in it, when the last
/// of its handles and processes is gone.
pub struct Namespace {
    fd: OwnedFd,
}

impl Namespace {
    /// A new, empty namespace; the caller stays where it is.
    ///
    /// # Errors
    /// If permission is lacking: see [`isolate`] for how to get it.
    pub fn new() -> Result<Self, NetnsError> {
        let made = thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            Self::current()
        });
        let made = made.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        made.map_err(|source: io::Error| {
            let remedy = (source.raw_os_error() == Some(libc::EPERM)).then(remedy);
            NetnsError { source, remedy }
        })
    }

    /// The namespace that the calling thread is in.
    ///
    /// # Errors
    /// If `/proc` does not show it.
    pub fn current() -> io::Result<Self> {
        Ok(Self { fd: File::open("/proc/thread-self/ns/net")?.into() })
    }

    /// Moves the calling thread into the namespace. Sockets that it has keep theirs; threads
    /// that it starts begin here.
    ///
    /// # Errors
    /// If permission is lacking.
    pub fn enter(&self) -> io::Result<()> {
        Ok(setns(&self.fd, CloneFlags::CLONE_NEWNET)?)
    }

    /// Runs `job` on a thread in the namespace and waits for its result.
    ///
    /// # Errors
    /// If permission is lacking.
    pub fn run<T: Send>(&self, job: impl FnOnce() -> T + Send) -> io::Result<T> {
        thread::scope(|scope| {
            let thread = scope.spawn(|| self.enter().map(|()| job()));
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Its file.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A number of the calling thread's network namespace that no other one has until the next boot;
/// its inode number is given to another one as soon as it is free.
///
/// # Errors
/// If the kernel has no such numbers (before Linux 5.14).
pub fn cookie() -> io::Result<u64> {
    const SO_NETNS_COOKIE: libc::c_int = 71;
    let (family, kind) = (AddressFamily::Inet, SockType::Datagram);
    let socket = socket(family, kind, SockFlag::SOCK_CLOEXEC, None)?;
    let mut cookie = 0u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, which `cookie` has.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(cookie) }
}

/// Sets a network parameter of the calling thread's namespace, such as
/// `ipv4.tcp_no_metrics_save`.
///
/// # Errors
/// If there is none of this name, or permission is lacking.
pub fn set_parameter(name: &str, value: &str) -> io::Result<()> {
    fs::write(format!("/proc/sys/net/{}", name.replace('.', "/")), value)
}
