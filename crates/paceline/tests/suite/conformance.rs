// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties that hold for every registered controller and any input. The registry is the list of tests.

use paceline::{
    AppMessage, Arrival, Controller, Decision, Event, Feedback, Message, NadaMode, NadaReport, PacketKind,
    PacketReport, ReceiverReport, Registry, RoundTrip, SentPacket, Setup, Signals, StreamState, Window,
};
use paceline_units::{DataSize, Ecn, Fraction, Rate, RemoteTime, StreamId, Time, TimeDelta};
use proptest::prelude::*;

/// An input to a controller, and the time since the previous one.
#[derive(Clone, Debug)]
pub struct Step {
    after: TimeDelta,
    input: Input,
}

#[derive(Clone, Debug)]
pub enum Input {
    Report(f64, Option<TimeDelta>),
    Message(Message),
    Sent(u64),
    Feedback(Vec<(i64, u64, Option<i64>)>),
    Stream(u64, u64),
    /// The packets of a frame; most frames are realistic.
    Frame {
        packets: u8,
        size: u64,
        sent: Option<TimeDelta>,
        timestamp: u32,
        stream: u8,
        kind: PacketKind,
        ecn: Ecn,
    },
    Nothing,
}

fn span() -> impl Strategy<Value = TimeDelta> {
    prop_oneof![
        8 => (0i64..50_000_000).prop_map(TimeDelta::from_nanos),
        2 => Just(TimeDelta::ZERO),
        1 => (0i64..5000).prop_map(TimeDelta::from_millis),
        1 => (0i64..86_400).prop_map(TimeDelta::from_secs),
    ]
}

fn rate() -> impl Strategy<Value = Rate> {
    prop_oneof![
        4 => (0u64..10_000_000).prop_map(Rate::from_bps),
        1 => any::<u64>().prop_map(Rate::from_bps),
        1 => prop_oneof![Just(Rate::ZERO), Just(Rate::MAX), Just(Rate::from_bps(1))],
    ]
}

fn ecn() -> impl Strategy<Value = Ecn> {
    prop_oneof![4 => Just(Ecn::NotEct), 1 => Just(Ecn::Ect0), 1 => Just(Ecn::Ect1), 1 => Just(Ecn::Ce)]
}

fn frame() -> impl Strategy<Value = Input> {
    let kind = prop_oneof![9 => Just(PacketKind::Media), 1 => Just(PacketKind::Retransmission), 1 => Just(PacketKind::Fec), 1 => Just(PacketKind::Padding)];
    let size = prop_oneof![8 => 100u64..1300, 1 => Just(0), 1 => Just(65_535)];
    let sent = prop_oneof![
        8 => (0i64..60_000_000).prop_map(|ns| Some(TimeDelta::from_nanos(ns))),
        1 => (-64_000i64..64_000).prop_map(|ms| Some(TimeDelta::from_millis(ms))),
        1 => Just(None),
    ];
    let timestamp = prop_oneof![8 => Just(3000), 1 => Just(0), 1 => any::<u32>()];
    let stream = prop_oneof![4 => Just(0), 1 => any::<u8>()];
    (1u8..12, size, sent, timestamp, stream, kind, ecn()).prop_map(
        |(packets, size, sent, timestamp, stream, kind, ecn)| Input::Frame {
            packets,
            size,
            sent,
            timestamp,
            stream,
            kind,
            ecn,
        },
    )
}

/// Any message that the wire format can express; most are realistic.
fn message() -> impl Strategy<Value = Message> {
    let gradient = prop_oneof![4 => -20_000i64..20_000, 1 => -(1i64 << 31)..1 << 31];
    let departure = prop_oneof![4 => 5_000i64..60_000, 1 => 0i64..1 << 32];
    let size = prop_oneof![4 => -3000i32..3000, 1 => any::<i32>()];
    let gradient = (gradient, departure, size, any::<u32>()).prop_map(|(gradient, departure, size, rate)| {
        let words = [gradient as u32, departure as u32, size as u32, rate];
        Message::App(AppMessage::new(*b"GCCM", 0, &words).unwrap())
    });
    let signal = prop_oneof![4 => 0i64..1000, 1 => 0i64..0x8000];
    let nada = (any::<bool>(), signal, rate()).prop_map(|(gradual, signal, incoming)| {
        let mode = if gradual { NadaMode::Gradual } else { NadaMode::RampUp };
        Message::Nada(NadaReport { mode, signal: TimeDelta::from_micros(100 * signal), incoming })
    });
    prop_oneof![rate().prop_map(Message::Remb), gradient, nada]
}

pub fn step() -> impl Strategy<Value = Step> {
    let report = (0.0..=1.0f64, proptest::option::of(span())).prop_map(|(f, rtt)| Input::Report(f, rtt));
    let packet = (0i64..2_000_000_000, 0u64..70_000, proptest::option::of(any::<i64>()));
    let input = prop_oneof![
        2 => report,
        3 => message().prop_map(Input::Message),
        2 => (0u64..2000).prop_map(Input::Sent),
        2 => proptest::collection::vec(packet, 0..20).prop_map(Input::Feedback),
        1 => (any::<u64>(), any::<u64>()).prop_map(|(queued, unused)| Input::Stream(queued, unused)),
        6 => frame(),
        1 => Just(Input::Nothing),
    ];
    (span(), input).prop_map(|(after, input)| Step { after, input })
}

pub fn setups() -> impl Strategy<Value = Setup> {
    let packet = prop_oneof![1u64..10, 1u64..65_000];
    (0u64..200_000, 0u64..5_000_000, 0u64..10_000_000, packet).prop_map(|(min, over, more, packet)| {
        Setup::new(Rate::from_bps(min + over), Rate::from_bps(min), Rate::from_bps(min + more))
            .with_packet_size(DataSize::from_bytes(packet))
    })
}

/// A controller under test, and a record of its outputs.
pub struct Harness {
    pub controller: Controller,
    pub setup: Setup,
    /// The highest target.
    pub max: Rate,
    pub now: Time,
    pub remote: RemoteTime,
    sent: Time,
    timestamp: u32,
    sequence: u64,
    pub signals: Signals,
    /// Those of the receive half.
    remote_signals: Signals,
    pub outputs: Vec<(Time, Result<Decision, Message>)>,
    /// Index and bits of each emitted signal.
    pub emitted: Vec<(u8, u64)>,
}

impl Harness {
    pub fn new(controller: Controller, setup: Setup) -> Self {
        Self {
            controller,
            setup,
            max: Rate::MAX,
            now: Time::ZERO,
            remote: RemoteTime::from_nanos(987_654_321_987),
            sent: Time::ZERO,
            timestamp: 4_294_960_000,
            sequence: 0,
            signals: Signals::enabled(),
            remote_signals: Signals::enabled(),
            outputs: Vec::new(),
            emitted: Vec::new(),
        }
    }

    /// Returns a harness that accepts only the signals that the controller declares.
    fn checked(entry: &paceline::Entry, setup: Setup) -> Self {
        let (send, receive) = entry.signals();
        let (signals, remote_signals) = (Signals::checked(send), Signals::checked(receive));
        Self { signals, remote_signals, ..Self::new(built(entry, &setup), setup) }
    }

    /// Returns a harness at the same time, with another controller that gets the same packets from now on.
    pub fn branch(&self, controller: Controller) -> Self {
        let Self { setup, max, now, remote, sent, timestamp, sequence, .. } = *self;
        Self { max, now, remote, sent, timestamp, sequence, ..Self::new(controller, setup) }
    }

    pub fn run(&mut self, steps: &[Step]) {
        self.check();
        for step in steps {
            self.now += step.after;
            self.remote += step.after;
            self.timeouts();
            self.step(&step.input);
            self.check();
        }
    }

    fn timeouts(&mut self) {
        let (now, remote) = (self.now, self.remote);
        if let Some(half) = self.controller.send.as_mut().filter(|h| h.poll_timeout().is_some_and(|due| due <= now)) {
            half.handle_event(now, &Event::Timeout, &mut self.signals);
        }
        if let Some(half) =
            self.controller.receive.as_mut().filter(|h| h.poll_timeout().is_some_and(|due| due <= remote))
        {
            half.handle_timeout(remote, &mut self.remote_signals);
        }
        self.check();
        if let Some(half) = &self.controller.receive {
            assert!(half.poll_timeout().is_none_or(|due| due > remote), "handled timeouts are not returned again");
        }
        if let Some(half) = &self.controller.send {
            assert!(half.poll_timeout().is_none_or(|due| due > now), "handled timeouts are not returned again");
        }
    }

    fn step(&mut self, input: &Input) {
        let now = self.now;
        if let Some(half) = &mut self.controller.send {
            match input {
                Input::Report(f, rtt) => {
                    if let Some(sample) = *rtt {
                        half.handle_event(now, &Event::RoundTrip(&RoundTrip::after(None, sample)), &mut self.signals);
                    }
                    let report = ReceiverReport::new(Fraction::new(*f).unwrap());
                    half.handle_event(now, &Event::Report(&report), &mut self.signals);
                }
                Input::Message(message) => half.handle_event(now, &Event::Message(message), &mut self.signals),
                Input::Sent(bytes) => {
                    let (sequence, size) = (self.sequence, DataSize::from_bytes(*bytes));
                    self.sequence += 1;
                    let packet = SentPacket::new(sequence, size);
                    let before = half.decision();
                    half.handle_event(now, &Event::Sent(&packet), &mut Signals::disabled());
                    let is_noticed = half.decides_on_sent() || half.decision() == before;
                    assert!(is_noticed, "the flow would not notice this decision");
                }
                Input::Feedback(packets) => {
                    let report = |(i, (ago, bytes, arrival)): (usize, &(i64, u64, Option<i64>))| {
                        let (sent, size) =
                            (Time::from_nanos((now.as_nanos() - ago).max(0)), DataSize::from_bytes(*bytes));
                        PacketReport::new(i as u64, sent, size, arrival.map(RemoteTime::from_nanos))
                    };
                    let packets: Vec<PacketReport> = packets.iter().enumerate().map(report).collect();
                    let outstanding = DataSize::from_bytes(5000);
                    let feedback = Feedback::new(&packets, outstanding, outstanding);
                    half.handle_event(now, &Event::Feedback(&feedback), &mut self.signals);
                }
                Input::Stream(queued, unused) => {
                    let (queued, unused) = (DataSize::from_bytes(*queued), Rate::from_bps(*unused));
                    let stream = StreamState::new(StreamId(0), queued).with_unused(unused);
                    half.handle_event(now, &Event::Stream(&stream), &mut Signals::disabled());
                }
                Input::Frame { .. } | Input::Nothing => {}
            }
        }
        if let (Some(half), &Input::Frame { packets, size, sent, timestamp, stream, kind, ecn }) =
            (&mut self.controller.receive, input)
        {
            self.timestamp = self.timestamp.wrapping_add(timestamp);
            for i in 0..packets {
                self.sequence += 1;
                self.sent += sent.unwrap_or_default();
                let arrival =
                    Arrival::new(self.timestamp, self.sequence as u16 ^ u16::from(i == 7), DataSize::from_bytes(size))
                        .with_sent(sent.map(|_| self.sent))
                        .with_stream(StreamId(stream))
                        .with_kind(kind)
                        .with_ecn(ecn);
                half.handle_arrival(self.remote, &arrival, &mut self.remote_signals);
            }
        }
    }

    fn check(&mut self) {
        let Setup { min, .. } = self.setup;
        if let Some(half) = &self.controller.send {
            let d = half.decision();
            assert!(d.target >= min, "{} below the minimum {min}", d.target);
            assert!(d.target <= self.max, "{} above the maximum {}", d.target, self.max);
            // With a window the pacing rate may be below the target: the window limits the rate as well.
            let paced = d.pacing >= d.target || (d.window.is_some() && d.pacing > Rate::ZERO);
            assert!(paced, "pacing {} below target {}", d.pacing, d.target);
            assert!(d.padding <= d.target, "padding {} above target {}", d.padding, d.target);
            if let Some(Window::Outstanding(window) | Window::AfterHighest(window)) = d.window {
                assert!(window > DataSize::ZERO, "a window of zero would stop the flow forever");
            }
            self.outputs.push((self.now, Ok(d)));
        }
        if let Some(half) = &mut self.controller.receive {
            let mut messages = 0;
            while let Some(message) = half.poll_message(self.remote) {
                self.outputs.push((self.now, Err(message)));
                messages += 1;
                assert!(messages < 10, "unlimited messages");
            }
        }
        for (signal, value) in self.signals.drain().chain(self.remote_signals.drain()) {
            assert!(value.is_finite(), "signal {signal} is {value}");
            self.emitted.push((signal, value.to_bits()));
        }
    }
}

pub fn built(entry: &paceline::Entry, setup: &Setup) -> Controller {
    entry.build(setup, &[]).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// There is no panic, the bounds hold, and each half emits only the signals that it declares.
    #[test]
    fn same_inputs_give_bit_identical_outputs(setup in setups(), steps in proptest::collection::vec(step(), 1..200)) {
        for entry in Registry::standard().iter() {
            let mut first = Harness::checked(entry, setup);
            first.run(&steps);
            let mut again = Harness::new(built(entry, &setup), setup);
            again.run(&steps);
            prop_assert!(first.outputs == again.outputs && first.emitted == again.emitted, "{}", entry.name());
        }
    }

    /// With every number of the config at one end of its range.
    #[test]
    fn extreme_configs_keep_the_bounds(
        setup in setups(), ends in proptest::collection::vec(0..3u8, 64), steps in proptest::collection::vec(step(), 1..100),
    ) {
        for entry in Registry::standard().iter() {
            let end = |(f, end): (paceline::FieldInfo, &u8)| match end {
                0 => (f.name.to_owned(), f.range.0),
                1 => (f.name.to_owned(), f.range.1),
                _ => (f.name.to_owned(), f.default),
            };
            let changes: Vec<(String, f64)> = entry.fields().into_iter().zip(&ends).map(end).collect();
            let setup = Setup::new(setup.start, setup.min.max(Rate::from_bps(1)), setup.max).with_packet_size(setup.packet_size);
            // `fixed` may be configured to a rate below the flow's minimum.
            let Ok(controller) = entry.build(&setup, &changes) else { continue };
            if entry.name() != "fixed" {
                Harness::new(controller, setup).run(&steps);
            }
        }
    }

    /// mmsys16, section 3.3: `A_r <= 1.5 R` after every frame, except for the flow's minimum, if the bound applies
    /// immediately. With the default, which lowers the rate after a while, `A_r` never grows above the bound.
    #[test]
    fn gcc_2016_rate_is_at_most_1_5_times_the_incoming_rate(
        setup in setups(), steps in proptest::collection::vec((span(), frame()), 1..300),
    ) {
        let registry = Registry::standard();
        let entry = registry.get("gcc-2016").unwrap();
        let signals = entry.signals().1;
        let index = |name: &str| signals.iter().position(|s| s.name == name).unwrap();
        let (incoming, estimate) = (index("R"), index("A_r"));
        let steps: Vec<Step> = steps.into_iter().map(|(after, input)| Step { after, input }).collect();
        for immediate in [true, false] {
            let changes = if immediate { vec![("bound_hold_ms".to_owned(), 0.0)] } else { Vec::new() };
            let mut harness = Harness::new(entry.build(&setup, &changes).unwrap(), setup);
            harness.run(&steps);
            let (mut r, mut before) = (0.0, setup.start.as_bps_f64());
            for &(signal, bits) in &harness.emitted {
                let value = f64::from_bits(bits);
                if signal as usize == incoming {
                    r = value;
                } else if signal as usize == estimate && r > 0.0 {
                    let bound = (1.5 * r).max(setup.min.as_bps_f64()).max(if immediate { 0.0 } else { before });
                    prop_assert!(value <= bound + 1.0, "immediate {immediate}: A_r {value} after {before}, R {r}");
                    before = value;
                }
            }
        }
    }
}

/// A call with a pause of one day.
#[test]
fn controllers_survive_a_day_without_packets() {
    let setup = Setup::new(Rate::from_kbps(300), Rate::from_kbps(50), Rate::from_kbps(2000));
    let second = |after| {
        let frame = Input::Frame {
            packets: 3,
            size: 1200,
            sent: Some(TimeDelta::from_millis(11)),
            timestamp: 3000,
            stream: 0,
            kind: PacketKind::Media,
            ecn: Ecn::NotEct,
        };
        let mut steps = vec![Step { after, input: Input::Report(0.0, Some(TimeDelta::from_millis(50))) }];
        steps.extend((0..30).map(|_| Step { after: TimeDelta::from_millis(33), input: frame.clone() }));
        steps
    };
    for entry in Registry::standard().iter() {
        let mut harness = Harness::new(built(entry, &setup), setup);
        for s in 0..60 {
            let pause = if s == 30 { TimeDelta::from_secs(86_400) } else { TimeDelta::from_millis(10) };
            harness.run(&second(pause));
        }
        let last = harness.outputs.last().unwrap().0;
        assert!(last > Time::from_secs(86_400), "{}", entry.name());
    }
}

/// Every GCC decreases by 10 % for 20 % loss, increases slightly without loss, and is capped by a REMB.
#[test]
fn gcc_follows_loss_and_remb() {
    let setup = Setup::new(Rate::from_kbps(900), Rate::from_kbps(50), Rate::from_kbps(2000));
    for entry in Registry::standard().iter().filter(|e| e.name().starts_with("gcc-")) {
        let after = |fraction_lost: f64| {
            let mut half = built(entry, &setup).send.unwrap();
            let report = ReceiverReport::new(Fraction::new(fraction_lost).unwrap());
            half.handle_event(Time::from_secs(1), &Event::Report(&report), &mut Signals::disabled());
            half.decision().target.as_bps() / 1000
        };
        assert_eq!([after(0.05), after(0.2)], [900, 810], "{}", entry.name());
        assert!((945..=975).contains(&after(0.0)), "{}: {}", entry.name(), after(0.0));
        let mut half = built(entry, &setup).send.unwrap();
        let remb = Message::Remb(Rate::from_kbps(400));
        half.handle_event(Time::from_secs(1), &Event::Message(&remb), &mut Signals::disabled());
        assert_eq!(half.decision().target, Rate::from_kbps(400), "{}", entry.name());
    }
}
