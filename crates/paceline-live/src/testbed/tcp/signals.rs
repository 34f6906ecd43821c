// SPDX-License-Identifier: MIT OR Apache-2.0
//! The signals of the simulated sender, from the state of the kernel's socket.

use super::options::Info;
use paceline_netsim::flow::tcp::TcpSenderEvent;
use paceline_units::Time;

/// The slow-start threshold before the first loss (`TCP_INFINITE_SSTHRESH`).
const NO_THRESHOLD: u32 = 0x7fff_ffff;

/// `enum tcp_ca_state` to the states of [`TcpSender::SIGNALS`](paceline_netsim::flow::tcp::TcpSender::SIGNALS): open, disorder,
/// CWR, recovery, loss. CWR is a reduction after an ECN mark or a full local queue.
const STATES: [u8; 5] = [0, 1, 4, 2, 3];

/// Number of signals that the kernel provides.
const COUNT: usize = 4;

/// The last emitted value of each signal.
#[derive(Debug, Default)]
pub struct KernelSignals([Option<f64>; COUNT]);

impl KernelSignals {
    /// Emits the signals that changed.
    pub fn update(&mut self, now: Time, info: &Info, emit: &mut dyn FnMut(Time, TcpSenderEvent)) {
        for (index, (last, value)) in self.0.iter_mut().zip(values(info)).enumerate() {
            if let Some(value) = value
                && *last != Some(value)
            {
                *last = Some(value);
                emit(now, TcpSenderEvent::Signal(index as u8, value));
            }
        }
    }
}

/// Returns the values in the order of `TcpSender::SIGNALS`; `None` without a value.
fn values(info: &Info) -> [Option<f64>; COUNT] {
    let bytes = |segments: u32| f64::from(segments) * f64::from(info.segment);
    [
        Some(bytes(info.window)),
        (info.threshold < NO_THRESHOLD).then(|| bytes(info.threshold)),
        (info.round_trip > 0).then(|| f64::from(info.round_trip) / 1e3),
        STATES.get(usize::from(info.congestion_state)).map(|state| f64::from(*state)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_netsim::flow::tcp::TcpSender;

    #[test]
    fn emits_changes_in_the_units_of_the_simulated_sender() {
        let mut info = Info::default();
        (info.segment, info.window, info.threshold) = (1448, 10, NO_THRESHOLD);
        let mut signals = KernelSignals::default();
        let mut changes = |info: &Info| {
            let mut changes = Vec::new();
            signals.update(Time::ZERO, info, &mut |_, event| {
                let TcpSenderEvent::Signal(index, value) = event else { panic!("{event:?}") };
                changes.push((TcpSender::SIGNALS[usize::from(index)].name, value));
            });
            changes
        };
        assert_eq!(changes(&info), [("cwnd", 14480.0), ("state", 0.0)]);
        assert_eq!(changes(&info), []);
        info.round_trip = 50_500;
        assert_eq!(changes(&info), [("srtt", 50.5)]);
        (info.threshold, info.window, info.congestion_state) = (5, 5, 3);
        assert_eq!(changes(&info), [("cwnd", 7240.0), ("ssthresh", 7240.0), ("state", 2.0)]);
        info.congestion_state = 2;
        assert_eq!(changes(&info), [("state", 4.0)]);
        info.congestion_state = 4;
        assert_eq!(changes(&info), [("state", 3.0)]);
    }
}
