// SPDX-License-Identifier: MIT OR Apache-2.0
//! A link of real packets between two namespaces. Its classifier logs segments, and drops some.

use super::*;
use crate::testbed::classify::SingleFlow;
use crate::testbed::device::Device;
use crate::testbed::link::{Classifier, Link, LinkFlow, PacketIdentity, Side};
use crate::testbed::timing::Timing;
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use paceline_netsim::network::Network;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

pub const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];

/// Acknowledgements reach the link when they reach the sender.
const PATH: &str = "id = \"wire\"\ntitle = \"\"\nduration = \"1h\"\n[path.forward]\ndelay = \"20ms\"\n[[flow]]\nid = \"tcp\"\nkind = \"tcp\"\n";

/// A TCP segment at the sender's end of the wire.
#[derive(Clone, Copy, Debug)]
pub struct LoggedSegment {
    from: Side,
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
            if segment.from == Side::Far {
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
    carrier: Option<JoinHandle<()>>,
}

impl Wire {
    /// Creates a wire that drops every `lost`-th packet with data.
    pub fn between(namespaces: &[Namespace; 2], lost: Option<u64>) -> Self {
        let devices = [0, 1].map(|end: usize| Device::open(&namespaces[end], "wire", ADDRESSES[end]).unwrap());
        let plan = load(&Origin::from_text("wire", PATH), &Changes::default(), &Registry::standard()).unwrap().plan;
        let shared = Arc::new(Shared::default());
        let carried = shared.clone();
        let carrier = std::thread::spawn(move || {
            let (streams, clock) = (RandomStreams::new(1), Monotonic::starting_in(TimeDelta::ZERO));
            let mut classifier = Logger { shared: &carried, lost, data: 0 };
            let (network, end) = (Network::new(&plan, &streams, ()), Time::ZERO + plan.duration);
            let flows = vec![LinkFlow { sender: Side::Near, stop: end }];
            let link = Link::new(network, devices, &mut classifier, flows, clock, Timing::Sleep);
            link.run(end, &carried.over).unwrap();
        });
        Self { shared, carrier: Some(carrier) }
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
        self.carrier.take().into_iter().for_each(|carrier| carrier.join().unwrap());
    }
}

struct Logger<'a> {
    shared: &'a Shared,
    lost: Option<u64>,
    /// Number of packets with data.
    data: u64,
}

impl Classifier for Logger<'_> {
    fn classify(&mut self, from: Side, packet: &[u8]) -> Option<PacketIdentity> {
        let segment = parse(from, packet)?;
        self.shared.log.lock().unwrap().0.push(segment);
        self.data += u64::from(segment.payload > 0);
        let is_lost = segment.payload > 0 && self.lost.is_some_and(|every| self.data.is_multiple_of(every));
        let is_carried = !is_lost && !self.shared.cut.load(Ordering::Relaxed);
        let mut any = SingleFlow::ANY_PACKET;
        is_carried.then(|| any.classify(from, packet))?
    }
}

/// Parses a TCP segment; `None` for another packet.
fn parse(from: Side, packet: &[u8]) -> Option<LoggedSegment> {
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
