//! A policer drops what exceeds a rate, without a queue.

use super::{Cause, Evidence, LOSS, LOST_LEAST, QUEUE, Strength, percent, rate};
use crate::facts::Facts;
use crate::model::Quantity;
use paceline_units::TimeDelta;

pub(super) const CAUSE: Cause = Cause {
    id: "policer",
    title: "policer: packets above a fixed rate were dropped, without a queue",
    advice: "keep the maximum rate below the policed rate, and pace; ask the operator for shaping in place of policing",
    examine,
};

/// The span that is examined. Ours: a policer is there for long.
const SPAN: TimeDelta = TimeDelta::from_secs(20);
/// Ours: seconds without loss below the rate, and seconds with loss above it.
const SECONDS: usize = 2;
/// Ours: below this share of the delivered rate of lossy seconds nearly nothing is lost.
const BELOW: f64 = 0.9;
/// Ours: the delivered rates of lossy seconds are equal to this share.
const EQUAL: f64 = 0.15;

fn examine(facts: &Facts<'_>) -> Option<Evidence> {
    let (from, to) = facts.window();
    let (share, lost) = facts.loss()?;
    let delays = facts.delays();
    if share < LOSS || lost < LOST_LEAST || delays.is_some_and(|delays| delays.rise >= QUEUE.max(1.5 * delays.jitter)) {
        return None;
    }
    let (start, end) = (from - SPAN, to + TimeDelta::from_secs(5));
    let (mut lossy, mut clean) = (Vec::new(), Vec::new());
    let mut at = start;
    let second = TimeDelta::from_secs(1);
    while at < end {
        let next = at + second;
        if let Some(((share, lost), sent)) = facts.loss_within(at, next).zip(facts.sent(at, next)) {
            if share >= LOSS && lost >= LOST_LEAST {
                lossy.push((sent, sent * (1.0 - share)));
            } else if lost <= 1.0 {
                clean.push(sent);
            }
        }
        at = next;
    }
    if lossy.len() < SECONDS || clean.len() < SECONDS {
        return None;
    }
    lossy.sort_by(|a, b| a.1.total_cmp(&b.1));
    let limit = lossy[lossy.len() / 2].1;
    let near = lossy.iter().filter(|(_, delivered)| (delivered - limit).abs() <= EQUAL * limit).count();
    // Clean seconds lie below the rate, lossy ones above it.
    let above = lossy.iter().filter(|(sent, _)| *sent > BELOW * limit).count();
    let below = clean.iter().filter(|sent| **sent <= 1.08 * limit).count();
    let fits = 4 * near >= 3 * lossy.len() && 10 * above >= 9 * lossy.len() && 10 * below >= 9 * clean.len();
    fits.then(|| Evidence {
        strength: Strength::Strong,
        text: format!("{} lost without delay, only while more than {} was sent", percent(share), rate(limit)),
        series: vec![Quantity::SentRate, Quantity::ReceivedRate, Quantity::PacketsLost],
        span: (from, to),
    })
}
