//! Writes a simulated call as an RTC event log of version 2, to measure how long its explanation takes: `event_log SECONDS FILE`.
//!
//! The link has a capacity that steps every half minute. The packets of the sender are in the log as sent and as received, so that it
//! has as many events as that of a call in both directions.

use paceline::Registry;
use paceline_capture::Capture;
use paceline_lab::run::Runner;
use paceline_netsim::records::{EventObserver, EventRecord};
use paceline_scenario::{Changes, Origin, Scenario};
use paceline_units::Time;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// The time of the first packet, and the length of a chunk of libwebrtc's logs, ms.
const BEGIN_MS: u64 = 1000;
const CHUNK_MS: u64 = 5000;
/// Headers of IPv4 and UDP, and the RTP header without extensions, bytes.
const IP_UDP: usize = 28;
const RTP: usize = 12;

struct Rtp {
    ms: u64,
    sequence: u64,
    timestamp: u64,
    bytes: u64,
    transport_sequence: u64,
}

#[derive(Default)]
struct Log {
    rtp: BTreeMap<u32, Vec<Rtp>>,
    /// Messages of RTCP that the sender received, and that it sent.
    rtcp_in: Vec<(u64, Vec<u8>)>,
    rtcp_out: Vec<(u64, Vec<u8>)>,
    targets: Vec<(u64, u64)>,
}

impl EventObserver for Log {
    fn on_event(&mut self, event: &EventRecord) {
        if let EventRecord::Decision { at, target, .. } = *event {
            let ms = at.since(Time::ZERO).as_nanos() as u64 / 1_000_000;
            self.targets.push((BEGIN_MS + ms, target.as_bps()));
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [seconds, file] = &words[..] else { return Err("usage: event_log SECONDS FILE".into()) };
    let seconds: u64 = seconds.parse()?;
    let registry = Registry::standard();
    let scenario = paceline_lab::load(&Origin::from_text("log.toml", text(seconds)), &Changes::default(), &registry)
        .map_err(|error| format!("{error:?}"))?;
    let mut log = Log::default();
    let path = PathBuf::from(format!("{file}.pcapng"));
    capture(&registry, &scenario, &path)?;
    read(&path, &mut log)?;
    std::fs::remove_file(&path)?;
    Runner::simulator(&registry).run(&scenario, 1, Some(&mut log)).map_err(|error| format!("{error:?}"))?;
    std::fs::write(file, encode(&log, 1000 * seconds))?;
    Ok(())
}

fn text(seconds: u64) -> String {
    let rates = [3000, 1500, 2500, 800, 4000, 1200].iter().cycle();
    let steps = (0..seconds).step_by(30).zip(rates).map(|(at, kbps)| format!("[\"{at} s\", \"{kbps} kbps\"]"));
    format!(
        "id = \"explain/log\"\ntitle = \"A long call\"\nduration = \"{seconds} s\"\n\n[path]\nrtt = \"60 ms\"\n\n\
         [path.forward]\ncapacity = [{}]\nqueue = {{ limit = \"300 ms\" }}\nloss = [[\"0 s\", \"0.2 %\"]]\n\n\
         [[flow]]\nid = \"call\"\ncontroller = \"googcc\"\nencoder = {{ source = \"720p30\", max = \"2500 kbps\" }}\n",
        steps.collect::<Vec<_>>().join(", ")
    )
}

fn capture(registry: &Registry, scenario: &Scenario, path: &Path) -> Result<(), Box<dyn Error>> {
    let mut capture = Capture::create(path, &scenario.plan, &scenario.plan.header(registry, "sim", 1))?;
    Runner::simulator(registry).run(scenario, 1, Some(&mut capture)).map_err(|error| format!("{error:?}"))?;
    Ok(capture.finish()?)
}

/// Reads the packets at the sender.
fn read(path: &Path, log: &mut Log) -> Result<(), Box<dyn Error>> {
    let mut reader = PcapNgReader::new(BufReader::new(File::open(path)?))?;
    let mut began = None;
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block?.0 else { continue };
        let ms = packet.timestamp.as_millis() as u64;
        let ms = BEGIN_MS + ms - *began.get_or_insert(ms);
        let bytes = packet.data.get(IP_UDP..).unwrap_or_default();
        match bytes.get(1) {
            _ if packet.interface_id != 0 || bytes.len() < RTP => {}
            // A sender report.
            Some(200) => log.rtcp_out.push((ms, bytes.to_vec())),
            Some(192..=223) => log.rtcp_in.push((ms, bytes.to_vec())),
            _ => {
                let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
                log.rtp.entry(word(8)).or_default().push(Rtp {
                    ms,
                    sequence: u64::from(word(0) & 0xFFFF),
                    timestamp: u64::from(word(4)),
                    bytes: bytes.len() as u64,
                    transport_sequence: transport_sequence(bytes).into(),
                });
            }
        }
    }
    Ok(())
}

/// Returns the value of the only one-byte extension with two bytes (RFC 8285).
fn transport_sequence(rtp: &[u8]) -> u16 {
    let mut rest = rtp.get(RTP + 4..).unwrap_or_default();
    while let [head, after @ ..] = rest {
        let length = if *head == 0 { 0 } else { usize::from(head & 0xF) + 1 };
        let Some((value, next)) = after.split_at_checked(length) else { break };
        if let [high, low] = value {
            return u16::from_be_bytes([*high, *low]);
        }
        rest = next;
    }
    0
}

fn encode(log: &Log, end_ms: u64) -> Vec<u8> {
    let mut bytes = field(16, &[number(1, BEGIN_MS / 2), number(2, 2), number(3, 1_767_225_600_000)].concat());
    for start in (0..end_ms + CHUNK_MS).step_by(CHUNK_MS as usize) {
        let within = start..start + CHUNK_MS;
        for (ssrc, packets) in &log.rtp {
            let part: Vec<&Rtp> = packets.iter().filter(|packet| within.contains(&packet.ms)).collect();
            bytes.extend(rtp(3, *ssrc, &part));
            bytes.extend(rtp(2, ssrc ^ 1 << 31, &part));
        }
        for (number, messages) in [(4, &log.rtcp_in), (5, &log.rtcp_out)] {
            let part: Vec<_> = messages.iter().filter(|(ms, _)| within.contains(ms)).collect();
            bytes.extend(rtcp(number, &part));
        }
        let (ms, bps): (Vec<u64>, Vec<u64>) = log.targets.iter().filter(|(ms, _)| within.contains(ms)).copied().unzip();
        if let (Some(first), Some(rate)) = (ms.first(), bps.first()) {
            let count = number(5, ms.len() as u64 - 1);
            let body = [number(1, *first), number(2, *rate), count, deltas(101, &ms), deltas(102, &bps)];
            bytes.extend(field(18, &body.concat()));
        }
    }
    bytes
}

fn rtp(record: u64, ssrc: u32, packets: &[&Rtp]) -> Vec<u8> {
    let Some(first) = packets.first() else { return Vec::new() };
    let column = |value: &dyn Fn(&Rtp) -> u64| packets.iter().map(|packet| value(packet)).collect::<Vec<u64>>();
    let body = [
        number(1, first.ms),
        number(4, first.sequence),
        fixed(5, first.timestamp as u32),
        fixed(6, ssrc),
        number(8, first.bytes - RTP as u64),
        number(9, RTP as u64),
        number(11, packets.len() as u64 - 1),
        number(15, first.transport_sequence),
        deltas(101, &column(&|packet| packet.ms)),
        deltas(104, &column(&|packet| packet.sequence)),
        deltas(105, &column(&|packet| packet.timestamp)),
        deltas(108, &column(&|packet| packet.bytes - RTP as u64)),
        deltas(115, &column(&|packet| packet.transport_sequence)),
    ];
    field(record, &body.concat())
}

fn rtcp(record: u64, messages: &[&(u64, Vec<u8>)]) -> Vec<u8> {
    let [first, others @ ..] = messages else { return Vec::new() };
    let times: Vec<u64> = messages.iter().map(|(ms, _)| *ms).collect();
    let lengths = others.iter().map(|(_, bytes)| varint(bytes.len() as u64));
    let blobs = lengths.chain(others.iter().map(|(_, bytes)| bytes.clone())).collect::<Vec<_>>().concat();
    let count = number(3, others.len() as u64);
    field(record, &[number(1, first.0), field(2, &first.1), count, deltas(101, &times), field(102, &blobs)].concat())
}

/// Deltas of type 0: unsigned, modulo 2^64.
fn deltas(number: u64, values: &[u64]) -> Vec<u8> {
    let deltas: Vec<u64> = values.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
    let width = deltas.iter().map(|delta| u64::BITS - delta.leading_zeros()).max().unwrap_or(0);
    if width == 0 {
        return Vec::new();
    }
    let head = [(0, 2), (u64::from(width - 1), 6)];
    let bits = head.into_iter().chain(deltas.into_iter().map(|delta| (delta, width)));
    let bits: Vec<u8> =
        bits.flat_map(|(value, width)| (0..width).rev().map(move |bit| (value >> bit & 1) as u8)).collect();
    let byte = |bits: &[u8]| bits.iter().enumerate().fold(0, |byte, (index, bit)| byte | bit << (7 - index));
    field(number, &bits.chunks(8).map(byte).collect::<Vec<u8>>())
}

fn field(number: u64, body: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(body.len() as u64), body.to_vec()].concat()
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn fixed(field: u64, value: u32) -> Vec<u8> {
    [varint(field << 3 | 5), value.to_le_bytes().to_vec()].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}
