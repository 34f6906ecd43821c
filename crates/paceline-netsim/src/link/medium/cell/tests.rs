// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vectors by hand, and what a light and a heavy sender see.

use super::super::build_media;
use super::*;
use crate::link::queue::{Descriptor, QueueLimit, testing};
use crate::link::server::{SERVERS, ServerPlan};
use crate::link::{Capacity, CapacityEnd, HopPlan, Output};
use crate::parameter::Value;
use paceline_units::{Ecn, Fraction, Rate};

/// A cell, its link of 8 Mbit/s, and the packets that arrived at the far end, with their delays.
struct Path {
    medium: Option<Box<dyn Medium>>,
    links: Vec<Link>,
    sent: Vec<Time>,
    delays: Vec<TimeDelta>,
    left: Vec<Time>,
}

impl Path {
    fn new(given: &[(&str, Value)], texts: &[(&'static str, &str)]) -> Self {
        let entry = SERVERS.iter().find(|entry| entry.name == "nr").unwrap();
        let texts = texts.iter().map(|(key, text)| (*key, (*text).to_owned())).collect();
        let service = (entry.build)(&Values::new(entry.parameters, given).with_texts(texts)).unwrap();
        Self::of(ServerPlan { entry, service }, Capacity::constant(Rate::from_kbps(8000)))
    }

    fn of(server: ServerPlan, capacity: Capacity) -> Self {
        let limit = QueueLimit::Packets(100_000);
        let hop = HopPlan { capacity: Some(capacity), server, ..HopPlan::new("air", limit) };
        let streams = RandomStreams::new(7);
        let parts = [(hop.id.as_str(), hop.server.service.medium.as_ref())];
        let medium = build_media(parts.into_iter(), &streams).0.pop();
        let links = vec![Link::new(hop.clone(), &streams)];
        Self { medium, links, sent: Vec::new(), delays: Vec::new(), left: Vec::new() }
    }

    fn advance(&mut self, now: Time) {
        if let Some(medium) = &mut self.medium {
            medium.advance(now, 0, &mut self.links);
        }
        while let Some(output) = self.links[0].poll_output(now) {
            let Output::Delivered { packet, due, .. } = output else { panic!("a cell loses no packet") };
            self.delays.push(due - self.sent[packet.id as usize]);
            self.left.push(due);
        }
    }

    /// Sends packets of 1250 bytes at these times, and returns their delays in µs, by their arrival.
    fn send(&mut self, times: impl IntoIterator<Item = Time>) -> Vec<i64> {
        let mut end = Time::ZERO;
        for at in times {
            self.advance(at);
            let packet =
                Descriptor { size: DataSize::from_bytes(1250), ..testing::packet(self.sent.len() as u32, Ecn::NotEct) };
            self.sent.push(at);
            self.links[0].handle_packet(at, packet);
            self.advance(at);
            end = at;
        }
        self.advance(end + TimeDelta::from_secs(60));
        assert_eq!(self.delays.len(), self.sent.len());
        self.delays.iter().map(|delay| delay.as_nanos() / 1000).collect()
    }
}

fn ms(at: i64) -> Time {
    Time::from_millis(at)
}

fn percent(part: f64) -> Value {
    Value::Fraction(Fraction::new(part / 100.0).unwrap())
}

const NO_ERRORS: (&str, Value) = ("block_error", Value::Fraction(Fraction::ZERO));

/// Slots of 0.5 ms; in DDDSU the uplink has the one from 2 ms on of each 2.5 ms, which carries 8 Mbit/s · 2.5 ms = 2500 bytes, two packets. A block
/// arrives at the end of its slot.
#[test]
fn slots_carry_packets_at_their_times() {
    let configured = [("grants", "configured")];
    let up = |times: &[i64]| Path::new(&[NO_ERRORS], &configured).send(times.iter().copied().map(ms));
    assert_eq!(up(&[0, 1, 2, 3]), [2500, 1500, 3000, 2000], "the third packet finds the first slot full");
    // The downlink has four of five slots, each with 625 bytes: a packet takes two.
    let down = Path::new(&[NO_ERRORS], &[("direction", "down")]).send([0, 0, 0].map(ms));
    assert_eq!(down, [1000, 2000, 3500], "the slot from 2 ms on is the uplink's");
}

/// A packet at 1 ms: a request at 10 ms, a grant of 200 bytes for 14 ms, used in the slot from 14.5 ms on. The other 1050 bytes are granted for
/// 18.5 ms, and leave in the slot from 19.5 ms on. The second packet is reported in that slot: granted for 23.5 ms, sent from 24.5 ms on.
#[test]
fn uplink_that_was_idle_asks_first() {
    let delays = Path::new(&[NO_ERRORS], &[]).send([1, 16].map(ms));
    assert_eq!(delays, [19_000, 9000]);
}

/// With an error of a block for certain, all four attempts fail each time: never delivered. With 10 %, the mean delay of a block is
/// 5 ms · (0.1 + 0.01 + 0.001) + 40 ms · 0.0001 / (1 − 0.0001) + ... = 0.56 ms.
#[test]
fn failed_blocks_delay_what_follows() {
    let repetition =
        Repetition { error: 0.1, delay: TimeDelta::from_millis(5), attempts: 4, recovery: TimeDelta::from_millis(40) };
    let random = &mut RandomStreams::new(1).stream("blocks");
    let all: Vec<f64> = (0..200_000).map(|_| repetition.delay(random).as_millis_f64()).collect();
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    assert!((mean - 0.56).abs() < 0.01, "{mean}");
    // The packets behind a failed block arrive with it.
    let mut path = Path::new(&[("block_error", percent(30.0))], &[("grants", "configured")]);
    path.send((0..4000).map(|n| ms(n * 5)));
    assert!(path.left.is_sorted());
    let late = path.delays.iter().filter(|delay| delay.as_millis_f64() > 5.0).count() as f64 / 4000.0;
    assert!((0.25..0.45).contains(&late), "{late}");
}

/// A queue that is never empty leaves at the capacity, whatever the pattern, the grants and the errors are.
#[test]
fn a_backlog_leaves_at_the_capacity() {
    for texts in [&[][..], &[("grants", "configured")], &[("direction", "down")], &[("pattern", "DU")]] {
        let mut path = Path::new(&[], texts);
        path.send((0..8000).map(|n| Time::from_nanos(n * 100_000)));
        let seconds = (*path.left.last().unwrap() - Time::ZERO).as_secs_f64();
        assert!((seconds - 10.0).abs() < 0.05, "{texts:?}: 8000 packets of 10 kbit took {seconds} s at 8 Mbit/s");
    }
}

fn median(mut all: Vec<i64>) -> i64 {
    all.sort_unstable();
    all[all.len() / 2]
}

/// What a saturating sender recorded says nothing of the delay of a light one. A packet each 47 ms waits for a request (0 to 10 ms), two grants of
/// 4 ms and their slots: 13 to 24 ms. On a replay of the departures of a saturated run the same packets wait for one slot, less than 5 ms.
#[test]
fn a_light_sender_waits_and_a_replay_of_a_heavy_one_hides_it() {
    let light = || (0..400).map(|n| ms(n * 47));
    let real = Path::new(&[NO_ERRORS], &[]).send(light());
    assert!(real.iter().all(|delay| (9_000..=26_000).contains(delay)), "{real:?}");
    let mut heavy = Path::new(&[NO_ERRORS], &[]);
    heavy.send((0..16_000).map(|n| Time::from_nanos(n * 1_250_000)));
    let at: Vec<TimeDelta> = heavy.left.iter().map(|at| *at - Time::ZERO).collect();
    let end = CapacityEnd::Loop(*at.last().unwrap());
    let replay = Capacity::opportunities(at, DataSize::from_bytes(1250), end).unwrap();
    let replayed = Path::of(ServerPlan::default(), replay).send(light());
    let configured = Path::new(&[NO_ERRORS], &[("grants", "configured")]).send(light());
    for (name, all) in [("requests", &real), ("configured", &configured), ("replay", &replayed)] {
        println!("{name}: median {} µs, longest {} µs", median(all.clone()), all.iter().max().unwrap());
    }
    let (real, replayed) = (median(real), median(replayed));
    assert!((14_000..20_000).contains(&real) && replayed < 3_000, "{real} and {replayed} µs");
}

/// Parts of the rate: the mean of the fading is 1, its coefficient of variation the given one; a blockage of mean 1 s each 9 s leaves
/// 10 % of the time at 5 %; handovers of 40 ms each second stop 1 of 26 slots.
#[test]
fn channel_has_its_statistics() {
    let parts = |given: &[(&str, Value)]| -> Vec<f64> {
        let entry = SERVERS.iter().find(|entry| entry.name == "nr").unwrap();
        let mut channel = Channel::new(&Values::new(entry.parameters, given), RandomStreams::new(3).stream("channel"));
        (0..2_000_000).map(|n| channel.part(ms(10 * n))).collect()
    };
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    let second = |s: f64| Value::Time(TimeDelta::from_secs_f64(s));
    let fading = parts(&[("fading", Value::Number(0.6)), ("fading_time", second(0.2))]);
    let squares: Vec<f64> = fading.iter().map(|part| part * part).collect();
    let cv = (mean(&squares) / (mean(&fading) * mean(&fading)) - 1.0).sqrt();
    assert!((mean(&fading) - 1.0).abs() < 0.02 && (cv - 0.6).abs() < 0.02, "{} {cv}", mean(&fading));
    let blocked = parts(&[("blockage_interval", second(9.0)), ("blockage_time", second(1.0))]);
    let share = blocked.iter().filter(|part| **part < 0.5).count() as f64 / blocked.len() as f64;
    assert!((share - 0.1).abs() < 0.01 && blocked.contains(&0.05), "{share}");
    let handovers = parts(&[("handover_interval", second(1.0))]);
    assert!((1.0 - mean(&handovers) - 0.04 / 1.04).abs() < 0.002, "{}", mean(&handovers));
}
