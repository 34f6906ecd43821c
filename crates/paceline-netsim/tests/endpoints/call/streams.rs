// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several streams in one flow.

use crate::call::harness::{CallConfig, TestCall, fixed, stream, video, video_source};
use crate::call::{any_media, assert_within, kbps};
use paceline::{Controller, Decision, Event, PacketKind, SendHalf, Signals, StreamState};
use paceline_netsim::flow::source::{Audio, AudioConfig};
use paceline_netsim::flow::{DatagramKind, MediaKind, StreamConfig};
use paceline_units::{Rate, StreamId, Time};

#[test]
fn two_streams_share_the_target() {
    let rates = |streams, target| {
        let mut config = CallConfig::new(fixed(target), kbps(2000));
        config.streams = streams;
        let call = TestCall::run(config, 40);
        let of = |id| {
            let media = DatagramKind::Rtp { stream: StreamId(id), kind: PacketKind::Media };
            let of_stream = move |sent: &DatagramKind| *sent == media;
            call.sent_bps(of_stream, Time::from_secs(5), Time::from_secs(40))
        };
        (of(0), of(1), call.sent_bps(any_media, Time::from_secs(5), Time::from_secs(40)))
    };
    let audio = || stream(1, MediaKind::Audio, Box::new(Audio::new(AudioConfig::default(), Time::ZERO).unwrap()));
    for target in [kbps(150), kbps(1000)] {
        let (video_rate, audio_rate, all) = rates(vec![video(0, kbps(2000)), audio()], target);
        // 50 bytes each 20 ms, with 28 + 24 bytes of headers.
        assert_within(audio_rate, 40e3, 41e3, "audio");
        let left = target.as_bps_f64() - 40.8e3;
        assert_within(video_rate, 0.96 * left, 1.01 * left, "video");
        assert_within(all, 0.97 * target.as_bps_f64(), 1.03 * target.as_bps_f64(), "all");
    }
    let mut first = video(0, kbps(2000));
    first.priority = 2.0;
    let (a, b, all) = rates(vec![first, video(1, kbps(2000))], kbps(1200));
    // The minima are 40 kbps with headers; the rest is shared by priority: 40 + 2/3 and 40 + 1/3 of 1120.
    assert_within(a / b, 1.75, 1.95, "two to one above the minima");
    assert_within(all, 0.97 * 1.2e6, 1.03 * 1.2e6, "all");
}

/// A half that divides the target itself: the stream with the highest priority gets its maximum, the others their
/// minimum.
#[derive(Clone, Debug)]
struct DividingHalf(Vec<StreamState>);

impl SendHalf for DividingHalf {
    fn handle_event(&mut self, _: Time, event: &Event<'_>, _: &mut Signals) {
        if let Event::Stream(stream) = *event {
            self.handle_stream(stream);
        }
    }

    fn decision(&self) -> Decision {
        Decision::new(kbps(3000))
    }

    fn stream_rate(&self, stream: StreamId) -> Option<Rate> {
        let heaviest = self.0.iter().map(|known| known.priority).fold(0.0, f64::max);
        let known = self.0.iter().find(|known| known.stream == stream);
        Some(known.map_or(kbps(100), |known| if known.priority == heaviest { known.max } else { known.min }))
    }
}

impl DividingHalf {
    fn handle_stream(&mut self, stream: &StreamState) {
        self.0.retain(|known| known.stream != stream.stream);
        self.0.push(*stream);
    }
}

#[test]
fn a_send_half_can_divide_the_target() {
    let divides = Controller::from_sender(DividingHalf(Vec::new()));
    let mut config = CallConfig::new(divides, kbps(300));
    config.streams = vec![video(0, kbps(2000)), video(1, kbps(600))];
    config.streams[1].priority = 1.5;
    let call = TestCall::run(config, 20);
    let of = |id| {
        let of_stream =
            move |s: &DatagramKind| matches!(s, DatagramKind::Rtp { stream, .. } if *stream == StreamId(id));
        call.sent_bps(of_stream, Time::from_secs(5), Time::from_secs(20))
    };
    // 30 and 600 kbit/s of media, with headers: about a third and 5 %.
    assert_within(of(0), 40e3, 50e3, "minimum");
    assert_within(of(1), 615e3, 645e3, "maximum");
}

/// Of each stream, media sent between two times, kbit/s.
fn media_kbps(call: &TestCall, id: u8, from: i64, to: i64) -> f64 {
    let media = DatagramKind::Rtp { stream: StreamId(id), kind: PacketKind::Media };
    call.sent_bps(move |sent| *sent == media, Time::from_secs(from), Time::from_secs(to)) / 1e3
}

#[test]
fn a_stream_pauses_resumes_and_is_muted_while_another_continues() {
    let mut config = CallConfig::new(fixed(kbps(1000)), kbps(2000));
    config.streams = vec![video(0, kbps(2000)), video(1, kbps(2000))];
    let mut call = TestCall::new(config);
    call.run_secs(5);
    assert!(call.sender.set_stream_max(call.now, StreamId(1), Rate::ZERO));
    call.run_secs(10);
    assert!(call.sender.set_stream_max(call.now, StreamId(1), kbps(200)));
    call.run_secs(15);
    assert!(call.sender.set_stream_muted(call.now, StreamId(0), true));
    call.run_secs(20);
    assert!(call.sender.set_stream_muted(call.now, StreamId(0), false));
    call.run_secs(25);
    assert!(!call.sender.set_stream_max(call.now, StreamId(9), kbps(200)), "there is no such stream");
    let rates = |from, to| [0, 1].map(|id| media_kbps(&call, id, from, to));
    let [first, second] = rates(1, 5);
    assert_within(first, 470.0, 510.0, "half of the target");
    assert_within(second, 470.0, 510.0, "half of the target");
    let [first, second] = rates(6, 10);
    assert_within(first, 950.0, 1010.0, "all of it");
    assert_within(second, 0.0, 0.0, "in the pause");
    let [first, second] = rates(11, 15);
    assert_within(first, 730.0, 800.0, "the rest");
    assert_within(second, 195.0, 220.0, "the maximum, with headers");
    // 30 kbit/s of media, with headers a third more.
    let [first, second] = rates(16, 20);
    assert_within(first, 35.0, 50.0, "muted");
    assert_within(second, 195.0, 220.0, "its limits stay, and so does the share of the other");
    assert_within(rates(21, 25)[0], 730.0, 800.0, "as before");
    assert_eq!(call.sender_rejected(), 0);
}

/// Three layers of 30 to 150, 150 to 500 and 600 to 2500 kbit/s: each needs its minimum after the maxima before it.
#[test]
fn layers_of_simulcast_pause_while_the_target_does_not_cover_them() {
    let sent = |target: u64| {
        let mut config = CallConfig::new(fixed(kbps(target)), kbps(2000));
        let layer = |id, min, max| StreamConfig {
            suspends: id > 0,
            priority: [100.0, 10.0, 1.0][usize::from(id)],
            ..video_source(id, 30.0, kbps(min), kbps(max), kbps(min))
        };
        config.streams = vec![layer(0, 30, 150), layer(1, 150, 500), layer(2, 600, 2500)];
        let call = TestCall::run(config, 20);
        [0, 1, 2].map(|id| media_kbps(&call, id, 5, 20))
    };
    for (target, expected) in [
        (200, [(150.0, 195.0), (0.0, 0.0), (0.0, 0.0)]),
        (500, [(150.0, 195.0), (260.0, 350.0), (0.0, 0.0)]),
        (1200, [(150.0, 195.0), (500.0, 550.0), (0.0, 0.0)]),
        (2000, [(150.0, 195.0), (500.0, 550.0), (1200.0, 1400.0)]),
    ] {
        let sent = sent(target);
        for (sent, (low, high)) in sent.into_iter().zip(expected) {
            assert_within(sent, low, high, &format!("at {target} kbit/s"));
        }
    }
}
