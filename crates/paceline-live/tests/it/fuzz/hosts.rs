// SPDX-License-Identifier: MIT OR Apache-2.0
//! Both ends of a session with datagrams of a hostile peer. An input is a list of steps: time passes and what the ends send is delivered,
//! or one of them gets forged bytes.

use paceline::Registry;
use paceline_live::hosts::caller::Caller;
use paceline_live::hosts::flow_number::Ssrcs;
use paceline_live::hosts::listener::{Action, Listener};
use paceline_live::hosts::message::{self, Message, SessionId};
use paceline_live::hosts::receive_side::ReceiveSide;
use paceline_live::hosts::seal::Secret;
use paceline_live::hosts::send_side::SendSide;
use paceline_live::hosts::session_flow::{Flows, SessionFlow};
use paceline_live::hosts::summary::Closing;
use paceline_live::hosts::terms::{FlowTerms, StreamTerms, Terms};
use paceline_netsim::flow::PACKET_SIZE_DEFAULT;
use paceline_netsim::plan::with_headers;
use paceline_units::{Ecn, Rate, Time, TimeDelta};
use paceline_wire::is_rtcp;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::LazyLock;

/// The controllers, with transport-wide feedback, RFC 8888 and REMB; the first byte of an input selects one.
const CONTROLLERS: [&str; 3] = ["googcc", "scream-v2", "gcc-2016"];

/// The session.
pub const ID: SessionId = SessionId([7; 8]);

/// Highest rate of its source.
const MAX_BPS: u64 = 1_000_000;

static REGISTRY: LazyLock<Registry> = LazyLock::new(Registry::standard);

/// The SSRCs of its one flow.
fn ssrcs() -> Ssrcs {
    Ssrcs::new(ID, [1])
}

/// Returns one end of the flow of a session.
fn flow(terms: &Terms) -> SessionFlow {
    let plans = terms.plans(false, true, &REGISTRY).expect("the controller is known");
    Flows::build(ID, terms, true, (&plans, false), &REGISTRY).expect("the flow is valid").sent.remove(0)
}

/// The terms of a session under a controller.
fn terms(controller: &str) -> Terms {
    let flow = FlowTerms {
        controller: controller.to_owned(),
        streams: vec![StreamTerms::new("encoder", MAX_BPS)],
        start_bps: 500_000,
        min_bps: 30_000,
        ..FlowTerms::default()
    };
    Terms { flows: vec![flow], duration_ms: 60_000, seed: 1, tcp: false }
}

/// Both ends, and what is under way between them.
struct Ends {
    now: Time,
    sender: SendSide,
    receiver: ReceiveSide,
    listener: Listener,
    media: Vec<Vec<u8>>,
    rtcp: Vec<Vec<u8>>,
    reports: Vec<Vec<u8>>,
}

impl Ends {
    /// Lets time pass, and delivers what the ends send.
    fn pass(&mut self, time: TimeDelta) {
        self.now += time;
        let Self { now, sender, receiver, media, rtcp, reports, .. } = self;
        sender.handle_timeout(*now, &mut |bytes, _| media.push(bytes.to_vec()));
        let answer = &mut |bytes: &[u8], _| match arrivals(bytes) {
            Some(body) => reports.push(body.to_vec()),
            None => rtcp.push(bytes.to_vec()),
        };
        for packet in media.drain(..) {
            assert!(receiver.handle_packet(*now, *now, &packet, Ecn::NotEct, answer), "a packet of the session");
        }
        receiver.handle_timeout(*now, answer);
        for bytes in rtcp.drain(..) {
            sender.handle_rtcp(*now, &bytes, Ecn::NotEct, &mut |bytes, _| media.push(bytes.to_vec()));
        }
        reports.drain(..).for_each(|bytes| sender.handle_report(*now, &bytes));
        while self.sender.log.poll_event(self.now).is_some() {}
    }
}

/// Returns the body of a report of arrivals; `None` of other datagrams.
fn arrivals(bytes: &[u8]) -> Option<&[u8]> {
    match message::read(bytes) {
        Ok((ID, Message::Arrivals(body))) => Some(body),
        _ => None,
    }
}

/// Writes these bytes at a place, if there is room.
fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}

/// Checks one input: a byte for the controller, then steps of a kind, a length in units of four bytes, and so many bytes. Returns the number
/// of datagrams.
pub fn check(bytes: &[u8]) -> usize {
    let Some((controller, mut rest)) = bytes.split_first() else { return 0 };
    let proposed = terms(CONTROLLERS[usize::from(*controller) % CONTROLLERS.len()]);
    let length = TimeDelta::from_secs(60);
    let highest = with_headers(Rate::from_bps(MAX_BPS), PACKET_SIZE_DEFAULT);
    let mut ends = Ends {
        now: Time::ZERO,
        sender: SendSide::new(ssrcs(), vec![flow(&proposed)], 0, Time::ZERO, length, TimeDelta::from_millis(20)),
        receiver: ReceiveSide::new(ssrcs(), vec![flow(&proposed)], 0, Time::ZERO),
        listener: Listener::new([3; 32], None),
        media: Vec::new(),
        rtcp: Vec::new(),
        reports: Vec::new(),
    };
    let (ssrcs, to_bytes) = (ssrcs(), u32::to_be_bytes);
    let (media_ssrc, receiver_ssrc) = (to_bytes(ssrcs.of(0).streams[0][0]), to_bytes(ssrcs.of(0).receiver));
    let from: SocketAddr = (Ipv4Addr::LOCALHOST, 9).into();
    let secret = Secret::new(&[1; 32]).expect("it is long enough");
    let mut datagrams = 0;
    while let [kind, words, more @ ..] = rest {
        let (datagram, after) = more.split_at(more.len().min(4 * usize::from(*words)));
        rest = after;
        let mut datagram = datagram.to_vec();
        if kind % 8 > 0 {
            datagrams += 1;
        }
        match kind % 8 {
            0 => ends.pass(TimeDelta::from_millis((*words).into())),
            1 => match ends.listener.handle(ends.now, from, &datagram) {
                // No address has been proved.
                Action::Reply(reply) => {
                    assert!(reply.len() <= datagram.len(), "an answer is no longer than the question")
                }
                Action::Drop => {}
                Action::Decide(..) | Action::Repeat | Action::Leave => panic!("a forged token"),
            },
            2 => {
                let place = if is_rtcp(&datagram) { 4 } else { 8 };
                put(&mut datagram, place, &media_ssrc);
                let Ends { now, receiver, rtcp, .. } = &mut ends;
                receiver.handle_packet(*now, *now, &datagram, Ecn::Ce, &mut |bytes, _| {
                    rtcp.extend(is_rtcp(bytes).then(|| bytes.to_vec()));
                });
            }
            3 => {
                put(&mut datagram, 4, &receiver_ssrc);
                ends.sender.handle_rtcp(ends.now, &datagram, Ecn::NotEct, &mut |_, _| {});
            }
            4 => ends.sender.handle_report(ends.now, &datagram),
            5 => {
                let key = (*words % 2 > 0).then_some(&secret);
                let mut caller = Caller::new(ends.now, ID, &proposed, key);
                put(&mut datagram, 6, &ID.0);
                caller.handle(ends.now, &datagram);
                drop(caller.poll_transmit(ends.now));
            }
            6 => {
                if let Ok((id, message)) = message::read(&datagram)
                    && !matches!(message, Message::Hello | Message::Refuse(_))
                {
                    assert_eq!(message::write(id, message), datagram, "what was read is written again");
                }
                drop((Terms::from_bytes(&datagram), Closing::from_bytes(&datagram)));
            }
            _ => {
                // What the receiver has just sent, changed.
                let Ends { now, receiver, sender, .. } = &mut ends;
                let mut answers: Vec<(Vec<u8>, bool)> = Vec::new();
                *now += TimeDelta::from_millis(100);
                receiver.handle_timeout(*now, &mut |bytes, _| {
                    answers.push((arrivals(bytes).unwrap_or(bytes).to_vec(), is_rtcp(bytes)));
                });
                for (mut bytes, is_rtcp) in answers {
                    let skipped = if is_rtcp { 8 } else { 0 };
                    bytes.iter_mut().skip(skipped).zip(&datagram).for_each(|(byte, change)| *byte ^= change);
                    match is_rtcp {
                        true => sender.handle_rtcp(*now, &bytes, Ecn::NotEct, &mut |_, _| {}),
                        false => sender.handle_report(*now, &bytes),
                    }
                }
            }
        }
        assert!(ends.sender.target() <= highest, "{:?}", ends.sender.target());
        let (sent, received) = (ends.sender.log.sent, ends.sender.log.received);
        assert!(received.packets <= sent.packets && received.bytes <= sent.bytes, "{received:?} of {sent:?}");
    }
    ends.pass(TimeDelta::from_millis(100));
    let now = ends.now;
    ends.sender.log.finish();
    drop((ends.sender.drift(), ends.sender.summary(now), ends.sender.finish(now)));
    datagrams
}
