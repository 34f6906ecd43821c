//! Gilbert-Elliott loss (Gilbert 1960, Elliott 1963): two states, each with its own loss ratio. The state may change before
//! each packet.

use super::{LossEntry, LossProcess};
use crate::parameter::{Parameter, ParameterKind, Value};
use paceline_units::{Fraction, RandomStream};

pub(super) const ENTRY: LossEntry = LossEntry {
    name: "gilbert-elliott",
    summary: "bursts: a good and a bad state, each with its own loss",
    parameters: &[
        Parameter::required("to_bad", ParameterKind::Fraction, "probability to go from good to bad, per packet"),
        Parameter::required("to_good", ParameterKind::Fraction, "probability to go from bad to good, per packet"),
        Parameter::new(
            "good",
            ParameterKind::Fraction,
            (Value::Fraction(Fraction::ZERO), "0 %"),
            "loss in the good state",
        ),
        Parameter::new(
            "bad",
            ParameterKind::Fraction,
            (Value::Fraction(Fraction::ONE), "100 %"),
            "loss in the bad state",
        ),
    ],
    build: |values| {
        let [to_bad, to_good, good, bad] = ["to_bad", "to_good", "good", "bad"].map(|name| values.fraction(name));
        GilbertElliott { to_bad, to_good, good, bad }.into()
    },
};

/// A good and a bad state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Probability to go from the good state to the bad, per packet.
    pub to_bad: Fraction,
    /// Probability to go from the bad state to the good, per packet.
    pub to_good: Fraction,
    /// Loss in the good state.
    pub good: Fraction,
    /// Loss in the bad state.
    pub bad: Fraction,
}

/// The values of the state.
const GOOD: u32 = 0;
const BAD: u32 = 1;

impl LossProcess for GilbertElliott {
    fn is_lost(&self, state: &mut u32, random: &mut RandomStream) -> bool {
        let (leave, other) = if *state == GOOD { (self.to_bad, BAD) } else { (self.to_good, GOOD) };
        if random.chance(leave.get()) {
            *state = other;
        }
        random.chance(if *state == GOOD { self.good.get() } else { self.bad.get() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::RandomStreams;

    /// Stationary share of the bad state 0.01 / (0.01 + 0.2) = 4.76 %, mean burst 1 / 0.2 = 5 packets.
    #[test]
    fn loss_ratio_and_burst_length_match_the_model() {
        let mut random = RandomStreams::new(3).stream("loss");
        let f = |x| Fraction::new(x).unwrap();
        let model = GilbertElliott { to_bad: f(0.01), to_good: f(0.2), good: f(0.0), bad: f(1.0) };
        let (n, mut state) = (200_000, GOOD);
        let draws: Vec<bool> = (0..n).map(|_| model.is_lost(&mut state, &mut random)).collect();
        let lost = draws.iter().filter(|l| **l).count() as f64;
        let bursts = draws.windows(2).filter(|w| !w[0] && w[1]).count() as f64;
        assert!((lost / n as f64 - 0.0476).abs() < 0.005, "{}", lost / n as f64);
        assert!((lost / bursts - 5.0).abs() < 0.3, "{}", lost / bursts);
    }
}
