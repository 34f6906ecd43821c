// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiver of a flow: the receive half of the controller, if it has one, and the reports that its send half needs.

mod arrival_log;
mod feedback;
#[cfg(feature = "rtp")]
mod reception;
#[cfg(feature = "rtp")]
mod rtp;
#[cfg(feature = "rtp")]
mod send_time;

use crate::sender::SteadyClock;
use crate::{
    Arrival, Bounds, Controller, Failure, Message, PacketHead, ReceiveHalf, Reception, Report, Setup, Signals,
};
use alloc::boxed::Box;
use alloc::vec::Vec;
use arrival_log::ArrivalLog;
use paceline_units::{DataSize, Ecn, RemoteTime, Time, TimeDelta};

pub use feedback::{FeedbackFormat, FeedbackFormats};
#[cfg(feature = "rtp")]
pub use rtp::RtpArrival;
#[cfg(feature = "rtp")]
use rtp::RtpReports;

/// The longest time between two reports with reception statistics: that of RTCP receiver reports in WebRTC endpoints.
const RECEPTION_INTERVAL: TimeDelta = TimeDelta::from_secs(1);
/// The farthest number ahead of the last one, and behind it, that counts at once: the first is that of RFC 3550, appendix A.1; the second is
/// larger than any reordering.
const AHEAD_MAX: u64 = 3000;
const BEHIND_MAX: u64 = 32_768;
/// The most messages that wait for a report. More replace the oldest.
const MESSAGES_MAX: usize = 1024;

/// The receiver of one flow, on its own clock, which need not agree with that of the sender.
///
/// # How to drive it
///
/// After each call a program calls [`poll_report`](Self::poll_report) until it returns `None`, and sends what it returns to the
/// sender, which passes it to [`Sender::handle_report`](crate::Sender::handle_report). Then it calls
/// [`poll_timeout`](Self::poll_timeout), and [`handle_timeout`](Self::handle_timeout) at that time if nothing else happens before.
/// Every call with `&mut self` may change `poll_timeout`.
#[derive(Clone, Debug)]
pub struct Receiver {
    clock: Option<SteadyClock>,
    /// `None` without a receive half, and after its failure.
    half: Option<Box<dyn ReceiveHalf>>,
    failure: Option<Failure>,
    /// Arrivals to report, if the send half needs them.
    log: Option<ArrivalLog>,
    /// With RTP.
    #[cfg(feature = "rtp")]
    rtp: Option<RtpReports>,
    messages: Vec<Message>,
    counts: Counts,
    /// The number of the next report.
    reports: u64,
    signals: Signals,
}

/// What arrived.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// One more than the highest number.
    end: u64,
    /// The number after one that was too far from the others to be believed.
    expected: Option<u64>,
    arrived: u64,
    /// The send time of the last packet, and its arrival.
    last: Option<(Time, RemoteTime)>,
    /// When the next statistics are due; `None` if nothing has arrived since the last ones.
    due: Option<RemoteTime>,
}

/// What the number of a packet means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sequence {
    Valid,
    /// It is far from the others, and the second one of its kind.
    Restarted,
    Invalid,
}

impl Counts {
    /// Returns whether a packet of this number counts (RFC 3550, appendix A.1). One that is far from the others counts if the next one
    /// follows it; numbers then go on from there.
    fn check(&mut self, number: u64) -> Sequence {
        let is_near = number < self.end.saturating_add(AHEAD_MAX) && number >= self.end.saturating_sub(BEHIND_MAX);
        let is_confirmed = core::mem::take(&mut self.expected) == Some(number);
        match () {
            _ if number == u64::MAX => Sequence::Invalid,
            _ if is_near => Sequence::Valid,
            _ if is_confirmed => Sequence::Restarted,
            _ => {
                self.expected = Some(number + 1);
                Sequence::Invalid
            }
        }
    }
}

impl Receiver {
    /// Creates a receiver that takes the receive half out of `controller`.
    pub fn new(controller: &mut Controller, signals: Signals) -> Self {
        let mut receiver = Self {
            clock: None,
            half: controller.receive.take(),
            failure: None,
            log: controller.feedback.map(|wanted| ArrivalLog::new(wanted.interval, wanted.longest)),
            #[cfg(feature = "rtp")]
            rtp: None,
            messages: Vec::new(),
            counts: Counts::default(),
            reports: 0,
            signals,
        };
        receiver.check_half();
        receiver
    }

    /// Handles a packet that arrived: its head, its size on the network, IP and UDP headers included, and its ECN field
    /// ([`Ecn::NotEct`] if the program cannot read it). A number far from the others, as that of a forged packet, counts only if the next
    /// one follows it (RFC 3550, appendix A.1).
    pub fn handle_packet(&mut self, now: RemoteTime, head: &PacketHead, size: DataSize, ecn: Ecn) {
        let now = self.advance(now);
        let &PacketHead { number, sent, stream, media, kind, timestamp } = head;
        match self.counts.check(number) {
            Sequence::Valid => self.counts.end = self.counts.end.max(number + 1),
            Sequence::Restarted => {
                self.counts.end = number + 1;
                self.log.iter_mut().for_each(ArrivalLog::restart);
            }
            Sequence::Invalid => return,
        }
        self.counts.arrived += 1;
        self.counts.last = Some((sent, now));
        self.counts.due.get_or_insert(now + RECEPTION_INTERVAL);
        if let Some(log) = &mut self.log {
            log.handle_packet(now, number, ecn, size);
        }
        if let Some(half) = &mut self.half {
            let sequence = number as u16;
            let arrival = Arrival { sent: Some(sent), timestamp, sequence, stream, media, kind, size, ecn };
            half.handle_arrival(now, &arrival, &mut self.signals);
        }
        self.collect(now);
    }

    /// Handles the passing of time: call it at the time of [`poll_timeout`](Self::poll_timeout).
    pub fn handle_timeout(&mut self, now: RemoteTime) {
        let now = self.advance(now);
        if let Some(half) = self.half.as_mut().filter(|half| half.poll_timeout().is_some_and(|due| due <= now)) {
            half.handle_timeout(now, &mut self.signals);
        }
        self.check_half();
        self.collect(now);
    }

    /// Handles new limits of the sender's target, if they are known here.
    pub fn set_bounds(&mut self, now: RemoteTime, bounds: &Bounds) {
        let now = self.advance(now);
        if let Some(half) = &mut self.half {
            half.handle_bounds(now, bounds);
        }
        self.check_half();
        self.collect(now);
    }

    /// Handles a change of the network route. The receive half starts again with this setup.
    pub fn handle_route_change(&mut self, now: RemoteTime, setup: &Setup) {
        let now = self.advance(now);
        self.messages.clear();
        if let Some(half) = &mut self.half {
            half.handle_route_change(now, setup);
            half.handle_bounds(now, &setup.bounds());
        }
        self.check_half();
        self.collect(now);
    }

    /// Returns the next report that is due.
    pub fn poll_report(&mut self, now: RemoteTime) -> Option<Report> {
        let now = self.advance(now);
        let packets = self.log.as_mut().and_then(|log| log.poll(now)).unwrap_or_default();
        let messages = core::mem::take(&mut self.messages);
        let is_due = self.counts.due.is_some_and(|due| due <= now);
        if packets.is_empty() && messages.is_empty() && !is_due {
            return None;
        }
        let mut reception = None;
        if is_due || !messages.is_empty() {
            self.counts.due = None;
            let Counts { end, arrived, last, .. } = self.counts;
            reception = last.map(|(sent, at)| Reception::new(end, arrived.min(end), sent, now - at));
        }
        let number = self.reports;
        self.reports += 1;
        Some(Report { number, written: now, packets, messages, reception })
    }

    /// Returns the next time at which [`handle_timeout`](Self::handle_timeout) and then [`poll_report`](Self::poll_report) must be
    /// called; `None` if the receiver only waits for packets.
    pub fn poll_timeout(&self) -> Option<RemoteTime> {
        let message = self.clock.as_ref().filter(|_| !self.messages.is_empty()).map(|clock| remote(clock.last()));
        let due = [message, self.counts.due].into_iter().flatten().fold(self.next_due(), RemoteTime::min);
        Some(self.program_time(due)).filter(|due| *due != RemoteTime::MAX)
    }

    /// Returns the next time at which the receive half or a report on packets is due; [`RemoteTime::MAX`] for never.
    #[doc(hidden)]
    #[inline]
    pub fn timeout_without_messages(&self) -> RemoteTime {
        self.program_time(self.next_due())
    }

    #[inline]
    fn next_due(&self) -> RemoteTime {
        let mut due = RemoteTime::MAX;
        if let Some(half) = &self.half {
            due = due.min(half.poll_timeout().unwrap_or(RemoteTime::MAX));
        }
        if let Some(log) = &self.log {
            due = due.min(log.poll_timeout().unwrap_or(RemoteTime::MAX));
        }
        #[cfg(feature = "rtp")]
        if let Some(rtp) = &self.rtp {
            due = due.min(rtp.poll_timeout().unwrap_or(RemoteTime::MAX));
        }
        due
    }

    #[inline]
    fn program_time(&self, due: RemoteTime) -> RemoteTime {
        let due = Time::from_nanos(due.as_nanos());
        remote(self.clock.as_ref().map_or(due, |clock| clock.program_time(due)))
    }

    /// Returns why the receive half failed; `None` if it has not. The receiver then drops it: its messages end, while reports
    /// on packets continue.
    #[inline]
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Returns the collector of the receive half's signals.
    #[inline]
    pub fn signals(&mut self) -> &mut Signals {
        &mut self.signals
    }

    /// Collects the signals of the receive half from now on.
    pub fn enable_signals(&mut self) {
        if !self.signals.is_enabled() {
            self.signals = Signals::enabled();
        }
    }

    /// Drops the receive half if it failed. Packets do not check this: a half that fails at one is due then.
    fn check_half(&mut self) {
        if let Some(failure) = self.half.as_mut().and_then(|half| half.poll_failure()) {
            (self.half, self.failure) = (None, Some(failure));
        }
    }

    /// Takes the messages of the half. A new one replaces an older one that states the same.
    #[inline]
    fn collect(&mut self, now: RemoteTime) {
        let Some(half) = &mut self.half else { return };
        while let Some(message) = half.poll_message(now) {
            self.messages.retain(|older| !message.replaces(older));
            if self.messages.len() == MESSAGES_MAX {
                self.messages.remove(0);
            }
            self.messages.push(message);
        }
    }

    /// Returns the time of the receiver, which never decreases, for a time of the program.
    #[inline]
    fn advance(&mut self, now: RemoteTime) -> RemoteTime {
        let now = Time::from_nanos(now.as_nanos());
        remote(self.clock.get_or_insert_with(|| SteadyClock::new(now)).advance(now).0)
    }
}

#[inline]
fn remote(time: Time) -> RemoteTime {
    RemoteTime::from_nanos(time.as_nanos())
}
