//! Sums of one window: of each hop, of each flow and of each of its streams.

use super::{Delays, Freezes};
use paceline_records::{PacketClass, PacketRecord};
use paceline_scenario::{Scenario, Window};
use paceline_units::{Ecn, Rate, Time, TimeDelta};

/// Everything that is summed up in one window.
pub(crate) struct WindowTotals {
    pub window: Window,
    pub hops: Vec<HopTotals>,
    pub flows: Vec<FlowTotals>,
    /// One-way delay over propagation of the flows that pooled distributions cover.
    pub one_way: Delays,
}

/// Sums of one hop, in bytes unless the name says otherwise.
#[derive(Clone, Default)]
pub(crate) struct HopTotals {
    pub crossed: u64,
    /// Bytes that were served and then lost on the wire.
    pub lost_on_wire: u64,
    pub dropped: u64,
    pub dropped_packets: u64,
    pub marked_packets: u64,
    pub waited: Delays,
}

/// Sums of one flow, in bytes unless the name says otherwise.
#[derive(Clone, Default)]
pub(crate) struct FlowTotals {
    pub sent: u64,
    pub received: u64,
    pub ecn_packets: u64,
    pub marked_packets: u64,
    /// Media packets received.
    pub media: u64,
    pub fec: RepairTotals,
    pub rtx: RepairTotals,
    pub lost: u64,
    pub owd: Delays,
    pub rtt: Delays,
    pub rtt_queue: Delays,
    /// Bytes that TCP's application read.
    pub read: u64,
    /// Integral of the target over time, bit, and how long there was one.
    pub target_bits: f64,
    pub target_time: TimeDelta,
    pub streams: Vec<StreamTotals>,
}

/// Bytes of one kind of repair.
#[derive(Clone, Copy, Default)]
pub(crate) struct RepairTotals {
    pub sent: u64,
    pub received: u64,
}

#[derive(Clone, Default)]
pub(crate) struct StreamTotals {
    pub bytes: u64,
    pub frames: u64,
    pub dropped: u64,
    pub delay: Delays,
    pub freezes: Freezes,
}

/// The target of a flow, and since when it is in force.
pub(crate) type TargetInForce = Option<(Rate, Time)>;

impl WindowTotals {
    /// Creates empty sums; without `packet_delays`, distributions to which each packet or frame adds stay empty.
    pub fn new(scenario: &Scenario, window: Window, packet_delays: bool) -> Self {
        let delays = if packet_delays { Delays::new() } else { Delays::disabled() };
        let hop = HopTotals { waited: delays.clone(), ..HopTotals::default() };
        let stream = StreamTotals { delay: delays.clone(), ..StreamTotals::default() };
        let flow = |streams: usize| FlowTotals {
            owd: delays.clone(),
            rtt: Delays::new(),
            rtt_queue: Delays::new(),
            streams: vec![stream.clone(); streams],
            ..FlowTotals::default()
        };
        let plan = &scenario.plan;
        Self {
            window,
            hops: vec![hop; plan.hops.len()],
            flows: plan.flows.iter().map(|f| flow(f.media().map_or(0, |m| m.streams.len()))).collect(),
            one_way: delays.clone(),
        }
    }
}

#[inline]
pub(crate) fn contains(window: &Window, at: Time) -> bool {
    window.from <= at && at < window.to
}

impl FlowTotals {
    #[inline]
    pub fn add_sent(&mut self, packet: &PacketRecord) {
        let bytes = packet.size.as_bytes();
        self.sent += bytes;
        match packet.class {
            PacketClass::Fec => self.fec.sent += bytes,
            PacketClass::Retransmission => self.rtx.sent += bytes,
            _ => {}
        }
    }

    #[inline]
    pub fn add_arrived(&mut self, packet: &PacketRecord, delay: TimeDelta, ecn: Ecn) {
        let bytes = packet.size.as_bytes();
        self.received += bytes;
        self.ecn_packets += u64::from(ecn.is_capable());
        self.marked_packets += u64::from(ecn == Ecn::Ce);
        match packet.class {
            PacketClass::Media => self.media += bytes,
            PacketClass::Fec => self.fec.received += bytes,
            PacketClass::Retransmission => self.rtx.received += bytes,
            _ => {}
        }
        self.owd.add(delay);
    }

    /// Adds the target that was in force up to `to`, as far as it lies in the window.
    pub fn add_target(&mut self, target: TargetInForce, to: Time, window: &Window) {
        if let Some((rate, since)) = target {
            let span = to.min(window.to) - since.max(window.from);
            if span.is_positive() {
                self.target_bits += rate.as_bps_f64() * span.as_secs_f64();
                self.target_time += span;
            }
        }
    }
}
