// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run as the inputs that people have.

use super::Generated;
use paceline::Registry;
use paceline_explain::model::Call;
use paceline_explain::readers;
use paceline_explain::readers::run::RunObserver;
use paceline_lab::capture::Capture;
use paceline_lab::run::Runner;
use paceline_netsim::records::{DropReason, EventObserver, EventRecord, PacketClass, RunHeader};
use paceline_scenario::{Changes, Origin, Scenario};
use paceline_units::{Time, TimeDelta};
use pcap_file::pcapng::{Block, PcapNgReader, PcapNgWriter};
use serde_json::json;
use std::fmt::Write;

/// A scenario that can run.
pub struct Made {
    registry: Registry,
    scenario: Scenario,
    header: RunHeader,
    seed: u64,
}

impl Made {
    /// Loads the scenario of a capture.
    pub fn new(generated: &Generated) -> Self {
        let registry = Registry::standard();
        let origin = Origin::from_text("explain.toml", generated.text.clone());
        let scenario = paceline_lab::load(&origin, &Changes::default(), &registry)
            .unwrap_or_else(|error| panic!("{error:?}\n{}", generated.text));
        let header = scenario.plan.header(&registry, "sim", generated.seed);
        Self { registry, scenario, header, seed: generated.seed }
    }

    fn run(&self, observer: &mut dyn EventObserver) {
        Runner::simulator(&self.registry).run(&self.scenario, self.seed, Some(observer)).expect("it runs");
    }

    /// Returns the call by the events of the endpoints.
    pub fn events(&self) -> Call {
        let mut observer = RunObserver::new(&self.header);
        self.run(&mut observer);
        observer.finish()
    }

    /// Returns when a full queue dropped packets of the call, s since the first packet. The explainer does not see this.
    pub fn overflows(&self) -> Vec<f64> {
        let mut observer = Overflows::default();
        self.run(&mut observer);
        observer.0
    }

    /// Returns a pcapng file, with the packets at both ends and at every hop, or at the sender only.
    pub fn capture(&self, at_sender: bool) -> Vec<u8> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.pcapng");
        let mut capture = Capture::create(&path, &self.scenario.plan, &self.header).expect("a capture");
        self.run(&mut capture);
        capture.finish().expect("it is written");
        let bytes = std::fs::read(&path).expect("it was written");
        if at_sender { only_sender(&bytes) } else { bytes }
    }

    /// Returns the samples of getStats at the sender.
    pub fn statistics(&self, cpu: Option<(bool, f64)>, window_s: (f64, f64)) -> String {
        let mut sampler = Sampler { cpu, window_s, ..Sampler::default() };
        self.run(&mut sampler);
        sampler.text
    }

    /// Reads an input.
    pub fn read(bytes: &[u8]) -> Call {
        readers::read_bytes(bytes).unwrap_or_else(|error| panic!("{error}"))
    }
}

#[derive(Default)]
struct Overflows(Vec<f64>);

impl EventObserver for Overflows {
    fn on_event(&mut self, event: &EventRecord) {
        if let EventRecord::Dropped { at, packet, reason: DropReason::Overflow, .. } = event
            && packet.flow.0 == 0
            && !packet.class.is_from_receiver()
        {
            self.0.push(at.since(Time::ZERO).as_secs_f64());
        }
    }
}

/// Keeps the packets of the first interface, without the comments.
fn only_sender(bytes: &[u8]) -> Vec<u8> {
    let mut reader = PcapNgReader::new(bytes).expect("a capture");
    let mut writer = PcapNgWriter::with_section_header(Vec::new(), reader.section().clone()).expect("a header");
    let mut interfaces = 0;
    while let Some(block) = reader.next_block() {
        match block.expect("a block").0 {
            Block::InterfaceDescription(interface) => {
                if interfaces == 0 {
                    writer.write_pcapng_block(interface).expect("written");
                }
                interfaces += 1;
            }
            Block::EnhancedPacket(mut packet) if packet.interface_id == 0 => {
                packet.options.clear();
                writer.write_pcapng_block(packet).expect("written");
            }
            _ => {}
        }
    }
    writer.into_inner()
}

/// Samples the counters of a browser once a second.
#[derive(Default)]
struct Sampler {
    cpu: Option<(bool, f64)>,
    window_s: (f64, f64),
    text: String,
    next: Time,
    bytes: u64,
    packets: u64,
    repaired: u64,
    target: f64,
    lost: f64,
    packets_reported: u64,
    rtt: Option<f64>,
    measurements: u64,
    report_ms: f64,
    frames: u64,
    encode_s: f64,
    jitter: f64,
    last_delay: Option<f64>,
}

/// 2026-01-01, ms since 1970.
const BEGAN_MS: f64 = 1_767_225_600_000.0;

impl EventObserver for Sampler {
    fn on_event(&mut self, event: &EventRecord) {
        while event.at() >= self.next {
            self.sample();
            self.next += TimeDelta::from_secs(1);
        }
        match *event {
            EventRecord::Sent { packet, .. } if packet.flow.0 == 0 => match packet.class {
                PacketClass::SenderControl | PacketClass::ReceiverControl => {}
                class => {
                    // RTP alone: without 20 B IP and 8 B UDP.
                    self.bytes += packet.size.as_bytes() - 28;
                    self.packets += 1;
                    self.repaired += u64::from(class == PacketClass::Retransmission);
                }
            },
            EventRecord::Arrived { packet, delay, .. } if packet.flow.0 == 0 && packet.class == PacketClass::Media => {
                // RFC 3550, section 6.4.1.
                let delay = delay.as_secs_f64();
                let step = self.last_delay.replace(delay).map_or(0.0, |last| (delay - last).abs());
                self.jitter += (step - self.jitter) / 16.0;
            }
            EventRecord::Decision { flow, target, .. } if flow.0 == 0 => self.target = target.as_bps() as f64,
            EventRecord::RoundTrip { at, flow, rtt } if flow.0 == 0 => {
                self.rtt = Some(rtt.as_secs_f64());
                self.measurements += 1;
                self.report_ms = BEGAN_MS + at.since(Time::ZERO).as_secs_f64() * 1e3;
            }
            EventRecord::FractionLost { flow, fraction, .. } if flow.0 == 0 => {
                self.lost += fraction * (self.packets - self.packets_reported) as f64;
                self.packets_reported = self.packets;
            }
            _ => {}
        }
    }
}

impl Sampler {
    fn sample(&mut self) {
        let second = self.next.since(Time::ZERO).as_secs_f64();
        let ms = BEGAN_MS + second * 1e3;
        let busy = self.cpu.filter(|_| second > self.window_s.0 && second <= self.window_s.1 + 1.0);
        let per_frame = busy.map_or(0.008, |(_, seconds)| seconds);
        let fps = (1.0 / per_frame).min(30.0);
        self.frames += fps as u64;
        self.encode_s += fps.floor() * per_frame;
        let reason = if busy.is_some_and(|(says, _)| says) { "cpu" } else { "none" };
        let mut report = json!({
            "O1": {"id": "O1", "type": "outbound-rtp", "kind": "video", "timestamp": ms, "bytesSent": self.bytes,
                "packetsSent": self.packets, "retransmittedPacketsSent": self.repaired, "targetBitrate": self.target,
                "framesEncoded": self.frames, "totalEncodeTime": self.encode_s, "qualityLimitationReason": reason, "active": true},
            "CP": {"id": "CP", "type": "candidate-pair", "timestamp": ms, "state": "succeeded", "availableOutgoingBitrate": self.target},
            "S": {"id": "S", "type": "media-source", "timestamp": ms, "framesPerSecond": 30},
        });
        if let Some(rtt) = self.rtt {
            report["R1"] = json!({"id": "R1", "type": "remote-inbound-rtp", "timestamp": self.report_ms, "roundTripTime": rtt,
                "jitter": self.jitter,
                "roundTripTimeMeasurements": self.measurements, "packetsLost": self.lost.round()});
        }
        writeln!(self.text, "{report}").expect("text");
    }
}
