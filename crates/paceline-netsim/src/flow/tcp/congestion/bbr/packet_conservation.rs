// SPDX-License-Identifier: MIT OR Apache-2.0
//! The window during recovery: in the first round trip only as much is sent as is delivered, and after the recovery the
//! previous window is restored (`bbr_set_cwnd_to_recover_or_restore`).

use super::super::{LossState, RateSample};
use paceline_units::DataSize;

#[derive(Debug)]
pub(super) struct PacketConservation {
    /// The loss state at the last ACK with a measurement.
    before: LossState,
    conserves: bool,
    /// The window to restore.
    prior: DataSize,
}

/// The window after an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WindowUpdate {
    /// Exactly this window.
    Conserve(DataSize),
    /// This window, from which the model continues.
    Model(DataSize),
}

impl PacketConservation {
    pub fn new() -> Self {
        Self { before: LossState::Open, conserves: false, prior: DataSize::ZERO }
    }

    /// Saves the window when a recovery or PROBE_RTT begins (`bbr_save_cwnd`). `lowered`: the window is already
    /// reduced, so that the larger one is kept.
    pub fn save(&mut self, cwnd: DataSize, lowered: bool) {
        let lowered = lowered || self.before != LossState::Open;
        self.prior = if lowered { self.prior.max(cwnd) } else { cwnd };
    }

    /// Returns the window to restore.
    pub fn prior(&self) -> DataSize {
        self.prior
    }

    pub fn handle_timeout(&mut self) {
        self.before = LossState::Loss;
    }

    /// Ends packet conservation at the beginning of a round.
    pub fn handle_round(&mut self) {
        self.conserves = false;
    }

    /// Returns whether a recovery begins with this ACK.
    pub fn begins(&self, sample: &RateSample) -> bool {
        sample.loss_state == LossState::Recovery && self.before != LossState::Recovery
    }

    /// Handles an ACK of new data. Lost bytes are subtracted from the window.
    pub fn handle_ack(&mut self, sample: &RateSample, cwnd: DataSize, segment: DataSize) -> WindowUpdate {
        let conserved = sample.pipe + sample.acked;
        let mut window =
            if sample.lost > DataSize::ZERO { cwnd.saturating_sub(sample.lost).max(segment) } else { cwnd };
        if self.begins(sample) {
            self.conserves = true;
            window = conserved;
        } else if self.before != LossState::Open && sample.loss_state == LossState::Open {
            self.conserves = false;
            window = window.max(self.prior);
        }
        self.before = sample.loss_state;
        if self.conserves { WindowUpdate::Conserve(window.max(conserved)) } else { WindowUpdate::Model(window) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::Time;

    const SEGMENTS: fn(u64) -> DataSize = |n| DataSize::from_bytes(1000 * n);

    fn sample(acked: u64, lost: u64, pipe: u64, loss_state: LossState) -> RateSample {
        RateSample {
            now: Time::ZERO,
            acked: SEGMENTS(acked),
            lost: SEGMENTS(lost),
            delivered: SEGMENTS(acked),
            rate: None,
            app_limited: false,
            pipe_sent: SEGMENTS(pipe + acked),
            lost_since: SEGMENTS(lost),
            cwnd_limited: true,
            round_trip: None,
            srtt: None,
            pipe_before: SEGMENTS(pipe + acked),
            pipe: SEGMENTS(pipe),
            loss_state,
        }
    }

    #[test]
    fn recovery_conserves_for_a_round_and_restores_the_window_at_its_end() {
        let mut conservation = PacketConservation::new();
        let step = |c: &mut PacketConservation, s: RateSample, cwnd| c.handle_ack(&s, SEGMENTS(cwnd), SEGMENTS(1));
        let open = sample(2, 0, 48, LossState::Open);
        assert_eq!(step(&mut conservation, open, 100), WindowUpdate::Model(SEGMENTS(100)));
        conservation.save(SEGMENTS(100), false);
        // At the start: the bytes in flight and the delivered ones, independent of the window.
        let first = sample(1, 5, 43, LossState::Recovery);
        assert!(conservation.begins(&first));
        assert_eq!(step(&mut conservation, first, 100), WindowUpdate::Conserve(SEGMENTS(44)));
        let second = sample(2, 1, 41, LossState::Recovery);
        assert!(!conservation.begins(&second));
        assert_eq!(step(&mut conservation, second, 44), WindowUpdate::Conserve(SEGMENTS(43)));
        // In the next round losses are still subtracted, down to one segment.
        conservation.handle_round();
        assert_eq!(
            step(&mut conservation, sample(2, 3, 40, LossState::Recovery), 43),
            WindowUpdate::Model(SEGMENTS(40))
        );
        assert_eq!(
            step(&mut conservation, sample(2, 90, 40, LossState::Recovery), 43),
            WindowUpdate::Model(SEGMENTS(1))
        );
        // PROBE_RTT in between does not replace the saved window.
        conservation.save(SEGMENTS(40), false);
        assert_eq!(step(&mut conservation, sample(2, 0, 40, LossState::Open), 43), WindowUpdate::Model(SEGMENTS(100)));
    }

    #[test]
    fn window_grows_from_one_segment_after_a_timeout_and_is_restored() {
        let mut conservation = PacketConservation::new();
        conservation.save(SEGMENTS(50), false);
        conservation.handle_timeout();
        conservation.save(SEGMENTS(1), false);
        let repairs = sample(1, 0, 0, LossState::Loss);
        assert_eq!(conservation.handle_ack(&repairs, SEGMENTS(1), SEGMENTS(1)), WindowUpdate::Model(SEGMENTS(1)));
        let over = sample(1, 0, 1, LossState::Open);
        assert_eq!(conservation.handle_ack(&over, SEGMENTS(2), SEGMENTS(1)), WindowUpdate::Model(SEGMENTS(50)));
    }
}
