// SPDX-License-Identifier: MIT OR Apache-2.0
//! What decides which packet leaves next, and when: the pacer, the probes, padding, and the bound on bytes in flight.
//!
//! ```text
//! window closed, or no network:   nothing
//! a probe is due:                 the next packet of the pacer, regardless of its rate; without one a packet of the program
//! a probe is being sent:          nothing else: packets between those of a cluster would lower the rate that it measures
//! otherwise:                      the pacer; when its queue is empty, padding up to the target
//! ```

use super::padding::Padding;
use super::prober::Prober;
use crate::{Decision, Flight, Pacer, PacketKind, PacketPriority, ProbeId, Release, Window};
use paceline_units::{DataSize, Rate, Time, TimeDelta};

/// A packet in the pacer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queued<T> {
    pub packet: T,
    pub timestamp: u32,
    /// The place of its stream.
    pub stream: u8,
    pub kind: PacketKind,
    /// Whether it is the first one of its frame.
    pub start: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Outbox<T> {
    pub pacer: Pacer<Queued<T>>,
    pub prober: Prober,
    padding: Padding,
    padding_size: DataSize,
    /// Whether this sender paces. If not, the program does, and nothing leaves from here.
    paces: bool,
    /// Since when there is a network to send to; `None` without one.
    available_since: Option<Time>,
    /// The window of the decision.
    window: Option<Window>,
    /// Whether the window has been full since the last packet left.
    window_was_full: bool,
    /// Whether a packet was ever sent. Probes wait for the first media.
    has_sent: bool,
    /// The probe cluster of the packet that was released last.
    probe: Option<ProbeId>,
    /// Whether the packet that was released last did not come from the queue.
    is_extra: bool,
}

impl<T> Outbox<T> {
    pub fn new(decision: &Decision, start: Time, limit: TimeDelta, padding_size: DataSize) -> Self {
        Self {
            pacer: Pacer::new(decision.pacing, limit, []),
            prober: Prober::default(),
            padding: Padding::new(start),
            padding_size,
            paces: true,
            available_since: Some(start),
            window: decision.window,
            window_was_full: false,
            has_sent: false,
            probe: None,
            is_extra: false,
        }
    }

    /// Sets whether this sender paces. If it begins to, padding begins then.
    pub fn set_paces(&mut self, now: Time, paces: bool) {
        if paces && !self.paces {
            self.padding.restart(now);
        }
        self.paces = paces;
    }

    #[inline]
    pub fn paces(&self) -> bool {
        self.paces
    }

    pub fn apply(&mut self, now: Time, decision: &Decision) {
        self.pacer.set_rate(now, decision.pacing.max(Rate::from_bps(1)));
        self.pacer.set_burst(decision.burst);
        self.pacer.set_tick(decision.tick);
        self.window = decision.window;
    }

    pub fn set_padding(&mut self, rate: Rate) {
        self.padding.set_rate(rate, self.padding_size);
    }

    pub fn set_available(&mut self, now: Time, available: bool) {
        self.available_since = available.then_some(now);
    }

    pub fn is_available(&self) -> bool {
        self.available_since.is_some()
    }

    /// Returns for how long there has been a network.
    pub fn available_for(&self, now: Time) -> TimeDelta {
        self.available_since.map_or(TimeDelta::ZERO, |since| now - since)
    }

    /// Queues a packet that became available at `at`.
    pub fn push(&mut self, at: Time, priority: PacketPriority, packet: Queued<T>, size: DataSize) {
        self.pacer.push(at, priority, usize::from(packet.stream), packet, size);
    }

    /// Returns the next packet that may leave at `now`, and its size in the queue.
    #[inline]
    pub fn release(&mut self, now: Time, flight: Flight) -> Option<(Release<Queued<T>>, DataSize)> {
        if !self.paces || !self.window_is_open(flight) {
            return None;
        }
        if core::mem::take(&mut self.window_was_full) {
            self.pacer.block_until(now);
        }
        self.is_extra = false;
        self.probe = if now >= self.probe_due() { self.prober.poll(now) } else { None };
        if self.probe.is_some() {
            if let Some((queued, size)) = self.pacer.pop_at_once(now) {
                return Some((Release::Packet(queued), size));
            }
            self.is_extra = true;
            return Some((Release::Probe { burst: self.prober.burst() }, self.padding_size));
        }
        if self.prober.is_active() {
            return None;
        }
        if let Some((queued, size)) = self.pacer.pop(now) {
            return Some((Release::Packet(queued), size));
        }
        if self.pacer.queued() == DataSize::ZERO && now >= self.padding_due() {
            self.is_extra = true;
            return Some((Release::Padding, self.padding_size));
        }
        None
    }

    /// Accounts for a packet that leaves. Returns the probe cluster of a released packet.
    #[inline]
    pub fn handle_sent(&mut self, now: Time, size: DataSize) -> Option<ProbeId> {
        self.has_sent = true;
        if self.paces { self.handle_released(now, size) } else { None }
    }

    fn handle_released(&mut self, now: Time, size: DataSize) -> Option<ProbeId> {
        if core::mem::take(&mut self.is_extra) {
            self.pacer.spend(now, size);
        }
        self.padding.handle_sent(now, size);
        let probe = self.probe.take();
        if probe.is_some() {
            self.prober.handle_sent(size);
        }
        probe
    }

    /// Returns the next time at which [`release`](Self::release) may return a packet; [`Time::MAX`] for never. Notes whether
    /// the window is full.
    #[inline]
    pub fn due(&mut self, flight: Flight) -> Time {
        if !self.paces {
            return Time::MAX;
        }
        if !self.window_is_open(flight) {
            self.window_was_full = true;
            return Time::MAX;
        }
        if self.prober.is_active() {
            return self.probe_due();
        }
        let padding = if self.pacer.queued() == DataSize::ZERO { self.padding_due() } else { Time::MAX };
        self.pacer.poll_timeout().unwrap_or(Time::MAX).min(padding).min(self.probe_due())
    }

    /// Returns whether the bytes in flight leave room for a packet. Without a network there is none.
    pub fn window_is_open(&self, flight: Flight) -> bool {
        match self.window {
            _ if !self.is_available() => false,
            None => true,
            Some(Window::Outstanding(window)) => flight.outstanding < window,
            Some(Window::AfterHighest(window)) => flight.after_highest < window,
        }
    }

    /// Returns the time at which a packet of a probe is due; [`Time::MAX`] for never.
    fn probe_due(&self) -> Time {
        let has_media = || self.has_sent || self.pacer.queued() != DataSize::ZERO;
        self.prober.due().filter(|_| has_media()).unwrap_or(Time::MAX)
    }

    /// Returns the time at which padding is due if no media is sent before; [`Time::MAX`] for never.
    fn padding_due(&self) -> Time {
        self.padding.due().map_or(Time::MAX, |due| due.max(self.pacer.drained_at()))
    }
}
