// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of the target that repairs losses: retransmissions and forward error correction.

use super::QueuedPacket;
use paceline::{FecDemand, FecScheme, Protection, ResendBudget, Sender, TargetSplit, split_target};
use paceline_units::{DataSize, Fraction, Rate, Time, TimeDelta};

/// The least time over which the rate of retransmissions is measured.
const INTERVAL: TimeDelta = TimeDelta::from_secs(1);
/// The assumed round-trip time before the first measurement (libwebrtc's default).
const RTT_DEFAULT: TimeDelta = TimeDelta::from_millis(100);

/// The budget of retransmissions, and the demand for FEC.
pub(super) struct Repair {
    /// Whether NACKs are answered with retransmissions.
    pub retransmits: bool,
    /// Start of the current measuring interval, and the bytes retransmitted since.
    resent: (Time, DataSize),
    /// Retransmission rate of the previous interval.
    pub resend_rate: Rate,
    budget: ResendBudget,
    /// The FEC share that the losses call for; `None` without FEC.
    fec: Option<FecDemand>,
}

impl Repair {
    pub fn new(retransmits: bool, protection: Protection, start: Time) -> Self {
        Self {
            retransmits,
            resent: (start, DataSize::ZERO),
            resend_rate: Rate::ZERO,
            budget: ResendBudget::new(protection.resend, start),
            fec: (protection.fec == FecScheme::Ulpfec).then(FecDemand::new),
        }
    }

    pub fn has_fec(&self) -> bool {
        self.fec.is_some()
    }

    /// Forgets everything about the path.
    pub fn restart(&mut self, now: Time) {
        (self.resent, self.resend_rate) = ((now, DataSize::ZERO), Rate::ZERO);
        self.budget.restart(now);
        self.fec = self.fec.as_ref().map(|_| FecDemand::new());
    }

    pub fn handle_loss(&mut self, now: Time, fraction_lost: Fraction) {
        if let Some(demand) = &mut self.fec {
            demand.handle_report(now, fraction_lost);
        }
    }

    pub fn handle_resent(&mut self, size: DataSize) {
        self.resent.1 += size;
    }

    pub fn update_resend_rate(&mut self, now: Time) {
        let (since, bytes) = self.resent;
        if now - since >= INTERVAL {
            self.resend_rate = Rate::from_size_and_time(bytes, now - since);
            self.resent = (now, DataSize::ZERO);
        }
    }

    /// Divides a target.
    pub fn split(&mut self, now: Time, target: Rate, core: &Sender<QueuedPacket>) -> TargetSplit {
        let rtt = rtt(core);
        let wanted = self.fec.as_mut().map_or(Rate::ZERO, |demand| target.scale(demand.share(now, rtt)));
        split_target(target, wanted, self.resend_rate)
    }

    /// Begins the answer to a NACK. Returns the round-trip time.
    pub fn handle_nack(&mut self, core: &Sender<QueuedPacket>) -> TimeDelta {
        let rtt = rtt(core);
        self.budget.handle_nack(core.decision().target, rtt);
        rtt
    }

    /// Returns whether `size` may be resent now; if so, it is taken from the budget.
    pub fn spend(&mut self, now: Time, size: DataSize, core: &Sender<QueuedPacket>) -> bool {
        self.budget.spend(now, size, core.decision().target, rtt(core))
    }
}

fn rtt(core: &Sender<QueuedPacket>) -> TimeDelta {
    core.rtt().map_or(RTT_DEFAULT, |rtt| rtt.last)
}
