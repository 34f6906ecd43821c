//! What a receive half tells reaches the send half, through real bytes.

use crate::world::{Fate, Impair, Setting, World};
use crate::{kbps, ms, within};
use paceline::blocks::GroupDelta;
use paceline::{
    Arrival, Controller, Decision, FeedbackKind, GradientReport, Message, NadaMode, NadaReport, ReceiveHalf, SendHalf,
    Signals,
};
use paceline_units::{Ecn, Rate, RemoteTime, Time};
use paceline_wire::{Rtcp, parse_compound};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Tells one message of each kind each 100 ms from the first packet on; their rates number them.
struct Teller {
    next: RemoteTime,
    round: u64,
    due: VecDeque<Message>,
}

fn messages(round: u64) -> [Message; 3] {
    let incoming = Rate::from_bps(round);
    let step = GroupDelta { arrival: ms(35), departure: ms(33), size: -70 };
    [
        Message::Remb(incoming),
        Message::Gradient(GradientReport { step, incoming }),
        Message::Nada(NadaReport { mode: NadaMode::Gradual, signal: ms(7), incoming }),
    ]
}

impl ReceiveHalf for Teller {
    fn handle_arrival(&mut self, now: RemoteTime, _: &Arrival, _: &mut Signals) {
        self.next = self.next.min(now + ms(100));
    }
    fn handle_timeout(&mut self, now: RemoteTime, _: &mut Signals) {
        (self.next, self.round) = (now + ms(100), self.round + 1);
        self.due.extend(messages(self.round));
    }
    fn poll_timeout(&self) -> RemoteTime {
        self.next
    }
    fn poll_message(&mut self, _: RemoteTime) -> Option<Message> {
        self.due.pop_front()
    }
}

struct Listener(Sender<Message>);

impl SendHalf for Listener {
    fn handle_message(&mut self, _: Time, message: &Message, _: &mut Signals) {
        self.0.send(*message).unwrap();
    }
    fn decision(&self) -> Decision {
        Decision { target: kbps(300), pacing: kbps(600), window: None, padding: Rate::ZERO }
    }
}

/// Ten seconds over a way back that does this to reports.
fn heard(back: Impair) -> (World, Vec<Message>) {
    let (listener, heard): (_, Receiver<Message>) = channel();
    let teller = Teller { next: RemoteTime::MAX, round: 0, due: VecDeque::new() };
    let controller = Controller {
        send: Some(Box::new(Listener(listener))),
        receive: Some(Box::new(teller)),
        feedback: FeedbackKind::None,
        ecn: Ecn::NotEct,
    };
    let mut setting = Setting::new(controller, kbps(2000));
    setting.back = back;
    let mut world = World::new(setting);
    world.run_secs(10);
    let heard = heard.try_iter().collect();
    (world, heard)
}

/// Also before the first sender report has come, and where a report tells of no new packet.
#[test]
fn messages_of_one_instant_share_a_report_and_all_come() {
    let (world, heard) = heard(Box::new(|_, _, _| Fate::Pass));
    within(heard.len() as f64, 290.0, 300.0, "three each 100 ms for 9.9 s");
    let told: Vec<Message> = (1..).flat_map(messages).take(heard.len()).collect();
    assert!(heard == told, "each once, in order");
    assert_eq!(world.sender_refused(), 0);
    for left in &world.back_log {
        let kinds = parse_compound(&left.bytes).unwrap().into_iter().map(|packet| match packet {
            Rtcp::ReceiverReport { .. } => 'r',
            Rtcp::Remb { .. } | Rtcp::GroupStep { .. } | Rtcp::Nada { .. } => 'm',
            _ => '-',
        });
        let kinds: String = kinds.filter(|kind| *kind != '-').collect();
        assert!(["r", "rmmm"].contains(&kinds.as_str()), "{kinds}");
    }
}

/// What comes twice or late is told once or never.
#[test]
fn old_messages_are_dropped() {
    let (world, heard) = heard(Box::new(|n, _, _| match n % 10 {
        3 => Fate::Twice,
        6 => Fate::Late(ms(350)),
        _ => Fate::Pass,
    }));
    let told: Vec<Message> = (1..=100).flat_map(messages).collect();
    let mut last = None;
    for message in &heard {
        let place = told.iter().position(|t| t == message);
        assert!(place > last, "{message:?}");
        last = place;
    }
    // A tenth is late: ten compounds of three.
    within(heard.len() as f64, 255.0, 275.0, "heard");
    within(world.sender_refused().into(), 50.0, 90.0, "refused");
}
