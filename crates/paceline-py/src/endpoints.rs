// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline::Sender` and `paceline::Receiver`, for programs that send media themselves. Times are seconds, rates bit/s, sizes bytes on
//! the network, IP and UDP headers included.

use crate::controller::Registered;
use crate::endpoint_values::{
    ArrivalNumbers, Checked, ECN, Event, MEDIA, PacketHead, Probe, Report, Transmit, arrival_of, bounds, checked_setup,
    malformed, name_of, named, packet_kind, packet_size, remote, seconds, time,
};
use crate::errors::Failure;
use crate::testing::{SetupNumbers, build, raised};
use crate::types::Decision;
use paceline::{
    FeedbackFormats, MediaKind, NewFrame, Outgoing, ProbeCluster, QueuedFrame, RtpArrival, SenderConfig, Signals,
    StreamConfig, StreamState,
};
use paceline_units::{DataSize, Fraction, Rate, StreamId, Time};
use paceline_wire::{ExtensionIds, RtpHeader};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Arc, Mutex, PoisonError};

/// The longest RTCP compound that a receiver writes.
const COMPOUND_MAX: usize = 1200;

/// What the program attaches to a packet.
type Content = Arc<Py<PyAny>>;

/// The sender of a flow.
#[pyclass(subclass, module = "paceline")]
pub struct FlowSender {
    // The halves are `Send` alone; the mutex is never locked.
    core: Mutex<paceline::Sender<Content>>,
    has_raised: bool,
}

impl FlowSender {
    fn core(&mut self) -> &mut paceline::Sender<Content> {
        self.core.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the sender, and raises the exception of a controller in Python once.
    fn call<T>(&mut self, work: impl FnOnce(&mut paceline::Sender<Content>) -> T) -> PyResult<T> {
        let result = work(self.core());
        if !self.has_raised
            && let Some(failure) = self.core().failure().cloned()
        {
            self.has_raised = true;
            raised(Some(failure))?;
        }
        Ok(result)
    }
}

#[pymethods]
impl FlowSender {
    #[new]
    fn new(
        name: &str,
        setup: SetupNumbers,
        parameters: Vec<(String, f64)>,
        controllers: Vec<Registered>,
    ) -> PyResult<Self> {
        let config = SenderConfig::new(&checked_setup(setup)?);
        let mut controller = build(name, setup, &parameters, controllers)?;
        let mut core = paceline::Sender::new(&config, &mut controller, Signals::disabled());
        core.add_stream(&StreamConfig::video(StreamId(0), Rate::ZERO, Rate::MAX));
        Ok(Self { core: Mutex::new(core), has_raised: false })
    }

    #[pyo3(signature = (stream, *, media="video", min_bps=0, max_bps=None, priority=1.0))]
    fn add_stream(
        &mut self,
        stream: u8,
        media: &str,
        min_bps: u64,
        max_bps: Option<u64>,
        priority: f64,
    ) -> PyResult<bool> {
        let mut config = StreamConfig::video(StreamId(stream), Rate::from_bps(min_bps), Rate::MAX);
        config.max = max_bps.map_or(Rate::MAX, Rate::from_bps);
        config.kind = named("media", media, &MEDIA)?;
        config.priority = priority;
        if config.kind == MediaKind::Audio {
            config.clock_rate = StreamConfig::audio(config.id, config.max).clock_rate;
        }
        if !(priority > 0.0 && priority.is_finite()) || config.min > config.max {
            let cause = "priority must be above 0, and min_bps not above max_bps";
            return Err(Failure::Argument(cause.to_owned()).into());
        }
        self.call(|core| core.add_stream(&config).is_some())
    }

    fn remove_stream(&mut self, now_s: f64, stream: u8) -> PyResult<bool> {
        let now = time(now_s)?;
        self.call(|core| core.remove_stream(now, StreamId(stream)))
    }

    #[pyo3(signature = (now_s, stream, *, min_bps, max_bps))]
    fn set_stream_limits(&mut self, now_s: f64, stream: u8, min_bps: u64, max_bps: u64) -> PyResult<bool> {
        let now = time(now_s)?;
        if min_bps > max_bps {
            return Err(Failure::Argument("min_bps must not be above max_bps".to_owned()).into());
        }
        let (min, max) = (Rate::from_bps(min_bps), Rate::from_bps(max_bps));
        self.call(|core| core.set_stream_limits(now, StreamId(stream), min, max))
    }

    #[pyo3(signature = (now_s, packets, *, key=false, stream=0, captured_s=None))]
    fn push_frame(
        &mut self,
        now_s: f64,
        packets: &Bound<'_, PyAny>,
        key: bool,
        stream: u8,
        captured_s: Option<f64>,
    ) -> PyResult<bool> {
        let (now, captured) = (time(now_s)?, time(captured_s.unwrap_or(now_s))?);
        let mut frame = Vec::new();
        for packet in packets.try_iter()? {
            let (content, size): (Py<PyAny>, u64) = packet?.extract()?;
            frame.push((Arc::new(content), packet_size(size)?));
        }
        if frame.is_empty() {
            return Err(Failure::Argument("a frame needs a packet".to_owned()).into());
        }
        let new = NewFrame::new(StreamId(stream), captured, key);
        self.call(|core| core.push_frame(now, &new, frame).is_ok())
    }

    fn poll_transmit(&mut self, py: Python<'_>, now_s: f64) -> PyResult<Option<Transmit>> {
        let now = time(now_s)?;
        let Some(sent) = self.call(|core| core.poll_transmit(now))? else { return Ok(None) };
        let head = Py::new(py, PacketHead::of(&sent.head))?;
        let (size, ecn) = (sent.size.as_bytes(), name_of(&sent.ecn, &ECN));
        let packet = sent.packet.map(|content| content.clone_ref(py));
        Ok(Some(Transmit { packet, head, size, ecn, probe: sent.probe }))
    }

    fn set_paces(&mut self, paces: bool) -> PyResult<()> {
        self.call(|core| core.set_paces(paces))
    }

    #[pyo3(signature = (now_s, size, *, stream=0, kind="media", probe=None))]
    fn handle_sent(&mut self, now_s: f64, size: u64, stream: u8, kind: &str, probe: Option<u16>) -> PyResult<u64> {
        let now = time(now_s)?;
        let packet = Outgoing::new(packet_size(size)?, StreamId(stream), packet_kind(kind)?).with_probe(probe);
        self.call(|core| core.handle_sent(now, &packet))
    }

    #[pyo3(signature = (now_s, queued_bytes, *, stream=0, max_bps=None))]
    fn handle_stream(&mut self, now_s: f64, queued_bytes: u64, stream: u8, max_bps: Option<u64>) -> PyResult<()> {
        let (now, state) = (time(now_s)?, StreamState::new(StreamId(stream), DataSize::from_bytes(queued_bytes)));
        self.call(|core| core.handle_stream(now, &state.with_max(max_bps.map_or(Rate::MAX, Rate::from_bps))))
    }

    #[pyo3(signature = (now_s, size, packets, *, key=false, stream=0))]
    fn finish_frame(&mut self, now_s: f64, size: u64, packets: u32, key: bool, stream: u8) -> PyResult<()> {
        let frame = QueuedFrame::new(StreamId(stream), DataSize::from_bytes(size), packets).with_key(key);
        let now = time(now_s)?;
        self.call(|core| core.finish_frame(now, &frame))
    }

    fn poll_probe(&mut self) -> PyResult<Option<Probe>> {
        let cluster = self.call(paceline::Sender::poll_probe)?;
        Ok(cluster.map(|ProbeCluster { id, rate, duration, packets, .. }| Probe {
            id,
            rate_bps: rate.as_bps_f64(),
            duration_s: duration.as_secs_f64(),
            packets,
        }))
    }

    fn handle_report(&mut self, now_s: f64, report: &Report) -> PyResult<()> {
        let now = time(now_s)?;
        self.call(|core| core.handle_report(now, &report.0))
    }

    fn handle_reports(&mut self, now_s: f64, packets: Vec<ArrivalNumbers>) -> PyResult<()> {
        let now = time(now_s)?;
        let packets = packets.into_iter().map(arrival_of).collect::<Checked<Vec<_>>>()?;
        self.call(|core| core.handle_reports(now, packets))
    }

    fn handle_rtt(&mut self, now_s: f64, rtt_s: f64) -> PyResult<()> {
        let (now, rtt) = (time(now_s)?, time(rtt_s)? - Time::ZERO);
        self.call(|core| core.handle_rtt(now, rtt))
    }

    fn handle_loss(&mut self, now_s: f64, fraction_lost: f64) -> PyResult<()> {
        let now = time(now_s)?;
        let Some(fraction) = Fraction::new(fraction_lost) else {
            let cause = format!("fraction_lost must be 0 to 1, not {fraction_lost}");
            return Err(Failure::Argument(cause).into());
        };
        self.call(|core| core.handle_loss(now, fraction))
    }

    fn handle_remb(&mut self, now_s: f64, bps: u64) -> PyResult<()> {
        let now = time(now_s)?;
        self.call(|core| core.handle_message(now, &paceline::Message::Remb(Rate::from_bps(bps))))
    }

    fn handle_rtcp(&mut self, now_s: f64, datagram: &[u8]) -> PyResult<()> {
        let now = time(now_s)?;
        self.call(|core| core.handle_rtcp(now, datagram))?.map_err(malformed)
    }

    fn add_ssrcs(&mut self, stream: u8, ssrc: u32, rtx_ssrc: u32, first_sequence: u16) -> PyResult<()> {
        self.call(|core| core.add_ssrcs(StreamId(stream), ssrc, rtx_ssrc, first_sequence))
    }

    fn handle_rtp_sent(&mut self, number: u64, ssrc: u32, sequence: u16) -> PyResult<()> {
        self.call(|core| core.handle_rtp_sent(number, ssrc, sequence))
    }

    #[pyo3(signature = (now_s, *, min_bps, max_bps))]
    fn set_bounds(&mut self, now_s: f64, min_bps: u64, max_bps: u64) -> PyResult<()> {
        let (now, bounds) = (time(now_s)?, bounds(min_bps, max_bps)?);
        self.call(|core| core.set_bounds(now, &bounds))
    }

    #[pyo3(signature = (now_s, *, start_bps, min_bps, max_bps, packet_size_bytes=1200))]
    fn handle_route_change(
        &mut self,
        now_s: f64,
        start_bps: u64,
        min_bps: u64,
        max_bps: u64,
        packet_size_bytes: u64,
    ) -> PyResult<()> {
        let (now, setup) = (time(now_s)?, checked_setup((start_bps, min_bps, max_bps, packet_size_bytes))?);
        self.call(|core| core.handle_route_change(now, &setup))
    }

    fn set_available(&mut self, now_s: f64, available: bool) -> PyResult<()> {
        let now = time(now_s)?;
        self.call(|core| core.set_available(now, available))
    }

    fn handle_timeout(&mut self, now_s: f64) -> PyResult<()> {
        let now = time(now_s)?;
        self.call(|core| core.handle_timeout(now)).map(drop)
    }

    fn poll_timeout(&mut self) -> Option<f64> {
        self.core().poll_timeout().map(Time::as_secs_f64)
    }

    fn poll_event(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = Event::of(self.core().poll_event()?) {
                return Some(event);
            }
        }
    }

    fn stream_rate_bps(&mut self, stream: u8) -> Option<f64> {
        self.core().stream_rate(StreamId(stream)).map(Rate::as_bps_f64)
    }

    #[getter]
    fn target_bps(&mut self) -> f64 {
        self.core().target().as_bps_f64()
    }

    #[getter]
    fn decision(&mut self) -> Decision {
        Decision::from(self.core().decision())
    }

    #[getter]
    fn window_is_open(&mut self) -> bool {
        self.core().window_is_open()
    }

    #[getter]
    fn queued_bytes(&mut self) -> u64 {
        self.core().queued().as_bytes()
    }

    #[getter]
    fn in_flight_bytes(&mut self) -> u64 {
        self.core().flight().outstanding.as_bytes()
    }
}

/// The receiver of a flow.
#[pyclass(subclass, module = "paceline")]
pub struct FlowReceiver {
    // The halves are `Send` alone; the mutex is never locked.
    core: Mutex<paceline::Receiver>,
    ids: ExtensionIds,
    has_raised: bool,
}

impl FlowReceiver {
    fn call<T>(&mut self, work: impl FnOnce(&mut paceline::Receiver) -> T) -> PyResult<T> {
        let core = self.core.get_mut().unwrap_or_else(PoisonError::into_inner);
        let result = work(core);
        if !self.has_raised
            && let Some(failure) = core.failure().cloned()
        {
            self.has_raised = true;
            raised(Some(failure))?;
        }
        Ok(result)
    }
}

#[pymethods]
impl FlowReceiver {
    #[new]
    fn new(
        name: &str,
        setup: SetupNumbers,
        parameters: Vec<(String, f64)>,
        controllers: Vec<Registered>,
        rtp: Option<(u32, u32, u8, u8)>,
    ) -> PyResult<Self> {
        checked_setup(setup)?;
        let mut controller = build(name, setup, &parameters, controllers)?;
        let mut ids = ExtensionIds::default();
        let core = match rtp {
            None => paceline::Receiver::new(&mut controller, Signals::disabled()),
            Some((own_ssrc, media_ssrc, abs_send_time, transport_sequence)) => {
                ids = ExtensionIds { abs_send_time, transport_sequence };
                let formats = FeedbackFormats::default();
                paceline::Receiver::for_rtp(&mut controller, [own_ssrc, media_ssrc], formats, Signals::disabled())
            }
        };
        Ok(Self { core: Mutex::new(core), ids, has_raised: false })
    }

    #[pyo3(signature = (now_s, head, size, *, ecn="not-ect"))]
    fn handle_packet(&mut self, now_s: f64, head: &PacketHead, size: u64, ecn: &str) -> PyResult<()> {
        let (now, head, size, ecn) = (remote(now_s)?, head.head()?, packet_size(size)?, named("ecn", ecn, &ECN)?);
        self.call(|core| core.handle_packet(now, &head, size, ecn))
    }

    #[pyo3(signature = (now_s, datagram, *, size, ecn="not-ect", stream=0, media="video", kind="media"))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn handle_rtp(
        &mut self,
        now_s: f64,
        datagram: &[u8],
        size: u64,
        ecn: &str,
        stream: u8,
        media: &str,
        kind: &str,
    ) -> PyResult<()> {
        let (now, kind, media) = (remote(now_s)?, packet_kind(kind)?, named("media", media, &MEDIA)?);
        let packet =
            RtpArrival::new(kind, packet_size(size)?, named("ecn", ecn, &ECN)?).with_stream(StreamId(stream), media);
        let (header, _) = RtpHeader::parse(datagram, &self.ids).map_err(malformed)?;
        self.call(|core| core.handle_rtp(now, &header, &packet))
    }

    fn handle_rtcp(&mut self, now_s: f64, datagram: &[u8]) -> PyResult<()> {
        let now = remote(now_s)?;
        self.call(|core| core.handle_rtcp(now, datagram))?.map_err(malformed)
    }

    fn add_ssrcs(&mut self, ssrcs: Vec<u32>) -> PyResult<()> {
        self.call(|core| core.add_ssrcs(&ssrcs))
    }

    fn poll_report(&mut self, now_s: f64) -> PyResult<Option<Report>> {
        let now = remote(now_s)?;
        Ok(self.call(|core| core.poll_report(now))?.map(Report))
    }

    fn poll_rtcp<'py>(&mut self, py: Python<'py>, now_s: f64) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let (now, mut buffer) = (remote(now_s)?, [0; COMPOUND_MAX]);
        let length = self.call(|core| core.poll_rtcp(now, &mut buffer))?.ok().flatten();
        Ok(length.map(|length| PyBytes::new(py, &buffer[..length])))
    }

    fn handle_timeout(&mut self, now_s: f64) -> PyResult<()> {
        let now = remote(now_s)?;
        self.call(|core| core.handle_timeout(now))
    }

    fn poll_timeout(&mut self) -> PyResult<Option<f64>> {
        Ok(self.call(|core| core.poll_timeout())?.map(seconds))
    }

    #[pyo3(signature = (now_s, *, min_bps, max_bps))]
    fn set_bounds(&mut self, now_s: f64, min_bps: u64, max_bps: u64) -> PyResult<()> {
        let (now, bounds) = (remote(now_s)?, bounds(min_bps, max_bps)?);
        self.call(|core| core.set_bounds(now, &bounds))
    }

    #[pyo3(signature = (now_s, *, start_bps, min_bps, max_bps, packet_size_bytes=1200))]
    fn handle_route_change(
        &mut self,
        now_s: f64,
        start_bps: u64,
        min_bps: u64,
        max_bps: u64,
        packet_size_bytes: u64,
    ) -> PyResult<()> {
        let (now, setup) = (remote(now_s)?, checked_setup((start_bps, min_bps, max_bps, packet_size_bytes))?);
        self.call(|core| core.handle_route_change(now, &setup))
    }
}
