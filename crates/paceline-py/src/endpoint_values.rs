// SPDX-License-Identifier: MIT OR Apache-2.0
//! What goes into and comes out of `paceline::Sender` and `paceline::Receiver`, with the checks of numbers and names from Python.

use crate::errors::Failure;
use crate::testing::{SetupNumbers, bounds_of, setup_of};
use crate::types::kind_name;
use paceline::{MediaKind, PacketArrival, PacketKind, Reception, SenderEvent};
use paceline_units::{DataSize, Ecn, Rate, RemoteTime, StreamId, Time};
use paceline_wire::{ExtensionIds, RtpHeader};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The latest time, s: 127 years, so that no sum of two times overflows.
const TIME_MAX: f64 = 4e9;
pub(crate) const ECN: [(&str, Ecn); 4] =
    [("not-ect", Ecn::NotEct), ("ect0", Ecn::Ect0), ("ect1", Ecn::Ect1), ("ce", Ecn::Ce)];
const KINDS: [PacketKind; 4] = [PacketKind::Media, PacketKind::Retransmission, PacketKind::Fec, PacketKind::Padding];
pub(crate) const MEDIA: [(&str, MediaKind); 2] = [("video", MediaKind::Video), ("audio", MediaKind::Audio)];

pub(crate) type Checked<T> = Result<T, Failure>;

pub(crate) fn time(now_s: f64) -> Checked<Time> {
    match (0.0..=TIME_MAX).contains(&now_s) {
        true => Ok(Time::from_secs_f64(now_s)),
        false => Err(Failure::Argument(format!("a time must be 0 to {TIME_MAX:.0} seconds, not {now_s}"))),
    }
}

pub(crate) fn remote(now_s: f64) -> Checked<RemoteTime> {
    Ok(RemoteTime::from_nanos(time(now_s)?.as_nanos()))
}

pub(crate) fn seconds(at: RemoteTime) -> f64 {
    at.as_nanos() as f64 / 1e9
}

/// Returns the value of a name among `known`.
pub(crate) fn named<T: Copy>(what: &str, name: &str, known: &[(&str, T)]) -> Checked<T> {
    let names = || known.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let found = known.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    found.ok_or_else(|| Failure::Argument(format!("{what} must be one of {}, not {name:?}", names())))
}

pub(crate) fn packet_kind(name: &str) -> Checked<PacketKind> {
    named("kind", name, &KINDS.map(|kind| (kind_name(kind), kind)))
}

pub(crate) fn name_of<T: PartialEq>(value: &T, known: &[(&'static str, T)]) -> &'static str {
    known.iter().find(|(_, known)| known == value).map_or("", |(name, _)| name)
}

pub(crate) fn packet_size(bytes: u64) -> Checked<DataSize> {
    match bytes {
        1..=65_535 => Ok(DataSize::from_bytes(bytes)),
        _ => Err(Failure::Argument(format!("the size of a packet must be 1 to 65535 bytes, not {bytes}"))),
    }
}

pub(crate) fn checked_setup(numbers: SetupNumbers) -> Checked<paceline::Setup> {
    let setup = setup_of(numbers);
    match setup.is_valid() {
        true => Ok(setup),
        false => Err(Failure::Argument(
            "min_bps must not be above start_bps or max_bps, and start_bps, max_bps and packet_size_bytes must be above 0"
                .to_owned(),
        )),
    }
}

pub(crate) fn bounds(min_bps: u64, max_bps: u64) -> Checked<paceline::Bounds> {
    match min_bps <= max_bps && max_bps > 0 {
        true => Ok(bounds_of(min_bps, max_bps)),
        false => Err(Failure::Argument("max_bps must be above 0, and min_bps not above max_bps".to_owned())),
    }
}

/// What the receiver must learn about a packet.
#[pyclass(frozen, get_all, eq, module = "paceline")]
#[derive(Clone, PartialEq)]
pub struct PacketHead {
    number: u64,
    sent_s: f64,
    stream: u8,
    media: &'static str,
    kind: &'static str,
    timestamp: u32,
}

#[pymethods]
impl PacketHead {
    #[new]
    #[pyo3(signature = (number, sent_s, *, stream=0, media="video", kind="media", timestamp=0))]
    fn new(number: u64, sent_s: f64, stream: u8, media: &str, kind: &str, timestamp: u32) -> PyResult<Self> {
        time(sent_s)?;
        let media = name_of(&named("media", media, &MEDIA)?, &MEDIA);
        Ok(Self { number, sent_s, stream, media, kind: kind_name(packet_kind(kind)?), timestamp })
    }

    /// Returns an RTP header with the number and the time in its extensions.
    #[pyo3(signature = (ssrc, sequence, *, payload_type=96, marker=false, abs_send_time_id=2, transport_sequence_id=3))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn rtp_header<'py>(
        &self,
        py: Python<'py>,
        ssrc: u32,
        sequence: u16,
        payload_type: u8,
        marker: bool,
        abs_send_time_id: u8,
        transport_sequence_id: u8,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let ids = ExtensionIds { abs_send_time: abs_send_time_id, transport_sequence: transport_sequence_id };
        let header = RtpHeader { payload_type, marker, ..self.head()?.rtp_header(ssrc, sequence) };
        let mut bytes = [0; RtpHeader::MAX_LEN];
        let length = header.write(&ids, &mut bytes);
        Ok(PyBytes::new(py, &bytes[..length]))
    }
}

impl PacketHead {
    pub(crate) fn of(head: &paceline::PacketHead) -> Self {
        let paceline::PacketHead { number, sent, stream, media, kind, timestamp, .. } = *head;
        let (media, kind) = (name_of(&media, &MEDIA), kind_name(kind));
        Self { number, sent_s: sent.as_secs_f64(), stream: stream.0, media, kind, timestamp }
    }

    pub(crate) fn head(&self) -> Checked<paceline::PacketHead> {
        let mut head = paceline::PacketHead::new(self.number, time(self.sent_s)?, self.timestamp);
        head.stream = StreamId(self.stream);
        head.media = named("media", self.media, &MEDIA)?;
        head.kind = packet_kind(self.kind)?;
        Ok(head)
    }
}

/// A packet to send now.
#[pyclass(frozen, get_all, module = "paceline")]
pub struct Transmit {
    pub(crate) packet: Option<Py<PyAny>>,
    pub(crate) head: Py<PacketHead>,
    pub(crate) size: u64,
    pub(crate) ecn: &'static str,
    pub(crate) probe: Option<u16>,
}

/// What changed in a sender. Fields that the kind does not have are `None`.
#[pyclass(frozen, get_all, name = "SenderEvent", module = "paceline")]
#[derive(Default)]
pub struct Event {
    kind: &'static str,
    stream: Option<u8>,
    probe: Option<u16>,
    rate_bps: Option<f64>,
    seconds: Option<f64>,
    fraction_lost: Option<f64>,
}

impl Event {
    /// Returns an event as Python sees it; `None` for one that this package does not know.
    pub(crate) fn of(event: SenderEvent) -> Option<Self> {
        let mut found = Self::default();
        found.kind = match event {
            SenderEvent::Decision(decision) => {
                found.rate_bps = Some(decision.target.as_bps_f64());
                "decision"
            }
            SenderEvent::StreamRates => "stream-rates",
            SenderEvent::RoundTrip(rtt) => {
                found.seconds = Some(rtt.as_secs_f64());
                "round-trip"
            }
            SenderEvent::FractionLost(fraction) => {
                found.fraction_lost = Some(fraction.get());
                "fraction-lost"
            }
            SenderEvent::ProbeResult { id, rate } => {
                (found.probe, found.rate_bps) = (Some(id), Some(rate.as_bps_f64()));
                "probe-result"
            }
            SenderEvent::FrameDropped(StreamId(stream)) => {
                found.stream = Some(stream);
                "frame-dropped"
            }
            SenderEvent::KeyFrameRequested(StreamId(stream)) => {
                found.stream = Some(stream);
                "key-frame-requested"
            }
            SenderEvent::FeedbackLost => "feedback-lost",
            SenderEvent::FeedbackResumed => "feedback-resumed",
            SenderEvent::ClockSteppedBack(step) => {
                found.seconds = Some(step.as_secs_f64());
                "clock-stepped-back"
            }
            SenderEvent::ControllerFailed => "controller-failed",
            _ => return None,
        };
        Some(found)
    }
}

/// Packets at a rate that find out whether the path has it, for a program with a pacer of its own.
#[pyclass(frozen, get_all, name = "ProbeCluster", module = "paceline")]
pub struct Probe {
    pub(crate) id: u16,
    pub(crate) rate_bps: f64,
    pub(crate) duration_s: f64,
    pub(crate) packets: u16,
}

pub(crate) type ArrivalNumbers = (u64, Option<f64>, Option<String>);

/// A report of a receiver.
#[pyclass(frozen, module = "paceline")]
pub struct Report(pub(crate) paceline::Report);

#[pymethods]
impl Report {
    #[new]
    #[pyo3(signature = (number, written_s, packets, *, reception=None, remb_bps=None))]
    fn new(
        number: u64,
        written_s: f64,
        packets: Vec<ArrivalNumbers>,
        reception: Option<(u64, u64, f64, f64)>,
        remb_bps: Option<u64>,
    ) -> PyResult<Self> {
        let mut report = paceline::Report::default();
        (report.number, report.written) = (number, remote(written_s)?);
        let arrival = |(number, at, ecn)| -> Checked<_> {
            let (number, at, ecn) = arrival_of((number, at, ecn))?;
            let mut arrival = PacketArrival::new(number, at);
            arrival.ecn = ecn;
            Ok(arrival)
        };
        report.packets = packets.into_iter().map(arrival).collect::<Checked<_>>()?;
        report.messages = remb_bps.map(|bps| paceline::Message::Remb(Rate::from_bps(bps))).into_iter().collect();
        if let Some((end, arrived, echo_s, held_s)) = reception {
            let held = time(held_s)? - Time::ZERO;
            report.reception = Some(Reception::new(end, arrived, time(echo_s)?, held));
        }
        Ok(Self(report))
    }

    #[getter]
    fn number(&self) -> u64 {
        self.0.number
    }

    #[getter]
    fn written_s(&self) -> f64 {
        seconds(self.0.written)
    }

    #[getter]
    fn packets(&self) -> Vec<(u64, Option<f64>, Option<&'static str>)> {
        let ecn = |packet: &PacketArrival| packet.ecn.map(|ecn| name_of(&ecn, &ECN));
        self.0.packets.iter().map(|packet| (packet.number, packet.arrival.map(seconds), ecn(packet))).collect()
    }

    #[getter]
    fn reception(&self) -> Option<(u64, u64, f64, f64)> {
        let Reception { end, arrived, echo, held, .. } = self.0.reception?;
        Some((end, arrived, echo.as_secs_f64(), held.as_secs_f64()))
    }

    #[getter]
    fn remb_bps(&self) -> Option<u64> {
        self.0.messages.iter().rev().find_map(|message| match message {
            paceline::Message::Remb(rate) => Some(rate.as_bps()),
            _ => None,
        })
    }
}

pub(crate) fn arrival_of((number, at, ecn): ArrivalNumbers) -> Checked<(u64, Option<RemoteTime>, Option<Ecn>)> {
    let ecn = ecn.map(|name| named("ecn", &name, &ECN)).transpose()?;
    Ok((number, at.map(remote).transpose()?, ecn))
}

pub(crate) fn malformed(error: paceline_wire::WireError) -> PyErr {
    Failure::Input(format!("the datagram is malformed: {error}")).into()
}
