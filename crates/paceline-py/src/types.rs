// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inputs and outputs of halves in Python: the types of `paceline::SendHalf` and `paceline::ReceiveHalf` as numbers with their
//! units. Batches are numpy arrays.

use numpy::PyArray1;
use paceline::{MediaKind, NadaMode, PacketKind, PacketReport, Window};
use paceline_units::{DataSize, Rate};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// Input of a controller's constructor.
#[pyclass(frozen, get_all, module = "paceline")]
pub struct Setup {
    /// Initial target rate.
    pub start_bps: u64,
    /// Minimum target rate.
    pub min_bps: u64,
    /// Maximum rate that the flow's sources can use, headers included.
    pub max_bps: u64,
    /// Size of the largest RTP packet, without IP and UDP headers.
    pub packet_size_bytes: u64,
    /// Values of the parameters.
    pub parameters: BTreeMap<String, f64>,
}

/// Limits of the target.
#[pyclass(frozen, get_all, module = "paceline")]
pub struct Bounds {
    /// Minimum target rate.
    pub min_bps: u64,
    /// Maximum target rate.
    pub max_bps: u64,
}

impl From<&paceline::Bounds> for Bounds {
    fn from(bounds: &paceline::Bounds) -> Self {
        Self { min_bps: bounds.min.as_bps(), max_bps: bounds.max.as_bps() }
    }
}

/// Rates and window of encoder and pacer until the next decision.
#[pyclass(frozen, get_all, eq, module = "paceline")]
#[derive(Clone, PartialEq)]
pub struct Decision {
    /// Send rate of the flow, IP and UDP headers included.
    pub target_bps: f64,
    /// Rate at which the pacer may empty its queue.
    pub pacing_bps: f64,
    /// Padding fills the flow up to this rate.
    pub padding_bps: f64,
    /// Limit of bytes that are neither acknowledged nor lost.
    pub outstanding_bytes: Option<u64>,
    /// Limit of bytes sent after the highest acknowledged packet.
    pub after_highest_bytes: Option<u64>,
}

/// Default ratio of pacing rate to target (mmsys16, section 3.5).
const PACING: f64 = 1.5;

#[pymethods]
impl Decision {
    #[new]
    #[pyo3(signature = (target_bps, *, pacing_bps=None, padding_bps=None, outstanding_bytes=None, after_highest_bytes=None))]
    fn new(
        target_bps: f64,
        pacing_bps: Option<f64>,
        padding_bps: Option<f64>,
        outstanding_bytes: Option<u64>,
        after_highest_bytes: Option<u64>,
    ) -> PyResult<Self> {
        let target = rate("target_bps", target_bps)?;
        let pacing = target.scale(PACING).max(target).as_bps_f64();
        let pacing_bps = pacing_bps.unwrap_or(pacing);
        let padding_bps = padding_bps.unwrap_or(target_bps);
        rate("pacing_bps", pacing_bps)?;
        rate("padding_bps", padding_bps)?;
        if outstanding_bytes.is_some() && after_highest_bytes.is_some() {
            return Err(PyValueError::new_err("set outstanding_bytes or after_highest_bytes, not both"));
        }
        Ok(Self { target_bps, pacing_bps, padding_bps, outstanding_bytes, after_highest_bytes })
    }

    fn __repr__(&self) -> String {
        let Self { target_bps, pacing_bps, padding_bps, .. } = self;
        format!("Decision({target_bps}, pacing_bps={pacing_bps}, padding_bps={padding_bps})")
    }
}

impl From<&paceline::Decision> for Decision {
    fn from(decision: &paceline::Decision) -> Self {
        let paceline::Decision { target, pacing, padding, window, .. } = *decision;
        let (outstanding_bytes, after_highest_bytes) = match window {
            None => (None, None),
            Some(Window::Outstanding(size)) => (Some(size.as_bytes()), None),
            Some(Window::AfterHighest(size)) => (None, Some(size.as_bytes())),
        };
        Self {
            target_bps: target.as_bps_f64(),
            pacing_bps: pacing.as_bps_f64(),
            padding_bps: padding.as_bps_f64(),
            outstanding_bytes,
            after_highest_bytes,
        }
    }
}

impl Decision {
    /// Converts the result of `decision()`: a decision, or a target in bit/s.
    pub fn of(result: &Bound<'_, PyAny>) -> PyResult<paceline::Decision> {
        let decision = match result.cast::<Self>() {
            Ok(decision) => decision.get().clone(),
            Err(_) => {
                let target = result.extract::<f64>().map_err(|_| {
                    let kind = result.get_type();
                    PyTypeError::new_err(format!("decision() must return a Decision or a target in bit/s, not {kind}"))
                })?;
                Self::new(target, None, None, None, None)?
            }
        };
        let window = match (decision.outstanding_bytes, decision.after_highest_bytes) {
            (Some(bytes), _) => Some(Window::Outstanding(DataSize::from_bytes(bytes))),
            (None, bytes) => bytes.map(|bytes| Window::AfterHighest(DataSize::from_bytes(bytes))),
        };
        Ok(paceline::Decision::new(Rate::from_bps_f64(decision.target_bps))
            .with_pacing(Rate::from_bps_f64(decision.pacing_bps))
            .with_window(window)
            .with_padding(Rate::from_bps_f64(decision.padding_bps)))
    }
}

/// Returns the rate if it is finite and not negative.
pub fn rate(what: &str, bps: f64) -> PyResult<Rate> {
    match bps.is_finite() && bps >= 0.0 {
        true => Ok(Rate::from_bps_f64(bps)),
        false => Err(PyValueError::new_err(format!("{what} is {bps}; a rate must be 0 bit/s or more"))),
    }
}

/// Defines the length of a batch of packets, and a getter for each column: one value of each packet as a numpy array.
macro_rules! columns {
    ($class:ident of $packet:ty { $($(#[$doc:meta])* $name:ident: $type:ty = $value:expr;)* }) => {
        #[pymethods]
        impl $class {
            fn __len__(&self) -> usize {
                self.packets.len()
            }
            $(
                $(#[$doc])*
                #[getter]
                fn $name<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<$type>> {
                    let value: fn(&$packet) -> $type = $value;
                    PyArray1::from_vec(py, self.packets.iter().map(value).collect())
                }
            )*
        }
    };
}

/// A packet that left the pacer.
#[pyclass(frozen, get_all, module = "paceline")]
pub struct SentPacket {
    /// Sequence number within the flow, from 0.
    pub sequence: u64,
    /// Bytes on the network, IP and UDP headers included.
    pub size: u64,
    /// Number of the stream.
    pub stream: u8,
    /// `media`, `retransmission`, `fec` or `padding`.
    pub kind: &'static str,
}

impl From<&paceline::SentPacket> for SentPacket {
    fn from(packet: &paceline::SentPacket) -> Self {
        let paceline::SentPacket { sequence, size, stream, kind, .. } = packet;
        Self { sequence: *sequence, size: size.as_bytes(), stream: stream.0, kind: kind_name(*kind) }
    }
}

pub(crate) fn kind_name(kind: PacketKind) -> &'static str {
    match kind {
        PacketKind::Media => "media",
        PacketKind::Retransmission => "retransmission",
        PacketKind::Fec => "fec",
        PacketKind::Padding => "padding",
    }
}

/// The loss in the RTCP reports on the flow, over at least 20 packets.
#[pyclass(frozen, get_all, module = "paceline")]
pub struct ReceiverReport {
    /// Fraction of packets lost since the previous one, 0 to 1.
    pub fraction_lost: f64,
}

/// The round-trip time of the path, without the time for which the receiver held the report.
#[pyclass(frozen, get_all, module = "paceline")]
pub struct RoundTrip {
    /// The last sample, s.
    pub last_s: f64,
    /// The smoothed time, s: each sample has a weight of 1/8.
    pub smoothed_s: f64,
}

impl From<&paceline::RoundTrip> for RoundTrip {
    fn from(rtt: &paceline::RoundTrip) -> Self {
        Self { last_s: rtt.last.as_secs_f64(), smoothed_s: rtt.smoothed.as_secs_f64() }
    }
}

impl From<&paceline::ReceiverReport> for ReceiverReport {
    fn from(report: &paceline::ReceiverReport) -> Self {
        Self { fraction_lost: report.fraction_lost.get() }
    }
}

/// State of a stream at the sender.
#[pyclass(frozen, get_all, module = "paceline")]
pub struct StreamState {
    /// Number of the stream.
    pub stream: u8,
    /// Bytes of the stream in the pacer's queue.
    pub queued_bytes: u64,
    /// Allocated rate that its source did not use over the last window of 500 ms or more.
    pub unused_bps: u64,
    /// Weight of the stream when streams share the target.
    pub priority: f64,
}

impl From<&paceline::StreamState> for StreamState {
    fn from(state: &paceline::StreamState) -> Self {
        let (stream, queued_bytes, unused_bps) = (state.stream.0, state.queued.as_bytes(), state.unused.as_bps());
        Self { stream, queued_bytes, unused_bps, priority: state.priority }
    }
}

/// A frame whose packets are in the pacer's queue.
#[pyclass(frozen, get_all, module = "paceline")]
pub struct QueuedFrame {
    /// Number of the stream.
    pub stream: u8,
    /// Bytes of its packets on the network, FEC included.
    pub size: u64,
    /// Number of its packets, FEC included.
    pub packets: u32,
    /// Whether it can be decoded without earlier frames.
    pub key: bool,
}

impl From<&paceline::QueuedFrame> for QueuedFrame {
    fn from(frame: &paceline::QueuedFrame) -> Self {
        let paceline::QueuedFrame { stream, size, packets, key, .. } = *frame;
        Self { stream: stream.0, size: size.as_bytes(), packets, key }
    }
}

/// A message of a receive half. Fields that its kind does not have are `None`.
#[pyclass(frozen, get_all, module = "paceline")]
pub struct Message {
    /// `remb` or `nada`.
    pub kind: &'static str,
    /// REMB: the estimated maximum. Other kinds: the receive rate.
    pub rate_bps: u64,
    /// `nada`: the composite congestion signal.
    pub signal_ms: Option<f64>,
    /// `nada`: `ramp-up` or `gradual`.
    pub mode: Option<&'static str>,
}

impl Message {
    /// Converts a message; `None` for a kind that this package does not know.
    pub fn of(message: &paceline::Message) -> Option<Self> {
        let (kind, rate_bps, signal_ms, mode) = match message {
            paceline::Message::Remb(rate) => ("remb", rate.as_bps(), None, None),
            paceline::Message::Nada(report) => {
                let mode = NadaMode::NAMES[report.mode as usize];
                ("nada", report.incoming.as_bps(), Some(report.signal.as_millis_f64()), Some(mode))
            }
            _ => return None,
        };
        Some(Self { kind, rate_bps, signal_ms, mode })
    }
}

/// One feedback message: the packets that it reports as received or lost, in order of sequence. Each array is made on access.
#[pyclass(frozen, module = "paceline")]
pub struct Feedback {
    pub packets: Vec<PacketReport>,
    /// Bytes that are neither acknowledged nor lost after this message.
    #[pyo3(get)]
    pub outstanding_bytes: u64,
    /// Bytes sent after the highest acknowledged packet.
    #[pyo3(get)]
    pub after_highest_bytes: u64,
}

impl From<&paceline::Feedback<'_>> for Feedback {
    fn from(feedback: &paceline::Feedback<'_>) -> Self {
        Self {
            packets: feedback.packets.to_vec(),
            outstanding_bytes: feedback.outstanding.as_bytes(),
            after_highest_bytes: feedback.after_highest.as_bytes(),
        }
    }
}

columns!(Feedback of PacketReport {
    /// Sequence numbers within the flow.
    sequence: u64 = |p| p.sequence;
    /// Times at which the packets left the pacer.
    sent_s: f64 = |p| p.sent.as_secs_f64();
    /// Arrival times on the receiver's clock; NaN: lost.
    arrival_s: f64 = |p| p.arrival.map_or(f64::NAN, |at| at.as_nanos() as f64 / 1e9);
    /// Bytes on the network, IP and UDP headers included.
    size: u64 = |p| p.size.as_bytes();
    /// ECN fields on arrival: 0 not ECN-capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced; -1: the feedback does not
    /// contain them.
    ecn: i8 = |p| p.ecn.map_or(-1, |ecn| ecn as i8);
});

/// Arrival time and description of a packet.
pub type Arrived = (paceline_units::RemoteTime, paceline::Arrival);

/// The packets that arrived since the last call, in order.
#[pyclass(frozen, module = "paceline")]
pub struct Arrivals {
    pub packets: Vec<Arrived>,
}

columns!(Arrivals of Arrived {
    /// Arrival times on the receiver's clock.
    arrival_s: f64 = |(at, _)| at.as_nanos() as f64 / 1e9;
    /// Send times from the header. Only differences are meaningful; NaN: no send time.
    sent_s: f64 = |(_, a)| a.sent.map_or(f64::NAN, |at| at.as_secs_f64());
    /// RTP timestamps. The packets of a frame share one.
    timestamp: u32 = |(_, a)| a.timestamp;
    /// RTP sequence numbers.
    sequence: u16 = |(_, a)| a.sequence;
    /// Number of the stream.
    stream: u8 = |(_, a)| a.stream.0;
    /// Whether the stream is video.
    video: bool = |(_, a)| a.media == MediaKind::Video;
    /// Whether the packet is media, not repair or padding.
    media: bool = |(_, a)| a.kind == PacketKind::Media;
    /// Bytes on the network, IP and UDP headers included.
    size: u64 = |(_, a)| a.size.as_bytes();
    /// ECN fields: 0 not ECN-capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced.
    ecn: u8 = |(_, a)| a.ecn as u8;
});
