// SPDX-License-Identifier: MIT OR Apache-2.0
//! Per-packet feedback by RFC 8888 and ECN, from the queue that marks to the send half that receives the feedback.

use crate::fixtures::{self, Listener, load_from, metric, within};
use paceline::{
    Config, Controller, Decision, Entry, Event, FeedbackRequirement, PacketReport, Parameters, Registry, SendHalf,
    Setup, Signals,
};
use paceline_lab::run::{RunResult, Runner};
use paceline_netsim::records::{EventRecord, PacketClass};
use paceline_scenario::Origin;
use paceline_units::{Ecn, Rate, Time, TimeDelta};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const INTERVAL: TimeDelta = TimeDelta::from_millis(50);
const WIDE: FeedbackRequirement = FeedbackRequirement::new(INTERVAL, INTERVAL);
const BY_STREAM: FeedbackRequirement = WIDE.with_ecn(true);

/// Config and send half of a controller that sends at its start rate and records its feedback.
#[derive(Clone, Debug)]
struct Recorder {
    feedback: FeedbackRequirement,
    ecn: Ecn,
    rate: Rate,
    reports: Arc<Mutex<Vec<PacketReport>>>,
}

impl Parameters for Recorder {}

impl Config for Recorder {
    const CONTROLS: bool = false;
    fn halves(&self, setup: &Setup) -> Controller {
        let half = Self { rate: setup.start, ..self.clone() };
        Controller::from_sender(half).with_feedback(Some(self.feedback))
    }
}

impl SendHalf for Recorder {
    fn handle_event(&mut self, _: Time, event: &Event<'_>, _: &mut Signals) {
        if let Event::Feedback(feedback) = *event {
            self.reports.lock().unwrap().extend(feedback.packets);
        }
    }

    fn decision(&self) -> Decision {
        Decision::new(self.rate).with_pacing(self.rate.scale(1.5)).with_ecn(self.ecn)
    }
}

struct Run {
    result: RunResult,
    events: Vec<EventRecord>,
    reports: Vec<PacketReport>,
}

fn run(feedback: FeedbackRequirement, ecn: Ecn, path: &str) -> Run {
    let text = format!(
        "id = \"test/ecn\"\ntitle = \"A flow that records its feedback\"\nduration = \"60s\"\n[path]\nrtt = \"50ms\"\n{path}\n\
         [[flow]]\nid = \"video\"\ncontroller = \"recorder\"\nstart_rate = \"1.2 Mbps\"\n"
    );
    let recorder = Recorder { feedback, ecn, rate: Rate::ZERO, reports: Arc::default() };
    let mut registry = Registry::standard();
    registry.add(Entry::new("recorder", "records its feedback", "a test", recorder.clone()));
    let scenario = load_from(&Origin::from_text("ecn.toml", text), None, &[], &registry);
    let mut events = Vec::new();
    let mut listener = Listener { signals: false, on_event: |event: &EventRecord| events.push(*event) };
    let result = Runner::simulator(&registry).run(&scenario, 1, Some(&mut listener)).unwrap();
    let reports = std::mem::take(&mut *recorder.reports.lock().unwrap());
    Run { result, events, reports }
}

impl Run {
    fn packets(&self) -> Vec<u64> {
        let sent = self.events.iter().filter_map(|event| match event {
            EventRecord::Sent { packet, .. } if !packet.class.is_from_receiver() => Some(*packet),
            _ => None,
        });
        sent.filter(|p| p.class != PacketClass::SenderControl).map(|p| p.packet).collect()
    }

    fn arrived(&self) -> BTreeMap<u64, Ecn> {
        let arrived = self.events.iter().filter_map(|event| match event {
            EventRecord::Arrived { packet, ecn, .. } => Some((packet.packet, *ecn)),
            _ => None,
        });
        arrived.collect()
    }

    fn last_reports(&self) -> BTreeMap<u64, PacketReport> {
        self.reports.iter().map(|report| (report.sequence, *report)).collect()
    }

    fn feedback_bps(&self) -> f64 {
        let bytes = self.events.iter().map(|event| match event {
            EventRecord::Sent { packet, .. } if packet.class == PacketClass::ReceiverControl => packet.size.as_bytes(),
            _ => 0,
        });
        bytes.sum::<u64>() as f64 * 8.0 / 60.0
    }
}

#[test]
fn both_feedback_formats_report_the_same_arrivals() {
    let path = "[path.forward]\ncapacity = \"3 Mbps\"\nloss = \"2 %\"\n\
                jitter = { std = \"10 ms\", order = \"reorder\" }";
    let (wide, stream) = (run(WIDE, Ecn::NotEct, path), run(BY_STREAM, Ecn::NotEct, path));
    assert_eq!(wide.packets().len(), stream.packets().len(), "feedback does not change what is sent");
    let (a, b) = (wide.last_reports(), stream.last_reports());
    let (mut first, mut missing, mut late) = (None, 0, 0);
    // The last reports are in flight at the end.
    for sequence in 0..wide.packets().len() as u64 - 100 {
        let Some(wide) = a.get(&sequence) else { panic!("packet {sequence} is not reported") };
        let stream = match (b.get(&sequence), wide.arrival) {
            (Some(stream), _) => stream,
            // Lost, and the next of its stream, a retransmission, came more than a report later.
            (None, None) => continue,
            (None, Some(_)) => panic!("packet {sequence} is not reported by stream"),
        };
        assert_eq!((wide.sent, wide.size), (stream.sent, stream.size));
        assert_eq!(wide.arrival.is_some(), stream.arrival.is_some(), "packet {sequence}");
        let (Some(x), Some(y)) = (wide.arrival, stream.arrival) else {
            missing += 1;
            continue;
        };
        let (x_0, y_0) = *first.get_or_insert((x, y));
        // Each within half of 1/1024 s and 1/65536 s, or 250 us.
        let error = ((y - y_0) - (x - x_0)).as_nanos() as f64 / 1e3;
        within("arrival, us", error, -1260.0, 1260.0);
        let overtaken = b.get(&(sequence + 1)).is_some_and(|next| next.arrival.is_some_and(|at| at < y));
        late += u32::from(overtaken);
    }
    let n = wide.packets().len() as f64;
    within("lost", missing as f64 / n, 0.015, 0.025);
    within("overtaken", f64::from(late) / n, 0.1, 0.3);
}

/// On a clean path there are 20 reports per second, on some 7 packets each: transport-wide of 28 + 20 bytes, 2 or 4 for the
/// statuses and one for each packet; by stream of 28 + 20 bytes and 4 for each packet, which is reported twice. On a path
/// that loses and reorders, both formats also carry NACKs; the first reports each late packet on its own, and the second
/// begins earlier.
#[test]
fn rate_of_feedback_matches_its_packet_sizes() {
    let clean = "[path.forward]\ncapacity = \"3 Mbps\"";
    let harsh = "[path.forward]\ncapacity = \"3 Mbps\"\nloss = \"2 %\"\n\
                 jitter = { std = \"10 ms\", order = \"reorder\" }";
    for (path, low, high) in [(clean, [8e3, 10.5e3], [10.5e3, 14e3]), (harsh, [17e3, 19e3], [24e3, 27e3])] {
        let bps = [WIDE, BY_STREAM].map(|kind| run(kind, Ecn::NotEct, path).feedback_bps());
        println!("{:.0} bit/s transport-wide, {:.0} bit/s by stream", bps[0], bps[1]);
        within("transport-wide, bit/s", bps[0], low[0], high[0]);
        within("by stream, bit/s", bps[1], low[1], high[1]);
    }
}

/// 1.2 Mbit/s into 1: the queue fills to its limit, and from 50 ms on it marks.
const FULL: &str = "[path.forward]\ncapacity = \"1 Mbps\"\nqueue = { limit = \"300 ms\", mark = \"50 ms\" }";

#[test]
fn reports_contain_the_marks_of_the_queue() {
    for sent in [Ecn::Ect0, Ecn::Ect1] {
        let run = run(BY_STREAM, sent, FULL);
        let (arrived, packets) = (run.arrived(), run.packets());
        assert!(run.reports.len() > 5000, "{}", run.reports.len());
        let mut marked = 0;
        for report in &run.reports {
            let was = arrived.get(&packets[report.sequence as usize]).copied();
            assert_eq!(report.arrival.and(report.ecn), was, "packet {}", report.sequence);
            assert!(was.is_none_or(|ecn| ecn == sent || ecn == Ecn::Ce));
            marked += u32::from(was == Some(Ecn::Ce));
        }
        // The queue is above the threshold most of the time, except for pauses of the encoder.
        let arrived = run.reports.iter().filter(|r| r.arrival.is_some()).count();
        within("reported as marked", f64::from(marked) / arrived as f64, 0.7, 0.95);

        let by_flow = |event: &&EventRecord| matches!(event, EventRecord::Arrived { ecn: Ecn::Ce, .. });
        let flow = &run.result.whole.flows[0];
        assert_eq!(flow.marked_packets, run.events.iter().filter(by_flow).count() as u64);
        let crossed =
            run.events.iter().filter(|r| matches!(r, EventRecord::Crossed { marked: true, .. })).count() as u64;
        assert_eq!(run.result.whole.link.marked_packets, crossed);
        assert!(crossed >= flow.marked_packets && crossed < flow.marked_packets + 50, "except for those in flight");
        let of = |flow| metric(&run.result.whole, "ce_ratio", flow);
        assert_eq!(of(Some(0)), of(None));
        let ratio = of(None).unwrap();
        assert_eq!(ratio, flow.marked_packets as f64 / flow.ecn_packets as f64);
        within("ce_ratio", ratio, 0.7, 0.95);
    }
}

/// A packet is marked if it and the packets before it take the link more than 50 ms. It waits for those and for the rest of
/// the packet in service, at most 9.9 ms.
#[test]
fn marks_begin_above_the_threshold() {
    let run = run(BY_STREAM, Ecn::Ect1, FULL);
    let (mut marked, mut unmarked) = (f64::MAX, 0f64);
    for event in &run.events {
        let EventRecord::Crossed { hop: 0, packet, waited, marked: mark, .. } = *event else { continue };
        if packet.class == PacketClass::SenderControl {
            assert!(!mark, "reports are not ECN-capable");
            continue;
        }
        let with_own = waited.as_millis_f64() + packet.size.as_bytes() as f64 * 8e-3;
        if mark {
            marked = marked.min(with_own);
        } else {
            unmarked = unmarked.max(with_own);
        }
    }
    within("shortest marked, ms", marked, 50.0, 60.0);
    within("longest unmarked, ms", unmarked, 45.0, 60.0);
}

#[test]
fn packets_without_ecn_are_not_marked() {
    let bare = FULL.replace(", mark = \"50 ms\"", "");
    let hash = |ecn, path: &str| run(BY_STREAM, ecn, path).result.trace_hash;
    assert_eq!(hash(Ecn::NotEct, FULL), hash(Ecn::NotEct, &bare), "the threshold has no effect on them");
    assert_ne!(hash(Ecn::Ect1, FULL), hash(Ecn::Ect1, &bare), "a mark is a decision of the link");
    let run = run(BY_STREAM, Ecn::NotEct, FULL);
    assert!(run.arrived().values().all(|ecn| *ecn == Ecn::NotEct));
    assert!(run.reports.iter().all(|report| report.ecn == report.arrival.map(|_| Ecn::NotEct)));
    let flow = &run.result.whole.flows[0];
    assert_eq!((run.result.whole.link.marked_packets, flow.marked_packets, flow.ecn_packets), (0, 0, 0));
    assert_eq!(metric(&run.result.whole, "ce_ratio", None), None, "no packet could be marked");
}

/// SCReAM reacts to marks: it keeps the queue at the threshold and still fills the link. Without marks only the trend of the
/// delay limits it, at a queue several times as long.
#[test]
fn scream_keeps_its_queue_at_the_marking_threshold() {
    for controller in ["scream", "scream-cpp"] {
        let [bare, marking] = ["", ", mark = \"20 ms\""].map(|mark| {
            let text = format!(
                "id = \"test/ecn\"\ntitle = \"A flow that answers\"\nduration = \"60s\"\n[path]\nrtt = \"50ms\"\n\
                 [path.forward]\ncapacity = \"1 Mbps\"\nqueue = {{ limit = \"300 ms\"{mark} }}\n\
                 [[flow]]\nid = \"video\"\ncontroller = \"{controller}\"\nencoder = {{ source = \"ideal\" }}\n"
            );
            let whole = fixtures::run(&text, &[]).whole;
            let value = |id| metric(&whole, id, None).unwrap();
            assert!(whole.flows[0].ecn_packets > 4000, "media is ECN-capable");
            ["utilization", "queue_p95_ms", "ce_ratio", "loss_ratio"].map(value)
        });
        println!("{controller}: {bare:.4?} bare, {marking:.4?} marking");
        within("utilisation, bare", bare[0], 0.92, 0.98);
        within("utilisation, marking", marking[0], 0.82, 0.95);
        within("95 % of the queue, ms, bare", bare[1], 45.0, 75.0);
        within("95 % of the queue, ms, marking", marking[1], 8.0, 20.0);
        assert_eq!(bare[2], 0.0);
        within("marked", marking[2], 0.001, 0.02);
        assert_eq!((bare[3], marking[3]), (0.0, 0.0), "nothing is lost");
    }
}

/// Its format has no field for marks, to which a sender could therefore not react: packets are ECN-capable until the first report.
#[test]
fn transport_wide_feedback_ends_ecn() {
    let run = run(WIDE, Ecn::Ect1, FULL);
    let capable = run.arrived().values().filter(|ecn| **ecn != Ecn::NotEct).count();
    assert!((5..50).contains(&capable), "{capable} packets");
    assert!(run.reports.len() > 5000 && run.reports.iter().all(|report| report.ecn.is_none()));
}
