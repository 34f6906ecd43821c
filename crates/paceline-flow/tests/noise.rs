//! Endpoints and bytes that nobody meant: no panic, no loop without end, everything counted or harmless.

use paceline::{FecScheme, FeedbackKind, Protection, Registry, ResendRule, Setup, Signals};
use paceline_flow::source::{Ideal, IdealConfig, Source};
use paceline_flow::{
    Datagram, MediaKind, MediaReceiver, MediaSender, ReceiverConfig, RtcpTiming, SenderConfig, StreamConfig,
    StreamNames,
};
use paceline_units::{DataSize, Ecn, Rate, RemoteTime, StreamId, Streams, Time, TimeDelta};
use proptest::prelude::*;

const RTCP: RtcpTiming = RtcpTiming { min_interval: TimeDelta::from_secs(1), session: Rate::from_kbps(1000) };
const NAMES: StreamNames =
    StreamNames { id: StreamId(0), kind: MediaKind::Video, ssrc: 1, rtx_ssrc: 2, clock_rate: 90_000 };

fn endpoints(fec: FecScheme, feedback: FeedbackKind) -> (MediaSender, MediaReceiver) {
    let kbps = Rate::from_kbps;
    let setup = Setup { start: kbps(300), min: kbps(50), max: kbps(1000) };
    let registry = Registry::standard();
    let mut controller = registry.get("gcc-2016").unwrap().build(&setup, &[]).unwrap();
    controller.feedback = feedback;
    let config = IdealConfig { fps: 30.0, min: kbps(50), max: kbps(1000), start: kbps(300) };
    let source: Box<dyn Source> = Box::new(Ideal::new(config, Time::ZERO).unwrap());
    let stream = StreamConfig { names: NAMES, source, priority: 1.0, first_sequence: 65_500, timestamp_offset: 9 };
    let receiver = ReceiverConfig {
        extensions: Default::default(),
        streams: vec![NAMES],
        start: RemoteTime::ZERO,
        ssrc: 7,
        rtcp: RTCP,
        nack: true,
    };
    let sender = SenderConfig {
        extensions: Default::default(),
        streams: vec![stream],
        start: Time::ZERO,
        rtcp: RTCP,
        pacer_limit: TimeDelta::from_secs(2),
        retransmit: true,
        protection: Protection { fec, resend: ResendRule::RoundTrip },
        ntp_origin: 3_900_000_000_000_000_000,
    };
    let random = Streams::new(1);
    (
        MediaSender::new(sender, &mut controller, random.stream("s"), Signals::heard()),
        MediaReceiver::new(receiver, &mut controller, random.stream("r"), Signals::heard()),
    )
}

fn fec() -> impl Strategy<Value = FecScheme> {
    prop_oneof![Just(FecScheme::None), Just(FecScheme::Ulpfec)]
}

fn feedback() -> impl Strategy<Value = FeedbackKind> {
    let (interval, longest) = (TimeDelta::from_millis(50), TimeDelta::from_millis(50));
    prop_oneof![
        Just(FeedbackKind::TransportWide { interval, longest }),
        Just(FeedbackKind::Rfc8888 { interval, longest }),
    ]
}

/// What happens to a datagram on the way: bytes changed, cut short, dropped or repeated.
#[derive(Clone, Debug)]
struct Harm {
    changes: Vec<(usize, u8)>,
    cut: Option<usize>,
    copies: u8,
    then: TimeDelta,
}

fn harm() -> impl Strategy<Value = Harm> {
    let changes = prop_oneof![4 => Just(Vec::new()), 1 => proptest::collection::vec((0usize..80, any::<u8>()), 1..4)];
    let cut = prop_oneof![8 => Just(None), 1 => (0usize..60).prop_map(Some)];
    let then = prop_oneof![20 => Just(0i64), 1 => 0i64..100_000_000, 1 => 0i64..100_000_000_000];
    (changes, cut, prop_oneof![1 => Just(0u8), 9 => Just(1), 1 => Just(2)], then)
        .prop_map(|(changes, cut, copies, then)| Harm { changes, cut, copies, then: TimeDelta::from_nanos(then) })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_datagrams_are_survived(harms in proptest::collection::vec(harm(), 50..400), fec in fec(), feedback in feedback()) {
        let (mut sender, mut receiver) = endpoints(fec, feedback);
        let mut now = Time::ZERO;
        let mut out = Datagram::new();
        let mut harms = harms.into_iter();
        'call: loop {
            let reading = RemoteTime::from_nanos(now.as_nanos() + 777);
            let mut there: Vec<(Vec<u8>, DataSize)> = Vec::new();
            let mut back: Vec<Vec<u8>> = Vec::new();
            sender.handle_timeout(now);
            while sender.poll_transmit(now, &mut out).is_some() {
                there.push((out.bytes().to_vec(), out.size()));
                prop_assert!(there.len() < 10_000, "a burst without end");
            }
            for (mut bytes, size) in there {
                let Some(harm) = harms.next() else { break 'call };
                damage(&mut bytes, &harm);
                for _ in 0..harm.copies {
                    receiver.handle_packet(reading, &bytes, size, Ecn::NotEct);
                }
                now += harm.then;
            }
            receiver.handle_timeout(reading);
            while receiver.poll_transmit(reading, &mut out) {
                back.push(out.bytes().to_vec());
                prop_assert!(back.len() < 10_000, "a burst without end");
            }
            for mut bytes in back {
                let Some(harm) = harms.next() else { break 'call };
                damage(&mut bytes, &harm);
                for _ in 0..harm.copies {
                    sender.handle_packet(now, &bytes);
                }
            }
            while sender.poll_event().is_some() {}
            while receiver.poll_event().is_some() {}
            let d = sender.decision();
            prop_assert!(d.target >= Rate::from_kbps(50) && d.pacing >= d.target);
            now += TimeDelta::from_millis(2);
        }
    }

    #[test]
    fn random_bytes_are_survived(datagrams in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..100), 1..100), feedback in feedback()) {
        let (mut sender, mut receiver) = endpoints(FecScheme::Ulpfec, feedback);
        for (n, bytes) in datagrams.iter().enumerate() {
            let size = DataSize::from_bytes(bytes.len() as u64 + 28);
            sender.handle_packet(Time::from_millis(n as i64), bytes);
            receiver.handle_packet(RemoteTime::from_millis(n as i64), bytes, size, Ecn::NotEct);
        }
        let before = *sender.decision();
        prop_assert_eq!(before.target, Rate::from_kbps(300));
    }
}

fn damage(bytes: &mut Vec<u8>, harm: &Harm) {
    for &(at, value) in &harm.changes {
        if let Some(byte) = bytes.get_mut(at) {
            *byte = value;
        }
    }
    if let Some(len) = harm.cut {
        bytes.truncate(len);
    }
}
