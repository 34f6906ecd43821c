//! The signals of the simulated sender, as the kernel's socket shows them.

use super::options::Info;
use paceline_flow::tcp::TcpSenderEvent;
use paceline_units::Time;

/// The slow-start threshold before the first loss (`TCP_INFINITE_SSTHRESH`).
const NO_THRESHOLD: u32 = 0x7fff_ffff;

/// `enum tcp_ca_state` to the states of [`TcpSender::SIGNALS`](paceline_flow::tcp::TcpSender::SIGNALS): open, disorder,
/// CWR, recovery, loss. CWR, a window that shrinks because of a mark or of a full queue in the sender's own machine, is
/// told as recovery: either way the window is on its way down to the threshold.
const STATES: [u8; 5] = [0, 1, 2, 2, 3];

/// How many signals the kernel knows.
const KNOWN: usize = 4;

/// What was told last of each signal.
#[derive(Debug, Default)]
pub struct Signals([Option<f64>; KNOWN]);

impl Signals {
    /// Tells those that changed.
    pub fn look(&mut self, now: Time, info: &Info, tell: &mut dyn FnMut(Time, TcpSenderEvent)) {
        for (index, (told, value)) in self.0.iter_mut().zip(values(info)).enumerate() {
            if let Some(value) = value
                && *told != Some(value)
            {
                *told = Some(value);
                tell(now, TcpSenderEvent::Signal(index as u8, value));
            }
        }
    }
}

/// In the order of `TcpSender::SIGNALS`; `None`: there is no value yet.
fn values(info: &Info) -> [Option<f64>; KNOWN] {
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
    use paceline_flow::tcp::TcpSender;

    #[test]
    fn what_changed_is_told_in_the_units_of_the_simulated_sender() {
        let mut info = Info::default();
        (info.segment, info.window, info.threshold) = (1448, 10, NO_THRESHOLD);
        let mut signals = Signals::default();
        let mut told = |info: &Info| {
            let mut told = Vec::new();
            signals.look(Time::ZERO, info, &mut |_, event| {
                let TcpSenderEvent::Signal(index, value) = event else { panic!("{event:?}") };
                told.push((TcpSender::SIGNALS[usize::from(index)].name, value));
            });
            told
        };
        assert_eq!(told(&info), [("cwnd", 14480.0), ("state", 0.0)]);
        assert_eq!(told(&info), []);
        info.round_trip = 50_500;
        assert_eq!(told(&info), [("srtt", 50.5)]);
        (info.threshold, info.window, info.congestion_state) = (5, 5, 3);
        assert_eq!(told(&info), [("cwnd", 7240.0), ("ssthresh", 7240.0), ("state", 2.0)]);
        info.congestion_state = 2; // CWR is told as recovery
        assert_eq!(told(&info), []);
        info.congestion_state = 4;
        assert_eq!(told(&info), [("state", 3.0)]);
    }
}
