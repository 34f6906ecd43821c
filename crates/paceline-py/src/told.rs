//! What halves in Python are told, and what they answer: the types of `paceline::SendHalf` and `paceline::ReceiveHalf` in
//! numbers with their units, batches as numpy arrays.

use numpy::PyArray1;
use paceline::{MediaKind, NadaMode, PacketKind, PacketReport, Window};
use paceline_units::{DataSize, Rate};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// What a controller is told at birth.
#[pyclass(frozen, get_all, module = "paceline")]
pub struct Setup {
    /// The first target.
    pub start_bps: u64,
    /// Never below this.
    pub min_bps: u64,
    /// The most that the flow's sources can use, headers included.
    pub max_bps: u64,
    /// Its parameters, as scenario and changes say them.
    pub parameters: BTreeMap<String, f64>,
}

/// What encoder and pacer are to do until the next decision.
#[pyclass(frozen, get_all, eq, module = "paceline")]
#[derive(Clone, PartialEq)]
pub struct Decision {
    /// What the flow sends in all, IP and UDP headers included.
    pub target_bps: f64,
    /// How fast the pacer may empty its queue.
    pub pacing_bps: f64,
    /// Up to this rate, padding fills what media leaves free.
    pub padding_bps: f64,
    /// Bound on what was sent and neither acknowledged nor lost.
    pub outstanding_bytes: Option<u64>,
    /// Bound on what was sent after the highest acknowledged packet.
    pub after_highest_bytes: Option<u64>,
}

/// Pacing over target where a decision does not say it (mmsys16, section 3.5).
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
            return Err(PyValueError::new_err("a decision bounds outstanding_bytes or after_highest_bytes, not both"));
        }
        Ok(Self { target_bps, pacing_bps, padding_bps, outstanding_bytes, after_highest_bytes })
    }

    fn __repr__(&self) -> String {
        let Self { target_bps, pacing_bps, padding_bps, .. } = self;
        format!("Decision({target_bps}, pacing_bps={pacing_bps}, padding_bps={padding_bps})")
    }
}

impl Decision {
    /// The answer of a half: a decision, or a target alone.
    pub fn of(answer: &Bound<'_, PyAny>) -> PyResult<paceline::Decision> {
        let decision = match answer.cast::<Self>() {
            Ok(decision) => decision.get().clone(),
            Err(_) => {
                let target = answer.extract::<f64>().map_err(|_| {
                    let kind = answer.get_type();
                    PyTypeError::new_err(format!("decision() answers a Decision or a target in bit/s, not {kind}"))
                })?;
                Self::new(target, None, None, None, None)?
            }
        };
        let window = match (decision.outstanding_bytes, decision.after_highest_bytes) {
            (Some(bytes), _) => Some(Window::Outstanding(DataSize::from_bytes(bytes))),
            (None, bytes) => bytes.map(|bytes| Window::AfterHighest(DataSize::from_bytes(bytes))),
        };
        Ok(paceline::Decision {
            target: Rate::from_bps_f64(decision.target_bps),
            pacing: Rate::from_bps_f64(decision.pacing_bps),
            window,
            padding: Rate::from_bps_f64(decision.padding_bps),
        })
    }
}

/// A rate that makes sense.
pub fn rate(what: &str, bps: f64) -> PyResult<Rate> {
    match bps.is_finite() && bps >= 0.0 {
        true => Ok(Rate::from_bps_f64(bps)),
        false => Err(PyValueError::new_err(format!("{what} is {bps}, and a rate is 0 bit/s or more"))),
    }
}

/// A packet as it left the pacer.
#[pyclass(frozen, get_all, module = "paceline")]
pub struct SentPacket {
    /// Number within the flow, from 0.
    pub sequence: u64,
    /// Bytes on the network, IP and UDP headers included.
    pub size: u64,
    /// Number of its stream.
    pub stream: u8,
    /// `media`, `retransmission`, `fec` or `padding`.
    pub kind: &'static str,
}

/// What each kind of packet is called.
pub fn kind(kind: PacketKind) -> &'static str {
    match kind {
        PacketKind::Media => "media",
        PacketKind::Retransmission => "retransmission",
        PacketKind::Fec => "fec",
        PacketKind::Padding => "padding",
    }
}

/// What an RTCP report says of the flow.
#[pyclass(frozen, get_all, module = "paceline")]
pub struct ReceiverReport {
    /// Fraction of packets lost since the report before, 0 to 1.
    pub fraction_lost: f64,
    /// Round-trip time, if the report gave one.
    pub rtt_s: Option<f64>,
}

/// How a stream is doing at the sender.
#[pyclass(frozen, get_all, module = "paceline")]
pub struct StreamState {
    /// Its number.
    pub stream: u8,
    /// What waits in the pacer for it.
    pub queued_bytes: u64,
    /// What it was allowed and its source did not use.
    pub unused_bps: u64,
    /// Its weight when streams share the target.
    pub priority: f64,
}

/// A message of a receive half; what its kind does not say is None.
#[pyclass(frozen, get_all, module = "paceline")]
pub struct Message {
    /// `remb`, `gradient` or `nada`.
    pub kind: &'static str,
    /// The estimated maximum of a REMB; of the others, the rate that came in.
    pub rate_bps: u64,
    /// Of `gradient`: the one-way delay gradient. Of `nada`: the composite congestion signal.
    pub signal_ms: Option<f64>,
    /// Of `nada`: `ramp-up` or `gradual`.
    pub mode: Option<&'static str>,
}

impl Message {
    /// None for a kind that this version does not know.
    pub fn of(message: &paceline::Message) -> Option<Self> {
        Some(match message {
            paceline::Message::Remb(rate) => {
                Self { kind: "remb", rate_bps: rate.as_bps(), signal_ms: None, mode: None }
            }
            paceline::Message::Gradient(report) => Self {
                kind: "gradient",
                rate_bps: report.incoming.as_bps(),
                signal_ms: Some(report.step.gradient_ms()),
                mode: None,
            },
            paceline::Message::Nada(report) => Self {
                kind: "nada",
                rate_bps: report.incoming.as_bps(),
                signal_ms: Some(report.signal.as_millis_f64()),
                mode: Some(NadaMode::NAMES[report.mode as usize]),
            },
            _ => return None,
        })
    }
}

/// One feedback message, every packet that it settles in order of sequence. Each array is made when it is asked for.
#[pyclass(frozen, module = "paceline")]
pub struct Feedback {
    pub packets: Vec<PacketReport>,
    /// Sent, and neither acknowledged nor lost, after this message.
    #[pyo3(get)]
    pub outstanding_bytes: u64,
    /// Sent after the highest acknowledged packet.
    #[pyo3(get)]
    pub after_highest_bytes: u64,
}

impl Feedback {
    fn column<'py, T: numpy::Element>(
        &self,
        py: Python<'py>,
        value: impl Fn(&PacketReport) -> T,
    ) -> Bound<'py, PyArray1<T>> {
        PyArray1::from_vec(py, self.packets.iter().map(value).collect())
    }
}

#[pymethods]
impl Feedback {
    fn __len__(&self) -> usize {
        self.packets.len()
    }
    /// Number of each packet within the flow.
    #[getter]
    fn sequence<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        self.column(py, |p| p.sequence)
    }
    /// When each left the pacer.
    #[getter]
    fn sent_s<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.column(py, |p| p.sent.as_secs_f64())
    }
    /// When each arrived, on the receiver's clock; NaN: lost.
    #[getter]
    fn arrival_s<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.column(py, |p| p.arrival.map_or(f64::NAN, |at| at.as_nanos() as f64 / 1e9))
    }
    /// Bytes on the network.
    #[getter]
    fn size<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        self.column(py, |p| p.size.as_bytes())
    }
    /// ECN field on arrival: 0 not capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced.
    #[getter]
    fn ecn<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u8>> {
        self.column(py, |p| p.ecn as u8)
    }
}

/// A packet that arrived, and when.
pub type Arrived = (paceline_units::RemoteTime, paceline::Arrival);

/// The packets that arrived since the last call, in order.
#[pyclass(frozen, module = "paceline")]
pub struct Arrivals {
    pub packets: Vec<Arrived>,
}

impl Arrivals {
    fn column<'py, T: numpy::Element>(
        &self,
        py: Python<'py>,
        value: impl Fn(&Arrived) -> T,
    ) -> Bound<'py, PyArray1<T>> {
        PyArray1::from_vec(py, self.packets.iter().map(value).collect())
    }
}

#[pymethods]
impl Arrivals {
    fn __len__(&self) -> usize {
        self.packets.len()
    }
    /// When each arrived, on the receiver's clock.
    #[getter]
    fn arrival_s<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.column(py, |(at, _)| at.as_nanos() as f64 / 1e9)
    }
    /// When each was sent, as its header says: only differences mean anything; NaN: it says nothing.
    #[getter]
    fn sent_s<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.column(py, |(_, a)| a.sent.map_or(f64::NAN, |at| at.as_secs_f64()))
    }
    /// RTP timestamp: packets of one frame share it.
    #[getter]
    fn timestamp<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        self.column(py, |(_, a)| a.timestamp)
    }
    /// RTP sequence number.
    #[getter]
    fn sequence<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u16>> {
        self.column(py, |(_, a)| a.sequence)
    }
    /// Number of its stream.
    #[getter]
    fn stream<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u8>> {
        self.column(py, |(_, a)| a.stream.0)
    }
    /// Whether its stream is video.
    #[getter]
    fn video<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<bool>> {
        self.column(py, |(_, a)| a.media == MediaKind::Video)
    }
    /// Whether it is media, and neither repair nor padding.
    #[getter]
    fn media<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<bool>> {
        self.column(py, |(_, a)| a.kind == PacketKind::Media)
    }
    /// Bytes on the network.
    #[getter]
    fn size<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        self.column(py, |(_, a)| a.size.as_bytes())
    }
    /// ECN field: 0 not capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced.
    #[getter]
    fn ecn<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u8>> {
        self.column(py, |(_, a)| a.ecn as u8)
    }
}
