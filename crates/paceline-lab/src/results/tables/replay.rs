//! Reads the tables of a run as the events that they were written from.

use super::reader::RunTables;
use super::schema::{
    CAPTURED, CLASS, DELAY, ECN, ECN_NAMES, EVENT, EVENTS, FLOW, FRAME_SIZE, FRAMES, FRAMES_DROPPED, FlowKind, HOP,
    LEFT, MARKED, PACKET, PACKET_SIZE, PACKETS, PacketEvent, REASON, REFUSED, STREAM, TIME, WAITED,
};
use crate::results::StoreError;
use paceline_netsim::records::{
    DropReason, EventObserver, EventRecord, HalfName, PacketClass, PacketRecord, RunHeader,
};
use paceline_units::{DataSize, Ecn, FlowId, Rate, StreamId, Time, TimeDelta};
use parquet::data_type::{BoolType, Int32Type, Int64Type};

impl RunTables<'_> {
    /// Passes the events of the run to `observer`: those of one table after the other, each in order of time. Changes of the link
    /// during the run are not among them, nor are signals that `header` does not name.
    pub fn replay(&self, header: &RunHeader, observer: &mut dyn EventObserver) -> Result<(), StoreError> {
        self.replay_packets(observer)?;
        self.replay_flows(observer)?;
        self.replay_frames(observer)?;
        self.replay_signals(header, observer)
    }

    fn replay_packets(&self, observer: &mut dyn EventObserver) -> Result<(), StoreError> {
        let [mut time, mut number, mut waited, mut left, mut delay] = [const { Vec::new() }; 5];
        let [mut event, mut flow, mut class, mut hop, mut reason, mut ecn] = [const { Vec::new() }; 6];
        let (mut size, mut marked) = (Vec::new(), Vec::new());
        self.row_groups(PACKETS, |group| {
            group.required::<Int64Type>(TIME, &mut time)?;
            group.check_times(TIME, &time)?;
            group.names(EVENT, &EVENTS, &mut event)?;
            group.required::<Int64Type>(PACKET, &mut number)?;
            group.names(FLOW, &self.about().flows, &mut flow)?;
            group.names(CLASS, &PacketClass::NAMES, &mut class)?;
            group.required::<Int32Type>(PACKET_SIZE, &mut size)?;
            group.names(HOP, &self.about().hops, &mut hop)?;
            let at_hop = [PacketEvent::Crossed as u16, PacketEvent::Dropped as u16];
            group.names_exist(HOP, |row| at_hop.contains(&event[row]))?;
            group.optional::<Int64Type>(WAITED, &mut waited)?;
            group.optional::<Int64Type>(LEFT, &mut left)?;
            group.optional::<Int64Type>(DELAY, &mut delay)?;
            group.names(REASON, &DropReason::NAMES, &mut reason)?;
            group.optional::<BoolType>(MARKED, &mut marked)?;
            group.names(ECN, &ECN_NAMES, &mut ecn)?;
            for row in 0..time.len() {
                let (at, hop) = (Time::from_nanos(time[row]), hop[row]);
                let packet = PacketRecord {
                    packet: number[row] as u64,
                    flow: FlowId(flow[row]),
                    class: PacketClass::ALL[usize::from(class[row])],
                    size: bytes(size[row]),
                };
                let left = Time::from_nanos(left[row]);
                observer.on_event(&match PacketEvent::ALL[usize::from(event[row])] {
                    PacketEvent::Sent => EventRecord::Sent { at, packet },
                    PacketEvent::Crossed => {
                        let waited = TimeDelta::from_nanos(waited[row]);
                        EventRecord::Crossed { at, hop, packet, waited, left, marked: marked[row] }
                    }
                    PacketEvent::Dropped => {
                        let reason = DropReason::ALL[usize::from(reason[row])];
                        // Only packets that are lost on the wire were served before.
                        let left = (reason == DropReason::Loss).then_some(left);
                        EventRecord::Dropped { at, hop, packet, reason, left }
                    }
                    PacketEvent::Arrived => {
                        let (delay, ecn) = (TimeDelta::from_nanos(delay[row]), Ecn::from_bits(ecn[row] as u8));
                        EventRecord::Arrived { at, packet, delay, ecn }
                    }
                });
            }
            Ok(())
        })
    }

    fn replay_flows(&self, observer: &mut dyn EventObserver) -> Result<(), StoreError> {
        // A decision has two rows: the target, then the pacing rate.
        let mut target = Rate::ZERO;
        self.flows(|rows| {
            for row in rows {
                let (at, flow, value) = (Time::from_nanos(row.time_ns), FlowId(row.flow), row.value);
                let rate = Rate::from_bps_f64(value);
                observer.on_event(&match row.kind {
                    FlowKind::RoundTrip => EventRecord::RoundTrip { at, flow, rtt: TimeDelta::from_millis_f64(value) },
                    FlowKind::FractionLost => EventRecord::FractionLost { at, flow, fraction: value },
                    FlowKind::Target => {
                        target = rate;
                        continue;
                    }
                    FlowKind::Pacing => EventRecord::Decision { at, flow, target, pacing: rate },
                    FlowKind::Remb => EventRecord::Remb { at, flow, rate },
                    FlowKind::Read => EventRecord::Read { at, flow, size: DataSize::from_bytes(value as u64) },
                });
            }
        })
    }

    fn replay_frames(&self, observer: &mut dyn EventObserver) -> Result<(), StoreError> {
        let [mut time, mut captured] = [const { Vec::new() }; 2];
        let [mut stream, mut size, mut dropped] = [const { Vec::new() }; 3];
        let (mut flow, mut refused) = (Vec::new(), Vec::new());
        self.row_groups(FRAMES, |group| {
            group.required::<Int64Type>(TIME, &mut time)?;
            group.check_times(TIME, &time)?;
            group.names(FLOW, &self.about().flows, &mut flow)?;
            group.required::<Int32Type>(STREAM, &mut stream)?;
            group.check_streams(STREAM, &stream)?;
            group.optional::<Int64Type>(CAPTURED, &mut captured)?;
            group.check_times(CAPTURED, &captured)?;
            group.optional::<Int32Type>(FRAME_SIZE, &mut size)?;
            group.optional::<Int32Type>(FRAMES_DROPPED, &mut dropped)?;
            group.required::<BoolType>(REFUSED, &mut refused)?;
            for row in 0..time.len() {
                let (at, flow) = (Time::from_nanos(time[row]), FlowId(flow[row]));
                let stream = StreamId(u8::try_from(stream[row]).unwrap_or(u8::MAX));
                observer.on_event(&match refused[row] {
                    true => EventRecord::FrameDropped { at, flow, stream },
                    false => EventRecord::Frame {
                        at,
                        flow,
                        stream,
                        captured: Time::from_nanos(captured[row]),
                        size: bytes(size[row]),
                        dropped: u16::try_from(dropped[row]).unwrap_or(u16::MAX),
                    },
                });
            }
            Ok(())
        })
    }

    fn replay_signals(&self, header: &RunHeader, observer: &mut dyn EventObserver) -> Result<(), StoreError> {
        self.signals(|rows| {
            for row in rows {
                let half = if row.receive { HalfName::Receive } else { HalfName::Send };
                let names = header.signals.get(usize::from(row.flow)).map(|halves| &halves[half as usize]);
                let index = names.and_then(|names| names.iter().position(|(name, _)| name == row.name));
                if let Some(signal) = index.and_then(|index| u8::try_from(index).ok()) {
                    let (at, flow, value) = (Time::from_nanos(row.time_ns), FlowId(row.flow), row.value);
                    observer.on_event(&EventRecord::Signal { at, flow, half, signal, value });
                }
            }
        })
    }
}

fn bytes(size: i32) -> DataSize {
    DataSize::from_bytes(u64::try_from(size).unwrap_or(0))
}
