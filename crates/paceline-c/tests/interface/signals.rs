// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signals of senders and receivers.

use crate::harness::*;
use paceline::{Registry, SignalSpec};
use paceline_c::{PACELINE_ERROR_BUFFER, PACELINE_OK, PacelineArrival, PacelineReceivedPacket};

/// The number of signals of the send half of `googcc`.
const SIGNALS: usize = 17;
/// The number of signals of the receive half of `gcc-2016`.
const RECEIVER_SIGNALS: usize = 7;

/// Returns the index of a signal in a table of `N`.
fn index<const N: usize>(signals: &[SignalSpec], name: &str) -> usize {
    assert_eq!(signals.len(), N);
    signals.iter().position(|signal| signal.name == name).unwrap_or_else(|| panic!("no signal `{name}`"))
}

/// Sends ten packets, and reports them 50 ms later.
fn pass_feedback(sender: &mut Sender, from_ms: i64) {
    let sent: Vec<_> = (0..10).map(|n| (sender.packet_sent(ms(from_ms + n)), from_ms + n)).collect();
    let arrived = |(sequence, at)| PacelineArrival { sequence, arrival_ns: ms(at + 20), arrived: 1, ecn: 0 };
    let arrivals: Vec<_> = sent.into_iter().map(arrived).collect();
    sender.feedback(ms(from_ms + 50), &arrivals);
}

#[test]
fn values_are_those_of_the_last_call() {
    let mut sender = Sender::configured("googcc", &[]).unwrap();
    pass_feedback(&mut sender, 0);
    assert!(sender.signals::<SIGNALS>().unwrap().iter().all(|value| value.is_nan()), "not enabled yet");
    sender.enable_signals();
    assert!(sender.signals::<SIGNALS>().unwrap().iter().all(|value| value.is_nan()), "no call yet");
    let index = index::<SIGNALS>(Registry::standard().get("googcc").unwrap().signals().0, "A");
    let rate = |values: [f64; SIGNALS]| values[index];
    for round in 1..30 {
        pass_feedback(&mut sender, round * 100);
        let target = sender.decision().target_bps;
        assert_eq!(rate(sender.signals().unwrap()), target as f64, "round {round}");
    }
    assert!(sender.decision().target_bps > LIMITS.start_bps, "the rate rose");
    // To enable signals again changes nothing, and a copy has values of its own.
    sender.enable_signals();
    let (mut copy, before) = (sender.copy(), rate(sender.signals().unwrap()));
    assert_eq!(copy.bounds(ms(3000), 50_000, 60_000), PACELINE_OK);
    pass_feedback(&mut copy, 3000);
    assert_eq!((rate(copy.signals().unwrap()), rate(sender.signals().unwrap())), (60_000.0, before));
}

#[test]
fn an_array_needs_an_element_for_each_signal() {
    let mut sender = Sender::configured("googcc", &[]).unwrap();
    assert_eq!(sender.signals::<{ SIGNALS - 1 }>(), Err(PACELINE_ERROR_BUFFER));
    let expected = format!("`values` needs {SIGNALS} elements, not {}", SIGNALS - 1);
    assert_eq!(last_error(), expected);
    let values = sender.signals::<{ SIGNALS + 1 }>().unwrap();
    assert!(values[SIGNALS - 1].is_nan() && values[SIGNALS] == 0.0, "the rest stays");
}

/// The threshold of the receive half starts at the value that is set.
#[test]
fn receivers_have_signals_and_parameters() {
    let registry = Registry::standard();
    let entry = registry.get("gcc-2016").unwrap();
    let index = index::<RECEIVER_SIGNALS>(entry.signals().1, "gamma");
    let first_threshold = |settings: &[(&str, f64)]| {
        let mut receiver = Receiver::configured("gcc-2016", settings).unwrap();
        receiver.enable_signals();
        let threshold = |receiver: &mut Receiver| receiver.signals::<RECEIVER_SIGNALS>()[index];
        assert!(threshold(&mut receiver).is_nan());
        for n in 0..4 {
            // Units of 2^-18 s: 33 ms between frames.
            let sent = i32::from(n) * 33 * (1 << 18) / 1000;
            receiver.packet(ms(33 * i64::from(n)), PacelineReceivedPacket { abs_send_time: sent, ..received(n) });
        }
        threshold(&mut receiver)
    };
    let fields = entry.fields();
    let default = fields.iter().find(|field| field.name == "gamma_0").unwrap().default;
    let fixed = [("k_u", 0.0), ("k_d", 0.0)];
    assert_eq!(first_threshold(&fixed), default);
    assert_eq!(first_threshold(&[fixed[0], fixed[1], ("gamma_0", default + 5.0)]), default + 5.0);
}
