// SPDX-License-Identifier: MIT OR Apache-2.0
//! The crate `goog_cc`: libwebrtc's send side of 2024-12 (da2a3d6c4d), ported line by line.
//!
//! The crate has no pacer, no packet history and no feedback parser. These are the flow's, as for every controller. How each
//! input and output is translated:
//!
//! | Paceline | crate | translation |
//! |---|---|---|
//! | first call | constructor, `on_process_interval`, `on_network_availability` | the order of libwebrtc's `RtpTransportControllerSend` |
//! | setup | `TargetRateConstraints` | start, minimum and maximum as they are; the field trials of the crate |
//! | sent packet | `on_sent_packet` | times in µs; the size on the network; bytes in flight with this packet |
//! | feedback | `on_transport_packets_feedback` | arrivals in the 250 µs of the wire format; packets that were reported lost and arrived after all count as arrivals |
//! | feedback without arrivals | the next message | the crate panics at a message without an arrival, so its losses are passed on with the next one |
//! | RTCP report | `on_transport_loss_report` | 256 packets of which the lost fraction is lost: what libwebrtc computes from more than 20 packets |
//! | short RTCP report | the same with no packets | its time alone counts |
//! | round-trip time | `on_round_trip_time_update` | rounded to milliseconds, as in libwebrtc; 0 ms is left out |
//! | REMB | `on_remote_bitrate_report` | as it is |
//! | limits of the streams | `on_streams_config` | their sums; a change of the maximum by at most 10 % is the share of headers and no change |
//! | limits of the flow | `on_target_rate_constraints` | as they are, without a start rate |
//! | route | `on_network_route_change` | as it is: the start rate is then at most the acknowledged rate |
//! | timeout | `on_process_interval` | every 25 ms, without the pacer's queue, which libwebrtc passes only in a field trial |
//! | target, padding | `TargetTransferRate`, `PacerConfig` | within the flow's limits |
//! | pacing | `PacerConfig`, at least the target | in bursts of 40 ms up to 63 kB, those of libwebrtc's pacer |
//! | window | `congestion_window` | none in practice: the crate pushes the target back instead |
//! | probes | `ProbeClusterConfig` | rate, duration and count as they are; the bytes are rate times duration, as in libwebrtc's prober |
//!
//! What is lost: the share by which a full window asks the encoder to drop frames (`cwnd_reduce_ratio`), because sources here have no
//! such input. [`googcc`](paceline::GoogCcConfig) leaves it out as well. Whether a packet is audio is not passed on; the crate ignores it by
//! default.
//!
//! The crate reads the system's clock for the start of an application-limited region. Only periodic probes use that time, and they are
//! off by default, so decisions do not depend on it.

use crate::time::{arrival_us, us};
use core::fmt;
use goog_cc::experiments::FieldTrials;
use goog_cc::network_control::{NetworkControllerConfig, NetworkControllerInterface};
use goog_cc::transport::{
    NetworkAvailability, NetworkControlUpdate, NetworkRouteChange, PacedPacketInfo, PacketResult, ProbeClusterConfig,
    ProcessInterval, RemoteBitrateReport, RoundTripTimeUpdate, SentPacket as CrateSentPacket, StreamsConfig,
    TargetRateConstraints, TransportLossReport, TransportPacketsFeedback,
};
use goog_cc::units::{DataRate, DataSize as CrateSize, TimeDelta as CrateTimeDelta, Timestamp};
use goog_cc::{GoogCcConfig, GoogCcNetworkController};
use paceline::{
    Bounds, Config, Controller, Decision, Entry, Event, Feedback, FeedbackRequirement, Message, PacketReport,
    Parameters, ProbeCluster, ProbeId, ReceiverReport, RoundTrip, SendHalf, SendSnapshot, SentPacket, Setup, Signals,
    StreamState, Window,
};
use paceline_units::{DataSize, Rate, StreamId, Time, TimeDelta};
use send_wrapper::SendWrapper;
use std::collections::{BTreeMap, VecDeque};

pub(crate) const NAME: &str = "goog_cc-0.1.4";

/// The interval of regular updates (`get_process_interval`).
const PROCESS_INTERVAL: TimeDelta = TimeDelta::from_millis(25);
/// The shortest and the longest interval of feedback (libwebrtc's `TransportSequenceNumberFeedbackGenenerator`).
const FEEDBACK: (TimeDelta, TimeDelta) = (TimeDelta::from_millis(50), TimeDelta::from_millis(250));
/// The time by which packets may leave early, and the largest burst (libwebrtc's `pacing_controller.cc`).
const BURST: (TimeDelta, DataSize) = (TimeDelta::from_millis(40), DataSize::from_bytes(63_000));
/// The pacing rate over the target before the first update (`DEFAULT_PACE_MULTIPLIER`).
const PACING_FACTOR: f64 = 2.5;
/// The packets of a report, of which a fraction in steps of 1/256 is lost.
const REPORTED: f64 = 256.0;
/// A change of the streams' maxima by at most this share of them is no change: that of `googcc`.
const ALLOCATION_CHANGE: f64 = 0.1;

pub(crate) fn entry() -> Entry {
    let summary = "another implementation: the crate goog_cc 0.1.4, a port of libwebrtc of 2024-12";
    Entry::new(NAME, summary, "goog_cc 0.1.4 (libwebrtc da2a3d6c4d, 2024-12)", GoogCcCrate)
}

#[derive(Clone, Debug)]
struct GoogCcCrate;

impl Parameters for GoogCcCrate {}

impl Config for GoogCcCrate {
    fn halves(&self, setup: &Setup) -> Controller {
        let (interval, longest) = FEEDBACK;
        let feedback = Some(FeedbackRequirement::new(interval, longest));
        Controller::from_sender(Half::new(setup)).with_feedback(feedback)
    }
    /// Without the guard, which is no part of the crate.
    fn build(&self, setup: &Setup) -> Controller {
        self.halves(setup)
    }
}

struct Half {
    /// `None` before the first call, which has the first time.
    controller: Option<SendWrapper<GoogCcNetworkController>>,
    setup: Setup,
    bounds: Bounds,
    decision: Decision,
    next_process: Time,
    clusters: VecDeque<ProbeCluster>,
    /// What the crate needs to know about each cluster with its packets.
    announced: BTreeMap<ProbeId, PacedPacketInfo>,
    streams: Vec<(StreamId, Rate, Rate)>,
    /// The sums of the streams' minima and maxima that were last passed on.
    allocated: (Rate, Rate),
    /// Losses of messages without an arrival.
    held_back: Vec<PacketResult>,
}

impl fmt::Debug for Half {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("goog_cc").field("decision", &self.decision).finish_non_exhaustive()
    }
}

impl SendSnapshot for Half {
    fn snapshot(&self) -> Box<dyn SendHalf> {
        panic!("the crate goog_cc offers no copy of its state, so a call under {NAME} cannot be branched");
    }
}

impl Half {
    fn new(setup: &Setup) -> Self {
        Self {
            controller: None,
            setup: *setup,
            bounds: setup.bounds(),
            decision: Decision::new(setup.start).with_pacing(setup.start.scale(PACING_FACTOR)).with_burst(BURST.0),
            next_process: Time::ZERO,
            clusters: VecDeque::new(),
            announced: BTreeMap::new(),
            streams: Vec::new(),
            allocated: (Rate::ZERO, Rate::ZERO),
            held_back: Vec::new(),
        }
    }

    /// Passes a call on and applies its result.
    fn call(&mut self, now: Time, call: impl FnOnce(&mut GoogCcNetworkController) -> NetworkControlUpdate) {
        self.begin(now);
        let controller = self.controller.as_mut().expect("the first call creates the controller");
        let update = call(controller);
        self.apply(&update);
    }

    /// Creates the controller at the first call.
    fn begin(&mut self, now: Time) {
        if self.controller.is_some() {
            return;
        }
        let constraints = self.constraints(now, self.bounds, Some(self.setup.start));
        let config = NetworkControllerConfig {
            field_trials: FieldTrials::default(),
            constraints,
            stream_based_config: StreamsConfig::default(),
        };
        let controller = GoogCcNetworkController::new(config, GoogCcConfig::default());
        self.controller = Some(SendWrapper::new(controller));
        self.process(now);
        self.handle_availability(now, true);
    }

    fn process(&mut self, now: Time) {
        self.next_process = now + PROCESS_INTERVAL;
        let message = ProcessInterval { at_time: timestamp(now), pacer_queue: None };
        self.call(now, |controller| controller.on_process_interval(message));
    }

    fn constraints(&self, now: Time, bounds: Bounds, start: Option<Rate>) -> TargetRateConstraints {
        TargetRateConstraints {
            at_time: timestamp(now),
            min_data_rate: Some(data_rate(bounds.min)),
            max_data_rate: Some(data_rate(bounds.max)),
            starting_rate: start.map(data_rate),
        }
    }

    fn apply(&mut self, update: &NetworkControlUpdate) {
        let decision = &mut self.decision;
        if let Some(rate) = update.target_rate {
            decision.target = self.bounds.clamp(from_data_rate(rate.target_rate));
            decision.stable_target = from_data_rate(rate.stable_target_rate).min(decision.target);
        }
        if let Some(pacer) = update.pacer_config {
            decision.pacing = from_data_rate(pacer.data_rate());
            decision.padding = from_data_rate(pacer.pad_rate());
        }
        if let Some(window) = update.congestion_window {
            decision.window = Some(Window::Outstanding(DataSize::from_bytes(window.bytes().max(0) as u64)));
        }
        decision.pacing = decision.pacing.max(decision.target);
        decision.padding = decision.padding.min(decision.target);
        decision.burst = BURST.0.min(BURST.1 / decision.pacing);
        update.probe_cluster_configs.iter().for_each(|config| self.announce(config));
    }

    fn announce(&mut self, config: &ProbeClusterConfig) {
        let id = config.id as ProbeId;
        let bytes = (config.target_data_rate * config.target_duration).bytes();
        let count = config.target_probe_count.into();
        self.announced.insert(id, PacedPacketInfo::new(config.id, count, bytes));
        self.clusters.push_back(ProbeCluster::new(
            id,
            from_data_rate(config.target_data_rate),
            TimeDelta::from_micros(config.target_duration.us()),
            config.target_probe_count.clamp(0, u16::MAX.into()) as u16,
        ));
    }

    fn pacing_info(&self, probe: Option<ProbeId>) -> PacedPacketInfo {
        probe.and_then(|id| self.announced.get(&id)).copied().unwrap_or_default()
    }

    fn packet_result(&self, report: &PacketReport) -> PacketResult {
        let sent_packet = CrateSentPacket {
            send_time: timestamp(report.sent),
            size: data_size(report.size),
            pacing_info: self.pacing_info(report.probe),
            sequence_number: report.sequence as i64,
            data_in_flight: data_size(report.in_flight + report.size),
            ..CrateSentPacket::default()
        };
        let receive_time =
            report.arrival.map_or(Timestamp::plus_infinity(), |at| Timestamp::from_micros(arrival_us(at)));
        PacketResult { sent_packet, receive_time, ..PacketResult::default() }
    }

    /// Passes on the sums of the streams' limits, if they changed.
    fn update_streams(&mut self, now: Time) {
        let min = self.streams.iter().map(|(_, min, _)| *min).sum::<Rate>();
        let max = self.streams.iter().map(|(.., max)| *max).sum::<Rate>();
        let known = self.allocated.1.as_bps_f64();
        // A source without a maximum leaves the allocation unknown.
        let has_new_max = max != Rate::MAX && (max.as_bps_f64() - known).abs() > ALLOCATION_CHANGE * known;
        if !has_new_max && min == self.allocated.0 {
            return;
        }
        self.allocated = (min, if has_new_max { max } else { self.allocated.1 });
        let message = StreamsConfig {
            at_time: timestamp(now),
            min_total_allocated_bitrate: Some(data_rate(min)),
            max_total_allocated_bitrate: has_new_max.then(|| data_rate(max)),
            ..StreamsConfig::default()
        };
        self.call(now, |controller| controller.on_streams_config(message));
    }

    fn report_loss(&mut self, now: Time, lost: u64, received: u64) {
        let message = TransportLossReport {
            receive_time: timestamp(now),
            start_time: timestamp(now),
            end_time: timestamp(now),
            packets_lost_delta: lost,
            packets_received_delta: received,
        };
        self.call(now, |controller| controller.on_transport_loss_report(message));
    }
}

impl SendHalf for Half {
    fn handle_event(&mut self, now: Time, event: &Event<'_>, _: &mut Signals) {
        match *event {
            Event::Sent(packet) => self.handle_sent(now, packet),
            Event::Feedback(feedback) => self.handle_feedback(now, feedback),
            Event::RoundTrip(rtt) => self.handle_rtt(now, rtt),
            Event::Report(report) => self.handle_report(now, report),
            Event::Message(message) => self.handle_message(now, message),
            Event::Liveness => self.report_loss(now, 0, 0),
            Event::Stream(stream) => self.handle_stream(now, stream),
            Event::StreamRemoved(stream) => self.handle_stream_removed(now, stream),
            Event::Bounds(bounds) => self.handle_bounds(now, bounds),
            Event::RouteChange(setup) => self.handle_route_change(now, setup),
            Event::Availability(available) => self.handle_availability(now, available),
            Event::Timeout => self.handle_timeout(now),
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        Some(self.next_process)
    }

    fn decision(&self) -> Decision {
        self.decision
    }

    fn poll_probe(&mut self, _: Time) -> Option<ProbeCluster> {
        self.clusters.pop_front()
    }
}

impl Half {
    fn handle_sent(&mut self, now: Time, packet: &SentPacket) {
        let message = CrateSentPacket {
            send_time: timestamp(now),
            size: data_size(packet.size),
            pacing_info: self.pacing_info(packet.probe),
            sequence_number: packet.sequence as i64,
            data_in_flight: data_size(packet.in_flight.unwrap_or(DataSize::ZERO) + packet.size),
            ..CrateSentPacket::default()
        };
        self.call(now, |controller| controller.on_sent_packet(message));
    }

    fn handle_feedback(&mut self, now: Time, feedback: &Feedback<'_>) {
        let packets: Vec<PacketResult> = feedback.packets.iter().map(|report| self.packet_result(report)).collect();
        self.held_back.extend(packets);
        if self.held_back.iter().all(|packet| !packet.is_received()) {
            return;
        }
        let message = TransportPacketsFeedback {
            feedback_time: timestamp(now),
            data_in_flight: data_size(feedback.outstanding),
            packet_feedbacks: core::mem::take(&mut self.held_back),
            sendless_arrival_times: Vec::new(),
        };
        self.call(now, |controller| controller.on_transport_packets_feedback(message));
    }

    fn handle_rtt(&mut self, now: Time, rtt: &RoundTrip) {
        let round_trip_time = CrateTimeDelta::from_millis((rtt.last.as_nanos() + 500_000) / 1_000_000);
        if round_trip_time > CrateTimeDelta::zero() {
            let message = RoundTripTimeUpdate { receive_time: timestamp(now), round_trip_time, smoothed: false };
            self.call(now, |controller| controller.on_round_trip_time_update(message));
        }
    }

    fn handle_report(&mut self, now: Time, report: &ReceiverReport) {
        let lost = (report.fraction_lost.get() * REPORTED).round();
        self.report_loss(now, lost as u64, (REPORTED - lost) as u64);
    }

    fn handle_message(&mut self, now: Time, message: &Message) {
        if let &Message::Remb(rate) = message {
            let message = RemoteBitrateReport { receive_time: timestamp(now), bandwidth: data_rate(rate) };
            self.call(now, |controller| controller.on_remote_bitrate_report(message));
        }
    }

    fn handle_stream(&mut self, now: Time, stream: &StreamState) {
        let limits = (stream.stream, stream.min, stream.max);
        match self.streams.iter_mut().find(|(id, ..)| *id == stream.stream) {
            Some(known) => *known = limits,
            None => self.streams.push(limits),
        }
        self.update_streams(now);
    }

    fn handle_stream_removed(&mut self, now: Time, stream: StreamId) {
        self.streams.retain(|(id, ..)| *id != stream);
        self.update_streams(now);
    }

    fn handle_bounds(&mut self, now: Time, bounds: &Bounds) {
        self.begin(now);
        self.bounds = *bounds;
        let constraints = self.constraints(now, *bounds, None);
        self.call(now, |controller| controller.on_target_rate_constraints(constraints));
        self.decision.target = bounds.clamp(self.decision.target);
        self.apply(&NetworkControlUpdate::default());
    }

    fn handle_route_change(&mut self, now: Time, setup: &Setup) {
        self.begin(now);
        (self.setup, self.bounds) = (*setup, setup.bounds());
        self.held_back.clear();
        let constraints = self.constraints(now, self.bounds, Some(setup.start));
        let message = NetworkRouteChange { at_time: timestamp(now), constraints };
        self.call(now, |controller| controller.on_network_route_change(message));
    }

    fn handle_availability(&mut self, now: Time, available: bool) {
        let message = NetworkAvailability { at_time: timestamp(now), network_available: available };
        self.call(now, |controller| controller.on_network_availability(message));
    }

    fn handle_timeout(&mut self, now: Time) {
        self.begin(now);
        if self.next_process <= now {
            self.process(now);
        }
    }
}

fn timestamp(time: Time) -> Timestamp {
    Timestamp::from_micros(us(time))
}

fn data_size(size: DataSize) -> CrateSize {
    CrateSize::from_bytes(size.as_bytes() as i64)
}

/// The maximum of the type stands for no limit.
fn data_rate(rate: Rate) -> DataRate {
    i64::try_from(rate.as_bps()).map_or(DataRate::plus_infinity(), DataRate::from_bits_per_sec)
}

fn from_data_rate(rate: DataRate) -> Rate {
    if rate.is_infinite() { Rate::MAX } else { Rate::from_bps(rate.bps().max(0) as u64) }
}
