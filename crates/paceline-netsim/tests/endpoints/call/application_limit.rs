// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the send half learns about the sources: frames, unused rate, and whether the application limits the flow.

use crate::call::harness::{CallConfig, FPS, Log, RecordingHalf, TestCall, stream, video_source};
use crate::call::{assert_within, kbps};
use paceline::{Controller, Decision, PacketKind, Setup, StreamState, Window};
use paceline_netsim::flow::source::{Frame, Ideal, Source, VideoConfig};
use paceline_netsim::flow::{MediaKind, StreamConfig};
use paceline_units::{DataSize, Rate, Time};
use std::sync::{Arc, Mutex};

/// A call of 10 s with a source of up to `max`.
fn run(max: Rate, decision: Decision) -> Log {
    run_stream(video_to(max), decision)
}

fn run_stream(stream: StreamConfig, decision: Decision) -> Log {
    let (mut call, log) = call(stream, decision);
    call.run_secs(10);
    Log::take(&log)
}

#[test]
fn every_frame_is_reported_with_the_size_of_its_packets() {
    let log = run(kbps(900), Decision::new(kbps(1000)));
    let sizes: u64 = log.frames.iter().map(|frame| frame.size.as_bytes()).sum();
    let packets: u32 = log.frames.iter().map(|frame| frame.packets).sum();
    assert_within(log.frames.len() as f64, 10.0 * FPS - 1.0, 10.0 * FPS + 1.0, "frames");
    assert!(log.frames[0].key && log.frames.iter().filter(|frame| frame.key).count() == 1);
    // The packets of the last frame may not have left yet.
    let sent: u64 = log.sent.iter().map(|(_, packet)| packet.size.as_bytes()).sum();
    let last = log.frames[log.frames.len() - 1];
    assert!((sizes - last.size.as_bytes()..=sizes).contains(&sent), "{sent} of {sizes} bytes");
    assert!((packets - last.packets..=packets).contains(&(log.sent.len() as u32)));
    assert!(log.sent.iter().all(|(_, packet)| packet.kind == PacketKind::Media));
}

/// A source that produces half of its target.
struct HalfSource(Ideal);

impl Source for HalfSource {
    fn set_target(&mut self, now: Time, target: Rate) {
        self.0.set_target(now, target.scale(0.5));
    }
    fn poll_frame(&mut self, now: Time) -> Option<Frame> {
        self.0.poll_frame(now)
    }
    fn poll_timeout(&self) -> Option<Time> {
        self.0.poll_timeout()
    }
    fn range(&self) -> (Rate, Rate) {
        self.0.range()
    }
}

/// A source that follows its target leaves nothing, also if its maximum is below the target of the flow. One that
/// produces half of its target leaves the other half.
#[test]
fn unused_rate_is_what_the_source_left() {
    for max in [kbps(500), kbps(1500)] {
        let log = run(max, Decision::new(kbps(1000)));
        assert!(log.streams.iter().all(|stream| stream.unused < kbps(20)), "{:?}", log.streams.last());
    }
    let source = VideoConfig { fps: FPS, min: kbps(30), max: kbps(2000), start: kbps(500) };
    let source = HalfSource(Ideal::new(source, Time::ZERO).unwrap());
    let log = run_stream(stream(0, MediaKind::Video, Box::new(source)), Decision::new(kbps(1000)));
    for StreamState { unused, .. } in &log.streams[30..] {
        assert_within(unused.as_bps_f64(), 480e3, 520e3, "unused rate, bit/s");
    }
    assert!(log.streams[..10].iter().all(|stream| stream.unused == Rate::ZERO), "before the first window ends");
}

#[test]
fn application_limit_begins_with_a_slow_source_and_not_with_a_fast_one() {
    let log = run(kbps(500), Decision::new(kbps(1000)));
    assert!(
        matches!(log.application_limits[..], [(at, true)] if at > Time::ZERO && at < Time::from_secs(3)),
        "{:?}",
        log.application_limits
    );
    let log = run(kbps(2000), Decision::new(kbps(1000)));
    assert_eq!(log.application_limits, []);
}

/// Almost nothing leaves, but the application is not the reason.
#[test]
fn flow_with_a_backlog_is_not_limited_by_its_application() {
    let slow = Decision::new(kbps(1000)).with_pacing(kbps(300));
    let log = run(kbps(2000), slow);
    assert_eq!(log.application_limits, []);
    let closed = Window::Outstanding(DataSize::from_bytes(1));
    assert_eq!(run(kbps(2000), slow.with_window(Some(closed))).application_limits, []);
}

/// A call with this stream.
fn call(stream: StreamConfig, decision: Decision) -> (TestCall, Arc<Mutex<Log>>) {
    let (half, log) = RecordingHalf::new(decision);
    let mut config = CallConfig::new(Controller::from_sender(half), kbps(2000));
    config.streams = vec![stream];
    (TestCall::new(config), log)
}

/// A video stream of up to `max`.
fn video_to(max: Rate) -> StreamConfig {
    video_source(0, FPS, kbps(30), max, max)
}

/// On a new route the limit is unknown, until a new window shows it.
#[test]
fn application_limit_begins_again_after_a_route_change() {
    let (mut call, log) = call(video_to(kbps(500)), Decision::new(kbps(1000)));
    call.run_secs(5);
    assert!(call.sender.is_application_limited());
    let before = log.lock().unwrap().application_limits.len();
    call.sender.handle_route_change(call.now, &Setup::new(kbps(1000), kbps(50), kbps(2000)));
    assert!(!call.sender.is_application_limited());
    call.run_secs(10);
    let at = Time::from_secs(5);
    let limits = &log.lock().unwrap().application_limits[before..];
    assert!(matches!(limits, [(end, false), (begin, true)] if *end == at && *begin > at), "{limits:?}");
}

/// While there is no network nothing is sent, but the application is not the reason.
#[test]
fn flow_without_a_network_is_not_limited_by_its_application() {
    let (mut call, log) = call(video_to(kbps(2000)), Decision::new(kbps(1000)));
    for (end, available) in [(5, false), (15, true), (20, false), (20, true)] {
        call.run_secs(end);
        call.sender.set_available(call.now, available);
    }
    call.run_secs(25);
    assert_eq!(log.lock().unwrap().application_limits, []);
}
