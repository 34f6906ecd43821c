// SPDX-License-Identifier: MIT OR Apache-2.0
//! `faulty-ignores-loss`: GoogCC whose reports contain no lost packets, so that delay alone lowers the rate.

use super::altered::{Alteration, Altered};
use paceline::{Entry, Event, Feedback, PacketReport, ReceiverReport, SendHalf, Signals};
use paceline_units::{Fraction, Time};

pub(super) const NAME: &str = "faulty-ignores-loss";

pub(super) fn entry() -> Entry {
    let summary = "one fault: googcc whose reports contain no losses, so that delay alone counts";
    Entry::new(NAME, summary, "googcc, with reports from which lost packets are removed", config())
}

fn config() -> Altered<IgnoresLoss> {
    Altered::googcc(IgnoresLoss::default())
}

#[derive(Clone, Debug, Default)]
struct IgnoresLoss {
    /// The packets of a message that arrived; empty between messages.
    arrived: Vec<PacketReport>,
}

impl Alteration for IgnoresLoss {
    fn handle_event(&mut self, half: &mut dyn SendHalf, now: Time, event: &Event<'_>, signals: &mut Signals) {
        match *event {
            Event::Feedback(feedback) => {
                self.arrived.extend(feedback.packets.iter().filter(|packet| packet.arrival.is_some()));
                let feedback =
                    Feedback::new(&self.arrived, feedback.outstanding, feedback.after_highest).with_rtt(feedback.rtt);
                half.handle_event(now, &Event::Feedback(&feedback), signals);
                self.arrived.clear();
            }
            Event::Report(_) => {
                let report = ReceiverReport::new(Fraction::ZERO);
                half.handle_event(now, &Event::Report(&report), signals);
            }
            _ => half.handle_event(now, event, signals),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::altered::NoAlteration;
    use super::super::altered::tests::{SETUP, feed};
    use super::*;
    use paceline::Config;

    /// Half of the packets are lost at a constant delay. GoogCC falls; without losses nothing lowers the rate.
    #[test]
    fn losses_lower_nothing_and_delay_does() {
        let lossy = |ms: i64| (ms % 20 != 0).then_some(20);
        let mut plain = Altered::googcc(NoAlteration).halves(&SETUP).send.unwrap();
        let mut half = config().halves(&SETUP).send.unwrap();
        let (plain, altered) = (feed(&mut *plain, (0, 10_000), lossy), feed(&mut *half, (0, 10_000), lossy));
        assert!(*plain.last().unwrap() < 800, "{plain:?}");
        assert!(altered.windows(2).all(|pair| pair[0] <= pair[1]), "{altered:?}");
        let growing = feed(&mut *half, (10_000, 15_000), |ms| Some(20 + (ms - 10_000) / 5));
        assert!(*growing.last().unwrap() < altered.last().unwrap() * 9 / 10, "{growing:?}");
    }

    #[test]
    fn receiver_reports_count_as_without_loss() {
        let mut half = config().halves(&SETUP).send.unwrap();
        let report = ReceiverReport::new(Fraction::new(0.5).unwrap());
        for second in 1..10 {
            half.handle_event(Time::from_secs(second), &Event::Report(&report), &mut Signals::disabled());
        }
        assert!(half.decision().target >= SETUP.start, "{}", half.decision().target);
    }
}
