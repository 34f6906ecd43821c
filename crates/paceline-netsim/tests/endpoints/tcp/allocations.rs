// SPDX-License-Identifier: MIT OR Apache-2.0
//! Neither endpoint of a TCP flow allocates memory in steady state, even with losses.

// An allocator needs unsafe code; this one counts and forwards to the system allocator.
#![allow(unsafe_code)]

use paceline::Signals;
use paceline_netsim::flow::tcp::{CONGESTION, Profile, Segment, TcpConfig, TcpReceiver, TcpSender, Workload};
use paceline_units::{DataSize, RandomStreams, Time, TimeDelta};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::VecDeque;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|n| n.set(n.get() + 1));
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Transmission time of a segment.
const STEP: TimeDelta = TimeDelta::from_micros(100);
/// Delay of thirty transmission times, so that BBR keeps enough in flight.
const DELAY: TimeDelta = TimeDelta::from_millis(3);

/// Runs a flow with random losses. Returns the segments sent and the most bytes in flight.
fn run(config: TcpConfig, steps: u64) -> (u64, u64) {
    let streams = RandomStreams::new(1);
    let mut loss = streams.stream("loss");
    let mut sender = TcpSender::new(config, Workload::Bulk, Time::ZERO, streams.stream("sender"), Signals::disabled());
    let mut receiver = TcpReceiver::new(config);
    let (mut there, mut back) = (VecDeque::<(Time, Segment)>::with_capacity(1000), VecDeque::with_capacity(1000));
    let (mut sent, mut most, mut before) = (0, 0, 0);
    let mut now = Time::ZERO;
    for step in 0..steps {
        if step == steps / 2 {
            before = ALLOCATIONS.get();
        }
        now += STEP;
        if sender.poll_timeout().is_some_and(|due| due <= now) {
            sender.handle_timeout(now);
        }
        while let Some((segment, _)) = sender.poll_transmit(now) {
            sent += 1;
            if !loss.chance(0.002) {
                there.push_back((now + DELAY, segment));
            }
        }
        while sender.poll_event().is_some() {}
        most = most.max(sender.flight().as_bytes());
        if there.front().is_some_and(|(at, _)| *at <= now)
            && let Some((_, segment)) = there.pop_front()
        {
            receiver.handle_segment(now, &segment);
        }
        if receiver.poll_timeout().is_some_and(|due| due <= now) {
            receiver.handle_timeout(now);
        }
        while let Some(ack) = receiver.poll_transmit(now) {
            back.push_back(ack);
        }
        while receiver.poll_event().is_some() {}
        if let Some(ack) = back.pop_front() {
            sender.handle_segment(now, &ack);
        }
    }
    assert_eq!(ALLOCATIONS.get() - before, 0, "{} {}", config.congestion, config.profile.name);
    (sent, most)
}

#[test]
fn nothing_is_allocated_in_steady_state() {
    let before = ALLOCATIONS.get();
    drop(std::hint::black_box(vec![1u8]));
    assert!(ALLOCATIONS.get() > before, "allocations are counted");
    // Prague's window grows slowly at a short round-trip time: it reaches its size only in the second half of the run.
    for (congestion, ..) in CONGESTION.iter().filter(|(name, ..)| *name != "prague") {
        for profile in [Profile::RFC, Profile::LINUX] {
            let receive_window = Some(DataSize::from_bytes(250 * 1448));
            let config = TcpConfig { congestion, profile, receive_window, ..TcpConfig::default() };
            let (sent, most) = run(config, 400_000);
            assert!((200_000..420_000).contains(&sent), "{congestion} {}: {sent}", profile.name);
            assert!((20 * 1448..=250 * 1448).contains(&most), "{congestion} {}: {most}", profile.name);
        }
    }
}
