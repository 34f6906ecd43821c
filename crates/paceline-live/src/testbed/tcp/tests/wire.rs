//! A wire between two namespaces: a TUN device in each, and threads that forward packets with a delay, drop some, and log
//! segments.

use super::*;
use crate::testbed::clock::Monotonic;
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use nix::poll::PollFlags;
use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tun_rs::{DeviceBuilder, SyncDevice};

pub const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];

const DELAY: TimeDelta = TimeDelta::from_millis(10);

/// A TCP segment at the sender's end of the wire.
#[derive(Clone, Copy, Debug)]
pub struct LoggedSegment {
    from: usize,
    payload: u64,
    sequence: u32,
    acknowledgment: u32,
}

#[derive(Default)]
pub struct Log(Vec<LoggedSegment>);

impl Log {
    /// Returns the data size of each segment with data, bytes.
    pub fn sizes(&self) -> Vec<u64> {
        self.0.iter().map(|segment| segment.payload).filter(|payload| *payload > 0).collect()
    }

    /// Returns the maximum flight size of the sender: from the last received acknowledgment to the end of sent data.
    pub fn flight(&self) -> u64 {
        let (mut acknowledged, mut most) = (0, 0);
        for segment in &self.0 {
            if segment.from == 1 {
                acknowledged = segment.acknowledgment;
            } else if segment.payload > 0 {
                let end = segment.sequence.wrapping_add(segment.payload as u32);
                most = most.max(end.wrapping_sub(acknowledged) as i32);
            }
        }
        most as u64
    }
}

#[derive(Default)]
struct Shared {
    log: Mutex<Log>,
    cut: AtomicBool,
    over: AtomicBool,
}

pub struct Wire {
    shared: Arc<Shared>,
    carriers: Vec<JoinHandle<()>>,
}

impl Wire {
    /// Creates a wire that drops every `lost`-th packet with data.
    pub fn between(namespaces: &[Namespace; 2], lost: Option<u64>) -> Self {
        let devices = [0, 1].map(|end: usize| {
            let open = || {
                let builder = DeviceBuilder::new().name("wire").ipv4(ADDRESSES[end], 24, None).mtu(1500);
                let device = builder.build_sync()?;
                device.set_nonblocking(true)?;
                Ok(device)
            };
            Arc::new(namespaces[end].within(open).unwrap())
        });
        let shared = Arc::new(Shared::default());
        let carriers = [0, 1].map(|from: usize| {
            let (devices, shared) = (devices.clone(), shared.clone());
            std::thread::spawn(move || carry(from, &devices[from], &devices[1 - from], lost, &shared))
        });
        Self { shared, carriers: carriers.into() }
    }

    /// Drops every later packet.
    pub fn cut(&self) {
        self.shared.cut.store(true, Ordering::Relaxed);
    }

    /// Returns and clears the log.
    pub fn take_log(&self) -> Log {
        std::mem::take(&mut *self.shared.log.lock().unwrap())
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        for carrier in self.carriers.drain(..) {
            carrier.join().unwrap();
        }
    }
}

fn carry(from: usize, near: &SyncDevice, far: &SyncDevice, lost: Option<u64>, shared: &Shared) {
    let clock = Monotonic::starting_in(TimeDelta::ZERO);
    let mut in_transit: VecDeque<(Time, Vec<u8>)> = VecDeque::new();
    let mut buffer = [0; 65_536];
    let mut data = 0;
    while !shared.over.load(Ordering::Relaxed) {
        let now = clock.now();
        while let Some((_, packet)) = in_transit.pop_front_if(|(due, _)| *due <= now) {
            if from == 1 {
                shared.log.lock().unwrap().0.extend(parse(from, &packet));
            }
            let _ = far.send(&packet); // a full device drops it, as a wire may
        }
        let next = in_transit.front().map_or(POLL_INTERVAL, |(due, _)| *due - clock.now());
        let slice = Duration::from_nanos(next.as_nanos().clamp(0, POLL_INTERVAL.as_nanos()) as u64);
        let mut polled = [PollFd::new(near.as_fd(), PollFlags::POLLIN)];
        ppoll(&mut polled, Some(TimeSpec::from_duration(slice)), None).unwrap();
        while let Ok(len) = near.recv(&mut buffer) {
            let packet = &buffer[..len];
            let Some(segment) = parse(from, packet) else { continue };
            data += u64::from(segment.payload > 0);
            if from == 0 {
                shared.log.lock().unwrap().0.push(segment);
            }
            let loses = segment.payload > 0 && lost.is_some_and(|every| data % every == 0);
            if !loses && !shared.cut.load(Ordering::Relaxed) {
                in_transit.push_back((clock.now() + DELAY, packet.to_vec()));
            }
        }
    }
}

/// Parses a TCP segment; `None` for another packet.
fn parse(from: usize, packet: &[u8]) -> Option<LoggedSegment> {
    let sliced = SlicedPacket::from_ip(packet).ok()?;
    let (Some(NetSlice::Ipv4(_)), Some(TransportSlice::Tcp(tcp))) = (&sliced.net, &sliced.transport) else {
        return None;
    };
    Some(LoggedSegment {
        from,
        payload: tcp.payload().len() as u64,
        sequence: tcp.sequence_number(),
        acknowledgment: tcp.acknowledgment_number(),
    })
}
