// SPDX-License-Identifier: MIT OR Apache-2.0
//! One flow's sender: that of the library, with numbers as JavaScript has them.

use paceline::{
    Bounds, ConfigError, Controller, Message, MessageKind, Needs, NewFrame, Outgoing, PacketKind, Registry,
    SenderConfig, Setup, Signals, StreamConfig,
};
use paceline_units::{DataSize, Ecn, Rate, RemoteTime, StreamId, Time, TimeDelta};

/// The one stream of a sender.
const STREAM: StreamId = StreamId(0);
/// Numbers above this one are not exact in JavaScript.
const EXACT_MAX: f64 = 9_007_199_254_740_991.0;
/// The latest time, ms: 127 years, so that no sum of two times overflows.
const TIME_MAX: f64 = 4e12;

/// A sender.
#[derive(Debug)]
pub(crate) struct Sender {
    pub core: paceline::Sender<f64>,
    name: &'static str,
    needs: Needs,
}

/// Returns the names of all controllers.
pub(crate) fn names() -> Vec<String> {
    Registry::standard().iter().map(|entry| entry.name().to_owned()).collect()
}

/// Builds the controller of a name with some parameters changed, and returns its name.
fn build(name: &str, setup: &Setup, changes: &[(String, f64)]) -> Result<(Controller, &'static str), String> {
    let registry = Registry::standard();
    let unknown = || format!("there is no controller `{name}`; known: {}", names().join(", "));
    let entry = registry.get(name).ok_or_else(unknown)?;
    let controller = entry.build(setup, changes).map_err(|error| match &error {
        ConfigError::UnknownField { known, .. } => format!("{error}; known: {}", known.join(", ")),
        _ => error.to_string(),
    })?;
    Ok((controller, entry.name()))
}

/// Returns what a controller needs: 1 for reports on packets, 2 for their ECN field, 4 for REMB, 8 for messages that only a receiver
/// of Paceline sends.
pub(crate) fn needs(name: &str) -> Result<i32, String> {
    let setup = Setup::new(Rate::from_kbps(300), Rate::from_kbps(50), Rate::from_kbps(2000));
    Ok(needs_of(&build(name, &setup, &[])?.0.needs()))
}

fn needs_of(needs: &Needs) -> i32 {
    let messages = match needs.messages {
        None => 0,
        Some(MessageKind::Remb) => 4,
        Some(_) => 8,
    };
    i32::from(needs.feedback) + 2 * i32::from(needs.ecn) + messages
}

/// Reads a number of a range.
fn number(value: f64, name: &str, range: core::ops::RangeInclusive<f64>) -> Result<f64, String> {
    match range.contains(&value) {
        true => Ok(value),
        false => Err(format!("`{name}` must be a number from {} to {}, not {value}", range.start(), range.end())),
    }
}

/// Reads a whole number of a range.
fn whole(value: f64, name: &str, range: core::ops::RangeInclusive<f64>) -> Result<u64, String> {
    match number(value, name, range)? {
        value if value.fract() == 0.0 => Ok(value as u64),
        value => Err(format!("`{name}` must be a whole number, not {value}")),
    }
}

/// Reads a number that may be absent.
fn optional<T>(value: f64, read: impl FnOnce(f64) -> Result<T, String>) -> Result<Option<T>, String> {
    if value.is_nan() { Ok(None) } else { read(value).map(Some) }
}

fn rate(bps: f64, name: &str) -> Result<Rate, String> {
    number(bps, name, 0.0..=1e13).map(Rate::from_bps_f64)
}

pub(crate) fn time(ms: f64) -> Result<Time, String> {
    number(ms, "nowMs", -TIME_MAX..=TIME_MAX).map(|ms| Time::ZERO + TimeDelta::from_millis_f64(ms))
}

fn size(bytes: f64) -> Result<DataSize, String> {
    whole(bytes, "bytes", 1.0..=65_535.0).map(DataSize::from_bytes)
}

pub(crate) fn setup(start_bps: f64, min_bps: f64, max_bps: f64) -> Result<Setup, String> {
    let start = rate(start_bps, "startBps")?;
    let Bounds { min, max, .. } = bounds(min_bps, max_bps)?;
    if start.is_zero() || min > start {
        return Err(format!("need startBps above 0 and minBps <= startBps, not {start_bps} and {min_bps}"));
    }
    Ok(Setup::new(start, min, max))
}

pub(crate) fn bounds(min_bps: f64, max_bps: f64) -> Result<Bounds, String> {
    let (min, max) = (rate(min_bps, "minBps")?, rate(max_bps, "maxBps")?);
    match min <= max && !max.is_zero() {
        true => Ok(Bounds::new(min, max)),
        false => Err(format!("need maxBps above 0 and minBps <= maxBps, not {max_bps} and {min_bps}")),
    }
}

impl Sender {
    pub fn new(name: &str, setup: &Setup, changes: &[(String, f64)]) -> Result<Self, String> {
        let (mut controller, name) = build(name, setup, changes)?;
        let needs = controller.needs();
        if needs_of(&needs) & 8 != 0 {
            return Err(format!(
                "`{name}` needs messages that only a receiver of Paceline sends; `needs(name)` says what a controller needs"
            ));
        }
        if controller.send.is_none() {
            return Err(format!("`{name}` has no half at the sender"));
        }
        let mut core = paceline::Sender::new(&SenderConfig::new(setup), &mut controller, Signals::disabled());
        core.add_stream(&StreamConfig::video(STREAM, Rate::ZERO, Rate::MAX));
        // Until the first frame: a program with a pacer of its own queues none.
        core.set_paces(false);
        Ok(Self { core, name, needs })
    }

    /// Returns the rate of the encoder.
    pub fn encoder_rate(&self) -> Rate {
        self.core.stream_rate(STREAM).unwrap_or_default()
    }

    pub fn handle_sent(&mut self, now_ms: f64, bytes: f64, kind: i32, probe: f64) -> Result<f64, String> {
        use PacketKind::*;
        let kind = [Media, Retransmission, Fec, Padding].get(kind as usize).copied();
        let kind = kind.ok_or("`kind` must be media, retransmission, fec or padding")?;
        let probe = optional(probe, |probe| Ok(whole(probe, "probe", 0.0..=65_535.0)? as u16))?;
        let packet = Outgoing::new(size(bytes)?, STREAM, kind).with_probe(probe);
        Ok(self.core.handle_sent(time(now_ms)?, &packet) as f64)
    }

    pub fn handle_feedback(&mut self, now_ms: f64, reports: &[f64]) -> Result<(), String> {
        if !self.needs.feedback {
            return Err(format!(
                "`{}` uses no reports on packets; `needs(name)` says what a controller needs",
                self.name
            ));
        }
        let arrival = |ms| {
            let ms = number(ms, "arrivalMs", -TIME_MAX..=TIME_MAX)?;
            Ok(RemoteTime::from_nanos(TimeDelta::from_millis_f64(ms).as_nanos()))
        };
        let ecn = |ecn| Ok(Ecn::from_bits(whole(ecn, "ecn", 0.0..=3.0)? as u8));
        let report = |report: &[f64; 3]| {
            let &[sequence, at, bits] = report;
            Ok((whole(sequence, "number", 0.0..=EXACT_MAX)?, optional(at, arrival)?, optional(bits, ecn)?))
        };
        let reports = reports.as_chunks().0.iter().map(report).collect::<Result<Vec<_>, String>>()?;
        self.core.handle_reports(time(now_ms)?, reports);
        Ok(())
    }

    pub fn handle_remb(&mut self, now_ms: f64, bps: f64) -> Result<(), String> {
        self.core.handle_message(time(now_ms)?, &Message::Remb(rate(bps, "bps")?));
        Ok(())
    }

    /// Queues a frame: tokens of the caller, and sizes. Returns whether it was accepted.
    pub fn push_frame(&mut self, now_ms: f64, key: bool, packets: &[f64]) -> Result<bool, String> {
        let sized = packets.as_chunks().0.iter().map(|&[token, bytes]| Ok((token, size(bytes)?)));
        let (now, frame) = (time(now_ms)?, sized.collect::<Result<Vec<_>, String>>()?);
        if frame.is_empty() {
            return Err("a frame needs a packet".to_owned());
        }
        self.core.set_paces(true);
        Ok(self.core.push_frame(now, &NewFrame::new(STREAM, now, key), frame).is_ok())
    }
}
