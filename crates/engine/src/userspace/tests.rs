//! A bug in the data path, planted, and one that is slow to start.

use std::net::UdpSocket;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use netdev::link::{Home, Links};
use netdev::netns::Namespace;
use nix::unistd::geteuid;

use super::*;
use crate::datapath::buffers::Buffers;

/// Receives a while, then panics.
struct Planted {
    inner: Box<dyn FrameIo>,
    frames_left: usize,
}

impl FrameIo for Planted {
    fn receive(&mut self, buffers: &mut Buffers, received: &mut Vec<u32>) -> io::Result<()> {
        self.inner.receive(buffers, received)?;
        let left = self.frames_left.checked_sub(received.len());
        self.frames_left = left.expect("planted");
        Ok(())
    }

    fn send(&mut self, buffers: &mut Buffers, frames: &[u32]) -> io::Result<usize> {
        self.inner.send(buffers, frames)
    }

    fn arrived(&mut self) -> io::Result<u64> {
        self.inner.arrived()
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.inner.fd()
    }
}

/// Takes its time over the first frames.
struct Slow {
    inner: Box<dyn FrameIo>,
    has_received: Arc<AtomicBool>,
}

impl FrameIo for Slow {
    fn receive(&mut self, buffers: &mut Buffers, received: &mut Vec<u32>) -> io::Result<()> {
        if !self.has_received.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(300));
        }
        self.inner.receive(buffers, received)?;
        self.has_received.store(true, Ordering::SeqCst);
        Ok(())
    }

    fn send(&mut self, buffers: &mut Buffers, frames: &[u32]) -> io::Result<usize> {
        self.inner.send(buffers, frames)
    }

    fn arrived(&mut self) -> io::Result<u64> {
        self.inner.arrived()
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.inner.fd()
    }
}

fn attached() -> Result<Forwarder, EngineError> {
    let config = || Some(LinkConfig::new("fifo".parse().unwrap(), Rate(10_000_000)));
    Forwarder::attach("eth0", config(), config(), HookKind::Auto)
}

#[test]
fn it_is_ready_when_every_direction_takes_packets() {
    if !geteuid().is_root() {
        eprintln!("SKIPPED, nothing was tested: BPF programs need root");
        return;
    }
    let [a, b] = [Namespace::new().unwrap(), Namespace::new().unwrap()];
    let cable = || Links::open().unwrap().add_veth("eth0", "eth0", Home::Namespace(&b));
    a.run(cable).unwrap().unwrap();
    a.run(|| Links::open().unwrap().set_up("eth0")).unwrap().unwrap();
    let mut engine = a.run(attached).unwrap().unwrap();
    let taken: Vec<_> = (0..2).map(|_| Arc::new(AtomicBool::new(false))).collect();
    for (way, has_received) in engine.ways.drain(..).zip(&taken).collect::<Vec<_>>() {
        let input = Slow { inner: way.input, has_received: Arc::clone(has_received) };
        engine.ways.push(Way { input: Box::new(input), ..way });
    }
    let stop = AtomicBool::new(false);
    let report = engine.run_live(&stop, || {
        assert!(taken.iter().all(|taken| taken.load(Ordering::SeqCst)), "{taken:?}");
        stop.store(true, Ordering::SeqCst);
    });
    assert_eq!(report.unwrap().fault, None);
}

#[test]
fn a_panic_in_the_data_path_takes_the_engine_out_of_the_way() {
    if !geteuid().is_root() {
        eprintln!("SKIPPED, nothing was tested: BPF programs need root");
        return;
    }
    let [a, b] = [Namespace::new().unwrap(), Namespace::new().unwrap()];
    let cable = || Links::open().unwrap().add_veth("eth0", "eth0", Home::Namespace(&b));
    a.run(cable).unwrap().unwrap();
    for (host, address) in [(&a, "10.9.0.1"), (&b, "10.9.0.2")] {
        host.run(|| {
            let mut links = Links::open().unwrap();
            links.set_up("eth0").unwrap();
            links.add_address("eth0", address.parse().unwrap(), 24).unwrap();
        })
        .unwrap();
    }
    let source = a.run(|| UdpSocket::bind("10.9.0.1:0")).unwrap().unwrap();
    let sink = b.run(|| UdpSocket::bind("10.9.0.2:0")).unwrap().unwrap();
    sink.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    source.connect(sink.local_addr().unwrap()).unwrap();

    let mut engine = a.run(attached).unwrap().unwrap();
    let inner = engine.ways.remove(0);
    let input = Box::new(Planted { inner: inner.input, frames_left: 20 });
    engine.ways.insert(0, Way { input, ..inner });

    let ended = thread::scope(|scope| {
        let running = scope.spawn(|| engine.run(&AtomicBool::new(false)));
        let mut packet = [0; 1];
        // Until the bug: one by one through the engine or, before it has begun, past it.
        while !running.is_finished() {
            source.send(&[1]).unwrap();
            thread::sleep(Duration::from_millis(5));
        }
        let ended = running.join();
        sink.set_nonblocking(true).unwrap();
        while sink.recv(&mut packet).is_ok() {}
        sink.set_nonblocking(false).unwrap();
        // Past it, with the process alive.
        for number in 2..100 {
            source.send(&[number]).unwrap();
            sink.recv(&mut packet).unwrap();
            assert_eq!(packet[0], number);
        }
        ended
    });
    assert!(ended.is_err(), "the panic is not hidden");
    let left = a.run(|| Links::open().unwrap().get("shortlane0")).unwrap();
    assert!(left.unwrap_err().is_gone(), "the TAPs are gone");
}
