//! One flow's sender: that of the library, with numbers as JavaScript has them.

use paceline::{
    Bounds, ConfigError, Controller, MessageKind, Needs, NewFrame, Outgoing, PacketKind, Registry, SenderConfig, Setup,
    Signals, StreamConfig,
};
use paceline_units::{DataSize, Ecn, Rate, RemoteTime, StreamId, Time, TimeDelta};

/// The one stream of a sender.
const STREAM: StreamId = StreamId(0);
/// Numbers above this one are not exact in JavaScript.
const EXACT_MAX: f64 = 9_007_199_254_740_991.0;

/// A sender.
#[derive(Debug)]
pub(crate) struct Sender {
    pub core: paceline::Sender<f64>,
    name: &'static str,
    per_packet: bool,
    /// Packets of the next feedback.
    reports: Vec<(u64, Option<RemoteTime>, Option<Ecn>)>,
    /// Packets of the next frame: token and size.
    frame: Vec<(f64, DataSize)>,
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

pub(crate) fn rate(bps: f64, name: &str) -> Result<Rate, String> {
    number(bps, name, 0.0..=1e13).map(Rate::from_bps_f64)
}

pub(crate) fn time(ms: f64) -> Result<Time, String> {
    number(ms, "nowMs", -EXACT_MAX / 1e3..=EXACT_MAX / 1e3).map(|ms| Time::ZERO + TimeDelta::from_millis_f64(ms))
}

fn size(bytes: f64) -> Result<DataSize, String> {
    number(bytes, "bytes", 1.0..=65_535.0).map(|bytes| DataSize::from_bytes(bytes as u64))
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
        core.add_stream(&StreamConfig::video(STREAM, Rate::ZERO, setup.max));
        // Until the first frame: a program with a pacer of its own queues none.
        core.set_paces(false);
        Ok(Self { core, name, per_packet: needs.feedback, reports: Vec::new(), frame: Vec::new() })
    }

    pub fn handle_sent(&mut self, now_ms: f64, bytes: f64, kind: i32, probe: i32) -> Result<f64, String> {
        use PacketKind::*;
        let kind = [Media, Retransmission, Fec, Padding].get(kind as usize).copied();
        let kind = kind.ok_or("`kind` must be media, retransmission, fec or padding")?;
        let packet = Outgoing::new(size(bytes)?, STREAM, kind).with_probe(u16::try_from(probe).ok());
        Ok(self.core.handle_sent(time(now_ms)?, &packet) as f64)
    }

    pub fn add_report(&mut self, sequence: f64, arrival_ms: f64, ecn: i32) -> Result<(), String> {
        let sequence = number(sequence, "number", 0.0..=EXACT_MAX)? as u64;
        let arrival = match arrival_ms.is_nan() {
            true => None,
            false => {
                let ms = number(arrival_ms, "arrivalMs", -EXACT_MAX / 1e3..=EXACT_MAX / 1e3)?;
                Some(RemoteTime::from_nanos(TimeDelta::from_millis_f64(ms).as_nanos()))
            }
        };
        self.reports.push((sequence, arrival, u8::try_from(ecn).ok().filter(|ecn| *ecn < 4).map(Ecn::from_bits)));
        Ok(())
    }

    pub fn handle_feedback(&mut self, now_ms: f64) -> Result<(), String> {
        let reports = core::mem::take(&mut self.reports);
        if !self.per_packet {
            return Err(format!(
                "`{}` uses no reports on packets; `needs(name)` says what a controller needs",
                self.name
            ));
        }
        self.core.handle_reports(time(now_ms)?, reports);
        Ok(())
    }

    pub fn add_packet(&mut self, token: f64, bytes: f64) -> Result<(), String> {
        self.frame.push((token, size(bytes)?));
        Ok(())
    }

    /// Queues the packets that were added. Returns whether they were accepted.
    pub fn push_frame(&mut self, now_ms: f64, key: bool) -> Result<bool, String> {
        let (now, frame) = (time(now_ms)?, core::mem::take(&mut self.frame));
        self.core.set_paces(true);
        Ok(self.core.push_frame(now, &NewFrame::new(STREAM, now, key), frame).is_ok())
    }
}
