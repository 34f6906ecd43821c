// SPDX-License-Identifier: MIT OR Apache-2.0
//! Senders and receivers of the tests: the functions of the interface without their pointers.

use paceline_abi::{PACELINE_NO_PROBE, PacelineDecision, PacelineLimits, PacelineProbe};
use paceline_c::*;
use std::ffi::{CStr, CString};
use std::ptr::null_mut;

/// 300 kbit/s at first, and from 50 kbit/s to 10 Mbit/s.
pub const LIMITS: PacelineLimits = PacelineLimits {
    size: size_of::<PacelineLimits>(),
    start_bps: 300_000,
    min_bps: 50_000,
    max_bps: 10_000_000,
    packet_size_bytes: 0,
};

pub const OWN_SSRC: u32 = 2000;
pub const MEDIA_SSRC: u32 = 1000;

/// Returns the text of the last error.
pub fn last_error() -> String {
    unsafe { CStr::from_ptr(paceline_last_error()) }.to_string_lossy().into_owned()
}

/// Returns a time in ns.
pub fn ms(ms: i64) -> i64 {
    ms * 1_000_000
}

/// Parameters and their values, with the names that they point to.
struct Settings(Vec<PacelineSetting>, #[allow(dead_code, reason = "it keeps the names alive")] Vec<CString>);

impl Settings {
    fn new(settings: &[(&str, f64)]) -> Self {
        let names: Vec<CString> = settings.iter().map(|(name, _)| CString::new(*name).unwrap()).collect();
        let values = settings.iter().map(|(_, value)| *value);
        let settings = names.iter().zip(values).map(|(name, value)| PacelineSetting { name: name.as_ptr(), value });
        Self(settings.collect(), names)
    }
}

pub struct Sender(*mut PacelineSender);

impl Drop for Sender {
    fn drop(&mut self) {
        unsafe { paceline_sender_destroy(self.0) };
    }
}

/// Returns what a controller needs.
pub fn needs(name: &str) -> u32 {
    let (name, mut needs) = (CString::new(name).unwrap(), 0);
    assert_eq!(unsafe { paceline_controller_needs(name.as_ptr(), &mut needs) }, PACELINE_OK);
    needs
}

impl Sender {
    /// Returns the next probe cluster of a program with a pacer of its own.
    pub fn poll_probe(&mut self) -> Option<PacelineProbe> {
        let mut probe = PacelineProbe::default();
        let status = unsafe { paceline_sender_poll_probe(self.0, &mut probe) };
        (status == PACELINE_OK).then_some(probe)
    }

    /// Records a packet of a probe cluster.
    pub fn probe_sent(&mut self, now_ns: i64, kind: u8, probe: i32) -> Result<u64, PacelineStatus> {
        let mut sequence = 0;
        let status = unsafe { paceline_sender_probe_sent(self.0, now_ns, 1200, kind, probe, &mut sequence) };
        if status == PACELINE_OK { Ok(sequence) } else { Err(status) }
    }

    /// Returns the events that wait.
    pub fn events(&mut self) -> Vec<PacelineEvent> {
        let (mut events, mut event) = (Vec::new(), PacelineEvent::default());
        while unsafe { paceline_sender_poll_event(self.0, &mut event) } == PACELINE_OK {
            events.push(event);
        }
        events
    }

    pub fn rtt(&mut self, now: i64, rtt_ns: i64) {
        assert_eq!(unsafe { paceline_sender_rtt(self.0, now, rtt_ns) }, PACELINE_OK);
    }

    pub fn loss(&mut self, now: i64, fraction: f64) {
        assert_eq!(unsafe { paceline_sender_loss(self.0, now, fraction) }, PACELINE_OK);
    }

    pub fn remb(&mut self, now: i64, rate_bps: u64) -> PacelineStatus {
        unsafe { paceline_sender_remb(self.0, now, rate_bps) }
    }

    pub fn new(name: &str, limits: PacelineLimits) -> Result<Self, PacelineStatus> {
        let (name, mut sender) = (CString::new(name).unwrap(), null_mut());
        let status = unsafe { paceline_sender_create(name.as_ptr(), &limits, &mut sender) };
        if status == PACELINE_OK { Ok(Self(sender)) } else { Err(status) }
    }

    /// Returns a sender with some parameters changed.
    pub fn configured(name: &str, settings: &[(&str, f64)]) -> Result<Self, PacelineStatus> {
        let (name, mut sender, settings) = (CString::new(name).unwrap(), null_mut(), Settings::new(settings));
        let (first, count) = (settings.0.as_ptr(), settings.0.len());
        let status = unsafe { paceline_sender_create_with(name.as_ptr(), &LIMITS, first, count, &mut sender) };
        if status == PACELINE_OK { Ok(Self(sender)) } else { Err(status) }
    }

    /// Queues a frame of packets of 1200 bytes with the token 7.
    pub fn push_frame(&mut self, now: i64, packets: usize) -> PacelineStatus {
        let packets = vec![PacelineFramePacket { token: 7, size_bytes: 1200 }; packets];
        unsafe { paceline_sender_push_frame(self.0, now, packets.as_ptr(), packets.len(), 0, 50_000, 10_000_000) }
    }

    /// Returns the next packet, unless there is none.
    pub fn poll(&mut self, now: i64) -> Option<PacelinePacket> {
        let mut packet = PacelinePacket::default();
        let status = unsafe { paceline_sender_poll_packet(self.0, now, &mut packet) };
        assert!([PACELINE_OK, PACELINE_NOTHING].contains(&status), "{}", last_error());
        (status == PACELINE_OK).then_some(packet)
    }

    /// Returns all packets that leave up to `end`, each when it is due, with its time. Timeouts are handled.
    pub fn poll_until(&mut self, mut now: i64, end: i64) -> Vec<(i64, PacelinePacket)> {
        let mut sent = Vec::new();
        loop {
            self.on_timeout(now);
            sent.extend(std::iter::from_fn(|| self.poll(now)).map(|packet| (now, packet)));
            match self.next_timeout() {
                due if due <= end => now = now.max(due),
                _ => return sent,
            }
        }
    }

    pub fn packet_sent(&mut self, now: i64) -> u64 {
        let mut sequence = 0;
        let status = unsafe { paceline_sender_packet_sent(self.0, now, 1200, 0, &mut sequence) };
        assert_eq!(status, PACELINE_OK);
        sequence
    }

    pub fn rtp_number(&mut self, sequence: u64, ssrc: u32, number: u16) -> PacelineStatus {
        unsafe { paceline_sender_rtp_number(self.0, sequence, ssrc, number) }
    }

    pub fn feedback(&mut self, now: i64, arrivals: &[PacelineArrival]) {
        assert_eq!(self.try_feedback(now, arrivals), PACELINE_OK);
    }

    pub fn try_feedback(&mut self, now: i64, arrivals: &[PacelineArrival]) -> PacelineStatus {
        unsafe { paceline_sender_feedback(self.0, now, arrivals.as_ptr(), arrivals.len()) }
    }

    pub fn rtcp(&mut self, now: i64, bytes: &[u8]) -> PacelineStatus {
        unsafe { paceline_sender_rtcp(self.0, now, bytes.as_ptr(), bytes.len()) }
    }

    pub fn bounds(&mut self, now: i64, min: u64, max: u64) -> PacelineStatus {
        unsafe { paceline_sender_bounds(self.0, now, min, max) }
    }

    pub fn route_change(&mut self, now: i64, limits: PacelineLimits) {
        assert_eq!(unsafe { paceline_sender_route_change(self.0, now, &limits) }, PACELINE_OK);
    }

    pub fn availability(&mut self, now: i64, available: bool) {
        assert_eq!(unsafe { paceline_sender_availability(self.0, now, available.into()) }, PACELINE_OK);
    }

    pub fn on_timeout(&mut self, now: i64) {
        assert_eq!(unsafe { paceline_sender_on_timeout(self.0, now) }, PACELINE_OK);
    }

    pub fn next_timeout(&self) -> i64 {
        unsafe { paceline_sender_next_timeout(self.0) }
    }

    pub fn enable_signals(&mut self) {
        assert_eq!(unsafe { paceline_sender_enable_signals(self.0) }, PACELINE_OK);
    }

    /// Returns the values of `N` signals.
    pub fn signals<const N: usize>(&mut self) -> Result<[f64; N], PacelineStatus> {
        let mut values = [0.0; N];
        let status = unsafe { paceline_sender_signals(self.0, values.as_mut_ptr(), N) };
        if status == PACELINE_OK { Ok(values) } else { Err(status) }
    }

    pub fn copy(&mut self) -> Self {
        let mut copy = null_mut();
        assert_eq!(unsafe { paceline_sender_copy(self.0, &mut copy) }, PACELINE_OK);
        Self(copy)
    }

    pub fn decision(&mut self) -> PacelineDecision {
        let mut decision = PacelineDecision::default();
        assert_eq!(unsafe { paceline_sender_decision(self.0, &mut decision) }, PACELINE_OK);
        decision
    }

    pub fn snapshot(&mut self) -> PacelineSnapshot {
        let mut snapshot = PacelineSnapshot::default();
        assert_eq!(unsafe { paceline_sender_snapshot(self.0, &mut snapshot) }, PACELINE_OK);
        snapshot
    }
}

/// Returns whether a packet belongs to a probe.
pub fn is_probe(packet: &PacelinePacket) -> bool {
    packet.probe != PACELINE_NO_PROBE
}

pub struct Receiver(*mut PacelineReceiver);

impl Drop for Receiver {
    fn drop(&mut self) {
        unsafe { paceline_receiver_destroy(self.0) };
    }
}

impl Receiver {
    pub fn new(name: &str) -> Self {
        let (name, mut receiver) = (CString::new(name).unwrap(), null_mut());
        let status = unsafe { paceline_receiver_create(name.as_ptr(), &LIMITS, OWN_SSRC, MEDIA_SSRC, &mut receiver) };
        assert_eq!(status, PACELINE_OK, "{}", last_error());
        Self(receiver)
    }

    /// Returns a receiver with some parameters changed.
    pub fn configured(name: &str, settings: &[(&str, f64)]) -> Result<Self, PacelineStatus> {
        let (name, mut receiver, settings) = (CString::new(name).unwrap(), null_mut(), Settings::new(settings));
        let (first, count, out) = (settings.0.as_ptr(), settings.0.len(), &mut receiver);
        let status =
            unsafe { paceline_receiver_create_with(name.as_ptr(), &LIMITS, OWN_SSRC, MEDIA_SSRC, first, count, out) };
        if status == PACELINE_OK { Ok(Self(receiver)) } else { Err(status) }
    }

    pub fn enable_signals(&mut self) {
        assert_eq!(unsafe { paceline_receiver_enable_signals(self.0) }, PACELINE_OK);
    }

    /// Returns the values of `N` signals.
    pub fn signals<const N: usize>(&mut self) -> [f64; N] {
        let mut values = [0.0; N];
        assert_eq!(unsafe { paceline_receiver_signals(self.0, values.as_mut_ptr(), N) }, PACELINE_OK);
        values
    }

    pub fn packet(&mut self, now: i64, packet: PacelineReceivedPacket) {
        assert_eq!(unsafe { paceline_receiver_packet(self.0, now, &packet) }, PACELINE_OK, "{}", last_error());
    }

    pub fn next_timeout(&self) -> i64 {
        unsafe { paceline_receiver_next_timeout(self.0) }
    }

    /// Returns the compounds that are due.
    pub fn rtcp(&mut self, now: i64) -> Vec<Vec<u8>> {
        assert_eq!(unsafe { paceline_receiver_on_timeout(self.0, now) }, PACELINE_OK);
        std::iter::from_fn(|| {
            let (mut buffer, mut length) = ([0; 1200], 0);
            let status =
                unsafe { paceline_receiver_poll_rtcp(self.0, now, buffer.as_mut_ptr(), buffer.len(), &mut length) };
            assert!([PACELINE_OK, PACELINE_NOTHING].contains(&status), "{}", last_error());
            (status == PACELINE_OK).then(|| buffer[..length].to_vec())
        })
        .collect()
    }
}

/// A packet with these numbers and without a send time.
pub fn received(number: u16) -> PacelineReceivedPacket {
    PacelineReceivedPacket {
        size_bytes: 1200,
        transport_sequence: number.into(),
        abs_send_time: -1,
        rtp_timestamp: u32::from(number) * 3000,
        rtp_sequence: number,
        ..PacelineReceivedPacket::default()
    }
}
