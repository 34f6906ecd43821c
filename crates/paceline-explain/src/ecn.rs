// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the ECN fields of packets show of a path (RFC 3168; L4S: RFC 9330 and 9331).

use crate::causes::percent;
use crate::model::{Flow, Quantity};
use paceline_units::Time;
use schemars::JsonSchema;
use serde::Serialize;

/// Assumed: fewer packets show nothing of a path.
const PACKETS_MIN: f64 = 20.0;
/// Assumed: fewer lost packets may be those of any path.
const LOST_MIN: f64 = 3.0;
/// Assumed: if this share of the ECN-capable packets is lost, and none arrives, a hop drops them because of the field.
const DROPPED: f64 = 0.9;
/// Assumed: if this share of the packets that were reported lost arrived later, they changed their order.
const LATE: f64 = 0.5;

/// What the path does with ECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EcnFinding {
    /// A bottleneck marked packets.
    Marked,
    /// A hop clears the field.
    Bleached,
    /// Packets with the field do not arrive.
    Dropped,
    /// Packets were lost, and none was marked.
    LostUnmarked,
    /// Nothing was marked, and nothing was lost.
    Unmarked,
    /// The input does not show the fields of arrivals.
    Unknown,
}

/// Packets by their ECN fields, and what they show. `null`: not in the input.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Ecn {
    /// Packets that were sent ECN-capable.
    pub sent: Option<f64>,
    /// Packets that arrived ECN-capable, without a mark.
    pub arrived: Option<f64>,
    /// Packets that arrived with a mark of congestion.
    pub marked: Option<f64>,
    /// Packets whose field was cleared on the way.
    pub cleared: Option<f64>,
    /// Packets that were sent ECN-capable and did not arrive.
    pub lost: Option<f64>,
    /// What the path does with ECN.
    pub finding: EcnFinding,
    /// The finding in a sentence.
    pub text: String,
}

/// Returns what ECN shows of a flow; `None` if it is not used.
pub fn of_flow(flow: &Flow) -> Option<Ecn> {
    let sum = |quantity| Some(flow.get(quantity)?.sum(flow.span.0, Time::MAX).round());
    let [sent, arrived, marked, cleared, ect_lost] =
        [Quantity::EctSent, Quantity::EctArrived, Quantity::CeArrived, Quantity::EctCleared, Quantity::EctLost]
            .map(sum);
    let count = |packets: Option<f64>| packets.unwrap_or(0.0);
    let capable = count(arrived) + count(marked);
    if count(sent).max(capable + count(cleared)) < PACKETS_MIN {
        return None;
    }
    let all_lost = flow.losses(flow.span.0, Time::MAX).map_or(0.0, |(lost, _)| lost.round());
    // Statistics do not say which of the lost packets had ECT.
    let lost = ect_lost.unwrap_or(all_lost);
    let known = arrived.is_some() || marked.is_some();
    let none_arrives = known && capable + count(cleared) == 0.0;
    let (finding, text) = match () {
        () if count(marked) > 0.0 => {
            let share = percent(count(marked) / capable);
            (
                EcnFinding::Marked,
                format!("{share} of the packets came with a mark (CE): a bottleneck marks when it is congested"),
            )
        }
        () if none_arrives && lost >= DROPPED * count(sent) => (
            EcnFinding::Dropped,
            match ect_lost {
                Some(_) => "packets with ECT do not arrive: a hop drops them, so the sender must not set it".to_owned(),
                None => format!(
                    "packets with ECT do not arrive: a hop drops them, so the sender must not set it (assumed, because of all \
                     packets {lost:.0} were lost; this file does not show which of them had ECT)"
                ),
            },
        ),
        // Of packets whose losses are known, those that arrived without ECT are known, too.
        () if count(cleared) > 0.0 || none_arrives && ect_lost.is_none() => {
            let share = match count(cleared) {
                0.0 => "all".to_owned(),
                cleared => percent(cleared / (cleared + capable)),
            };
            let text = format!(
                "{share} of the packets that left with ECT arrived without: a hop clears it, so no bottleneck after it can mark, \
                 and the sender has only delay and loss"
            );
            (EcnFinding::Bleached, text)
        }
        () if !known || none_arrives => {
            let text = "packets left with ECT; this file does not show how they arrived: record RFC 8888 reports, or packets at \
                        the receiver, to know";
            (EcnFinding::Unknown, text.to_owned())
        }
        () if lost >= LOST_MIN => {
            let with = if ect_lost.is_some() { " with it" } else { "" };
            let text = format!(
                "ECT arrives, {lost:.0} packets{with} were lost and none was marked: the bottleneck drops, and does not mark"
            );
            (EcnFinding::LostUnmarked, text)
        }
        () => (EcnFinding::Unmarked, "ECT arrives, and no packet was marked or lost: no congestion showed".to_owned()),
    };
    let late = sum(Quantity::Recovered).filter(|late| *late >= LOST_MIN && *late >= LATE * (all_lost + late));
    let late = late.map(|late| format!("; {late:.0} packets that were reported lost came later: their order changed"));
    Some(Ecn { sent, arrived, marked, cleared, lost: ect_lost, finding, text: text + &late.unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_flow::statistics;

    /// The finding of a flow with these packets a second: sent with ECT, arrived so, marked, cleared, lost of 100.
    fn found([sent, arrived, marked, cleared, lost]: [f64; 5]) -> Option<EcnFinding> {
        let flow = statistics(&[
            (Quantity::EctSent, &|_| sent),
            (Quantity::EctArrived, &|_| arrived),
            (Quantity::CeArrived, &|_| marked),
            (Quantity::EctCleared, &|_| cleared),
            (Quantity::PacketsSent, &|_| 100.0),
            (Quantity::PacketsLost, &|_| lost),
        ]);
        of_flow(&flow).map(|ecn| ecn.finding)
    }

    #[test]
    fn marks_bleaching_and_drops_differ() {
        assert_eq!(found([100.0, 90.0, 10.0, 0.0, 0.0]), Some(EcnFinding::Marked));
        assert_eq!(found([100.0, 100.0, 0.0, 0.0, 0.0]), Some(EcnFinding::Unmarked));
        assert_eq!(found([100.0, 98.0, 0.0, 0.0, 2.0]), Some(EcnFinding::LostUnmarked));
        assert_eq!(found([100.0, 0.0, 0.0, 100.0, 0.0]), Some(EcnFinding::Bleached));
        assert_eq!(found([100.0, 0.0, 0.0, 0.0, 0.0]), Some(EcnFinding::Bleached), "none arrives, and nothing is lost");
        assert_eq!(found([100.0, 0.0, 0.0, 0.0, 100.0]), Some(EcnFinding::Dropped));
        assert_eq!(found([0.0; 5]), None, "ECN is not used");
    }

    #[test]
    fn without_losses_by_field_the_text_says_that_they_are_of_all_packets() {
        let text = |ect_lost: Option<f64>| {
            let mut flow = statistics(&[
                (Quantity::EctSent, &|_| 100.0),
                (Quantity::EctArrived, &|_| 0.0),
                (Quantity::PacketsSent, &|_| 200.0),
                (Quantity::PacketsLost, &|_| 100.0),
            ]);
            if let Some(lost) = ect_lost {
                flow.series.extend(statistics(&[(Quantity::EctLost, &|_| lost)]).series);
            }
            of_flow(&flow).unwrap().text
        };
        for lost in [None, Some(100.0)] {
            let text = text(lost);
            assert!(text.starts_with("packets with ECT do not arrive"), "{text}");
            assert_eq!(text.contains("(assumed, because of all packets 6000 were lost"), lost.is_none(), "{text}");
        }
        assert!(!text(Some(10.0)).contains("do not arrive"), "the others may have been lost: {}", text(Some(10.0)));
    }

    #[test]
    fn without_fields_of_arrivals_the_text_says_what_to_record() {
        let sent = statistics(&[(Quantity::EctSent, &|_| 100.0)]);
        let ecn = of_flow(&sent).unwrap();
        assert_eq!((ecn.finding, ecn.arrived), (EcnFinding::Unknown, None));
        assert!(ecn.text.contains("to know"), "{}", ecn.text);
    }

    #[test]
    fn packets_that_come_later_changed_their_order() {
        let text = |late: f64| {
            let flow = statistics(&[
                (Quantity::EctArrived, &|_| 100.0),
                (Quantity::PacketsSent, &|_| 100.0),
                (Quantity::PacketsLost, &|_| 1.0),
                (Quantity::Recovered, &|_| late),
            ]);
            of_flow(&flow).unwrap().text
        };
        assert!(text(2.0).contains("120 packets that were reported lost came later"), "{}", text(2.0));
        assert!(!text(0.0).contains("later"));
    }
}
