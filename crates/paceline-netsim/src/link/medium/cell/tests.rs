// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vectors by hand, and what a light and a heavy sender see.

use super::super::build_media;
use super::*;
use crate::link::queue::{Descriptor, QueueLimit, testing};
use crate::link::server::{SERVERS, ServerPlan};
use crate::link::{Capacity, CapacityEnd, HopPlan, Output, Schedule};
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
        let service = built(given, texts).unwrap();
        Self::of(ServerPlan { service, ..ServerPlan::default() }, Capacity::constant(Rate::from_kbps(8000)))
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

/// In an outage of the capacity and behind a queue that drops, packets wait or are lost, and the rest leaves.
#[test]
fn outages_and_changes_of_the_capacity_are_followed() {
    let rates = Schedule::new(
        vec![(Time::ZERO, 8000), (ms(100), 0), (ms(600), 4000)]
            .into_iter()
            .map(|(at, kbps)| (at, Rate::from_kbps(kbps)))
            .collect(),
    );
    let capacity = Capacity::rates(rates.unwrap(), CapacityEnd::Hold).unwrap();
    let server = ServerPlan { service: built(&[], &[]).unwrap(), ..ServerPlan::default() };
    let mut path = Path::of(server, capacity);
    path.send((0..400).map(|n| ms(2 * n)));
    let gap = path.left.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
    assert!((490.0..560.0).contains(&gap.as_millis_f64()), "{gap}");
    // 400 packets of 10 kbit: 0.8 Mbit in the first 100 ms, less a request, and 3.2 Mbit at 4 Mbit/s.
    let last = (*path.left.last().unwrap() - Time::ZERO).as_secs_f64();
    assert!((1.4..1.7).contains(&last), "{last}");
}

/// With 10 %, the mean delay of a block is 5 ms · (0.1 + 0.01 + 0.001) + 40 ms · 0.0001, and little more: 0.56 ms.
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
        // 6 kbit/s are 0.47 bytes in a slot of the downlink.
        for (kbps, packets) in [(8000, 8000), (6, 6)] {
            let service = built(&[], texts).unwrap();
            let server = ServerPlan { service, ..ServerPlan::default() };
            let mut path = Path::of(server, Capacity::constant(Rate::from_kbps(kbps)));
            path.send((0..packets).map(|n| Time::from_nanos(n * 100_000)));
            let seconds = (*path.left.last().unwrap() - Time::ZERO).as_secs_f64();
            assert!(
                (seconds - 10.0).abs() < 0.05,
                "{texts:?}: {packets} packets of 10 kbit took {seconds} s at {kbps} kbit/s"
            );
        }
    }
}

fn median(mut all: Vec<i64>) -> i64 {
    all.sort_unstable();
    all[all.len() / 2]
}

/// What a saturating sender recorded says nothing of the delay of a light one. A packet each 47 ms waits for a request (0 to 10 ms), two grants of
/// 4 ms and their slots: 13 to 24 ms. On a replay of the departures of a saturated run the same packets wait for one slot, less than 5 ms.
#[test]
fn light_sender_waits_for_grants_unlike_on_a_replay() {
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
    let longest = [&real, &configured, &replayed].map(|all| *all.iter().max().unwrap());
    let medians = [real, configured, replayed].map(median);
    // The table of `docs/explanation/radio.md`; the longest of the replay is the first request of the heavy sender.
    assert_eq!((medians, longest), ([15_000, 1500, 1000], [19_000, 2500, 10_000]));
}

fn channel(given: &[(&str, Value)]) -> Channel {
    let entry = SERVERS.iter().find(|entry| entry.name == "nr").unwrap();
    Channel::new(&Values::new(entry.parameters, given), &RandomStreams::new(3), "cell")
}

/// A sender that uses every slot and one that uses each fiftieth see the same channel.
#[test]
fn channel_does_not_depend_on_the_slots_that_are_used() {
    let second = Value::Time(TimeDelta::from_secs(1));
    let given = [("fading", Value::Number(1.0)), ("blockage_interval", second), ("handover_interval", second)];
    let parts = |step: usize| -> Vec<f64> {
        let mut channel = channel(&given);
        (0..20_000).step_by(step).map(|n| channel.part(ms(n))).collect()
    };
    let all = parts(1);
    assert_eq!(parts(50), all.iter().copied().step_by(50).collect::<Vec<_>>());
    assert!(all.contains(&0.0) && all.iter().any(|part| *part > 1.0));
}

/// Parts of the rate: the mean of the fading is 1, its coefficient of variation the given one; a blockage of mean 1 s each 9 s leaves
/// 10 % of the time at 5 %; handovers of 40 ms each second stop 1 of 26 slots.
#[test]
fn channel_has_its_statistics() {
    let parts = |given: &[(&str, Value)]| -> Vec<f64> {
        let mut channel = channel(given);
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

fn built(
    given: &[(&str, Value)],
    texts: &[(&'static str, &str)],
) -> Result<crate::link::server::Service, &'static str> {
    let entry = SERVERS.iter().find(|entry| entry.name == "nr").unwrap();
    let texts = texts.iter().map(|(key, text)| (*key, (*text).to_owned())).collect();
    (entry.build)(&Values::new(entry.parameters, given).with_texts(texts)).map_err(|error| error.parameter)
}

#[test]
fn values_without_a_meaning_are_refused() {
    assert_eq!(built(&[("block_error", percent(91.0))], &[]), Err("block_error"));
    for (key, text) in [
        ("pattern", "DDDS"),
        ("pattern", "U"),
        ("pattern", "DXU"),
        ("pattern", ""),
        ("grants", "none"),
        ("direction", "left"),
    ] {
        assert_eq!(built(&[], &[(key, text)]), Err(key), "{text}");
    }
    let time = |nanos| Value::Time(TimeDelta::from_nanos(nanos));
    assert_eq!(built(&[("handover_interval", time(9_999_999))], &[]), Err("handover_interval"));
    assert!(
        built(&[("block_error", percent(90.0)), ("handover_interval", time(10_000_000))], &[("pattern", "SU")]).is_ok()
    );
}
