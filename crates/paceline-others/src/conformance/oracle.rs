// SPDX-License-Identifier: MIT OR Apache-2.0
//! The oracle: the crate `goog_cc`.

use crate::conformance::input::{Cluster, Input, MAX_BPS, MIN_BPS, Output, Packet, ProbeTag, START_BPS, Sent};
use goog_cc::experiments::FieldTrials;
use goog_cc::network_control::{NetworkControllerConfig, NetworkControllerInterface};
use goog_cc::transport::{
    NetworkAvailability, NetworkControlUpdate, PacedPacketInfo, PacketResult, ProcessInterval, RoundTripTimeUpdate,
    SentPacket, StreamsConfig, TargetRateConstraints, TransportLossReport, TransportPacketsFeedback,
};
use goog_cc::units::{DataRate, DataSize, TimeDelta, Timestamp};
use goog_cc::{GoogCcConfig, GoogCcNetworkController, LossBasedBweV2Config};

/// The defaults of which year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vintage {
    /// da2a3d6c4d of 2024-12: the crate's own.
    Y2024,
    /// f3ae3eb62e of 2026-08, as far as they are numbers. The rules stay those of 2024.
    Y2026,
}

/// The oracle and the last values that it published.
pub struct Oracle {
    controller: GoogCcNetworkController,
    last: Output,
}

impl Oracle {
    /// Creates an oracle without feedback.
    pub fn new(field_trials: FieldTrials, streams: StreamsConfig) -> Self {
        let rate = |bps| Some(DataRate::from_bits_per_sec(bps as i64));
        let constraints = TargetRateConstraints {
            at_time: Timestamp::from_micros(0),
            min_data_rate: rate(MIN_BPS),
            max_data_rate: rate(MAX_BPS),
            starting_rate: rate(START_BPS),
        };
        let config = NetworkControllerConfig { field_trials, constraints, stream_based_config: streams };
        let controller = GoogCcNetworkController::new(config, GoogCcConfig::default());
        Self { controller, last: Output { target: START_BPS, ..Output::default() } }
    }

    /// Handles an input. Returns what is published afterwards.
    pub fn handle(&mut self, input: &Input) -> &Output {
        self.last.clusters.clear();
        let update = match input {
            &Input::Start(at) => {
                let update = self.tick(at);
                self.apply(update);
                let message = NetworkAvailability { at_time: Timestamp::from_micros(at), network_available: true };
                self.controller.on_network_availability(message)
            }
            Input::Sent(sent) => self.controller.on_sent_packet(sent_packet(sent, true)),
            Input::Feedback { at, packets, in_flight } => {
                let message = TransportPacketsFeedback {
                    feedback_time: Timestamp::from_micros(*at),
                    data_in_flight: DataSize::from_bytes(*in_flight as i64),
                    packet_feedbacks: packets.iter().map(packet_result).collect(),
                    sendless_arrival_times: Vec::new(),
                };
                self.controller.on_transport_packets_feedback(message)
            }
            &Input::Tick(at) => self.tick(at),
            &Input::Rtt(at, ms) => {
                let (receive_time, round_trip_time) = (Timestamp::from_micros(at), TimeDelta::from_millis(ms));
                let message = RoundTripTimeUpdate { receive_time, round_trip_time, smoothed: false };
                self.controller.on_round_trip_time_update(message)
            }
            &Input::Report(at, lost, all) => {
                let receive_time = Timestamp::from_micros(at);
                let message = TransportLossReport {
                    receive_time,
                    start_time: receive_time,
                    end_time: receive_time,
                    packets_lost_delta: lost,
                    packets_received_delta: all - lost,
                };
                self.controller.on_transport_loss_report(message)
            }
            &Input::Allocation(at, bps) => {
                let message = StreamsConfig {
                    at_time: Timestamp::from_micros(at),
                    max_total_allocated_bitrate: Some(DataRate::from_bits_per_sec(bps as i64)),
                    ..StreamsConfig::default()
                };
                self.controller.on_streams_config(message)
            }
        };
        self.apply(update);
        &self.last
    }

    /// Returns the state that the crate shows, as text. Its blocks are private.
    pub fn state(&self, at: i64) -> String {
        format!("{:#?}", self.controller.get_network_state(Timestamp::from_micros(at)))
    }

    fn tick(&mut self, at: i64) -> NetworkControlUpdate {
        self.controller.on_process_interval(ProcessInterval { at_time: Timestamp::from_micros(at), pacer_queue: None })
    }

    fn apply(&mut self, update: NetworkControlUpdate) {
        if let Some(rate) = update.target_rate {
            self.last.target = rate.target_rate.bps() as u64;
            self.last.pushed_back = ((1.0 - rate.cwnd_reduce_ratio) * rate.target_rate.bps_float()).round() as u64;
        }
        if let Some(pacer) = update.pacer_config {
            self.last.pacing = pacer.data_rate().bps() as u64;
            self.last.padding = pacer.pad_rate().bps() as u64;
        }
        self.last.clusters.extend(update.probe_cluster_configs.iter().map(|cluster| Cluster {
            id: cluster.id,
            bps: cluster.target_data_rate.bps() as u64,
            us: cluster.target_duration.us(),
            packets: cluster.target_probe_count.into(),
        }));
    }
}

/// Returns the crate's settings.
pub fn trials(vintage: Vintage, has_window: bool) -> FieldTrials {
    let mut trials = FieldTrials::default();
    if vintage == Vintage::Y2026 {
        trials.loss_based_bwe_v2 = loss_of_2026();
    }
    if !has_window {
        trials.congestion_window.queue_size_ms = 0;
    }
    trials
}

/// The numbers of 2026-08.
fn loss_of_2026() -> LossBasedBweV2Config {
    LossBasedBweV2Config {
        bw_rampup_upper_bound_factor: 1.5,
        bw_rampup_upper_bound_in_hold_factor: 1.2,
        loss_threshold_of_high_bandwidth_preference: 0.2,
        inherent_loss_upper_bound_bw_balance: DataRate::from_kilobits_per_sec(100),
        observation_window_size: 15,
        instant_upper_bound_bw_balance: DataRate::from_kilobits_per_sec(100),
        use_in_start_phase: true,
        lower_bound_by_acked_rate_factor: 1.0,
        hold_duration_factor: 2.0,
        use_byte_loss_rate: true,
        padding_duration: TimeDelta::from_seconds(2),
        bound_best_candidate: true,
        ..LossBasedBweV2Config::default()
    }
}

/// `data_in_flight` contains the packet itself when it is sent.
fn sent_packet(sent: &Sent, is_new: bool) -> SentPacket {
    let pacing_info = match sent.probe {
        Some(ProbeTag { id, packets, bytes }) => PacedPacketInfo::new(id, packets, bytes),
        None => PacedPacketInfo::default(),
    };
    SentPacket {
        send_time: Timestamp::from_micros(sent.at),
        size: DataSize::from_bytes(sent.size as i64),
        pacing_info,
        sequence_number: sent.number as i64,
        data_in_flight: DataSize::from_bytes((sent.in_flight + if is_new { sent.size } else { 0 }) as i64),
        ..SentPacket::default()
    }
}

fn packet_result(packet: &Packet) -> PacketResult {
    PacketResult {
        sent_packet: sent_packet(&packet.sent, false),
        receive_time: packet.arrival.map_or(Timestamp::plus_infinity(), Timestamp::from_micros),
        ..PacketResult::default()
    }
}
