//! A wire between two namespaces: a TUN device in each, and threads that carry packets from one to the other after a while,
//! lose some, and write down what they see.

use super::*;
use crate::clock::Monotonic;
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use nix::poll::PollFlags;
use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tun_rs::{DeviceBuilder, SyncDevice};

pub const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];

/// How long a packet is under way.
const DELAY: TimeDelta = TimeDelta::from_millis(10);

/// A TCP segment, as the sender's end of the wire sees it.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    from: usize,
    payload: u64,
    sequence: u32,
    acknowledgment: u32,
}

#[derive(Default)]
pub struct Log(Vec<Seen>);

impl Log {
    /// Bytes of data in each segment that has some.
    pub fn sizes(&self) -> Vec<u64> {
        self.0.iter().map(|seen| seen.payload).filter(|payload| *payload > 0).collect()
    }

    /// Most bytes that the sender had under way: from the acknowledgment that it knew to the end of what it sent.
    pub fn flight(&self) -> u64 {
        let (mut acknowledged, mut most) = (0, 0);
        for seen in &self.0 {
            if seen.from == 1 {
                acknowledged = seen.acknowledgment;
            } else if seen.payload > 0 {
                let end = seen.sequence.wrapping_add(seen.payload as u32);
                most = most.max(end.wrapping_sub(acknowledged) as i32);
            }
        }
        most as u64
    }
}

#[derive(Default)]
struct Shared {
    seen: Mutex<Log>,
    cut: AtomicBool,
    over: AtomicBool,
}

pub struct Wire {
    shared: Arc<Shared>,
    carriers: Vec<JoinHandle<()>>,
}

impl Wire {
    /// One that loses every so manieth packet of data.
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

    /// Nothing comes through any more.
    pub fn cut(&self) {
        self.shared.cut.store(true, Ordering::Relaxed);
    }

    pub fn seen(&self) -> Log {
        std::mem::take(&mut *self.shared.seen.lock().unwrap())
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
    let mut under_way: VecDeque<(Time, Vec<u8>)> = VecDeque::new();
    let mut buffer = [0; 65_536];
    let mut data = 0;
    while !shared.over.load(Ordering::Relaxed) {
        let now = clock.now();
        while let Some((_, packet)) = under_way.pop_front_if(|(due, _)| *due <= now) {
            if from == 1 {
                shared.seen.lock().unwrap().0.extend(look(from, &packet));
            }
            let _ = far.send(&packet); // a full device drops it, as a wire may
        }
        let next = under_way.front().map_or(LOOK, |(due, _)| *due - clock.now());
        let slice = Duration::from_nanos(next.as_nanos().clamp(0, LOOK.as_nanos()) as u64);
        let mut polled = [PollFd::new(near.as_fd(), PollFlags::POLLIN)];
        ppoll(&mut polled, Some(TimeSpec::from_duration(slice)), None).unwrap();
        while let Ok(len) = near.recv(&mut buffer) {
            let packet = &buffer[..len];
            let Some(segment) = look(from, packet) else { continue };
            data += u64::from(segment.payload > 0);
            if from == 0 {
                shared.seen.lock().unwrap().0.push(segment);
            }
            let loses = segment.payload > 0 && lost.is_some_and(|every| data % every == 0);
            if !loses && !shared.cut.load(Ordering::Relaxed) {
                under_way.push_back((clock.now() + DELAY, packet.to_vec()));
            }
        }
    }
}

/// `None`: not a TCP segment.
fn look(from: usize, packet: &[u8]) -> Option<Seen> {
    let sliced = SlicedPacket::from_ip(packet).ok()?;
    let (Some(NetSlice::Ipv4(_)), Some(TransportSlice::Tcp(tcp))) = (&sliced.net, &sliced.transport) else {
        return None;
    };
    Some(Seen {
        from,
        payload: tcp.payload().len() as u64,
        sequence: tcp.sequence_number(),
        acknowledgment: tcp.acknowledgment_number(),
    })
}
