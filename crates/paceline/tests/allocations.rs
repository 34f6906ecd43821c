//! In steady state a controller allocates nothing, and its state is small.

// An allocator cannot be written in safe Rust; this one only counts and hands on.
#![allow(unsafe_code)]

use paceline::{Arrival, PacketKind, ReceiverReport, Registry, Setup, Signals};
use paceline_units::{DataSize, Ecn, Fraction, Rate, RemoteTime, StreamId, Time, TimeDelta};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|n| n.set(n.get() + 1));
        // SAFETY: the caller's promise is ours.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is ours.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const SETUP: Setup = Setup { start: Rate::from_kbps(300), min: Rate::from_kbps(50), max: Rate::from_kbps(2000) };
const WARM_UP: u64 = 1000;
const PACKETS: u64 = 100_000;

#[test]
fn the_counter_counts() {
    let before = ALLOCATIONS.get();
    drop(std::hint::black_box(vec![1u8]));
    assert!(ALLOCATIONS.get() > before);
}

#[test]
fn receive_halves_allocate_nothing_and_are_small() {
    for entry in Registry::standard().iter() {
        let Some(mut half) = entry.build(&SETUP, &[]).unwrap().receive else { continue };
        assert!(size_of_val(&*half) < 4096, "{}: {} bytes", entry.name(), size_of_val(&*half));
        let mut signals = Signals::unheard();
        let (mut before, mut told) = (0, 0);
        for n in 0..WARM_UP + PACKETS {
            if n == WARM_UP {
                before = ALLOCATIONS.get();
            }
            // Frames of four packets each 33 ms; the queuing delay saws up and down, so that every state is visited.
            let (frame, part) = ((n / 4) as i64, (n % 4) as i64);
            let sent = Time::from_millis(frame * 33 + part * 2);
            let queue = TimeDelta::from_micros(500 * (frame % 120 - 60).abs());
            let now = RemoteTime::from_millis(70_000 + frame * 33 + part * 2) + queue;
            let arrival = Arrival {
                sent: Some(sent),
                timestamp: (frame * 2970) as u32,
                sequence: n as u16,
                stream: StreamId(0),
                media: paceline::MediaKind::Video,
                kind: PacketKind::Media,
                size: DataSize::from_bytes(1200),
                ecn: Ecn::NotEct,
            };
            half.handle_arrival(now, &arrival, &mut signals);
            if half.poll_timeout() <= now {
                half.handle_timeout(now, &mut signals);
            }
            told += u64::from(half.poll_message(now).is_some());
        }
        assert_eq!(ALLOCATIONS.get() - before, 0, "{}", entry.name());
        // 101,000 packets are 833 s: a message a second, and more for falls.
        assert!((700..10_000).contains(&told), "{}: {told} messages", entry.name());
    }
}

#[test]
fn send_halves_allocate_nothing() {
    for entry in Registry::standard().iter() {
        let Some(mut half) = entry.build(&SETUP, &[]).unwrap().send else { continue };
        assert!(size_of_val(&*half) < 4096, "{}", entry.name());
        let mut signals = Signals::unheard();
        let mut before = 0;
        for n in 0..WARM_UP + PACKETS {
            if n == WARM_UP {
                before = ALLOCATIONS.get();
            }
            let now = Time::from_millis(n as i64 * 500);
            let fraction_lost = Fraction::from_q8((n % 64) as u8);
            let report = ReceiverReport { fraction_lost, rtt: Some(TimeDelta::from_millis(50)) };
            half.handle_report(now, &report, &mut signals);
            half.handle_remb(now, Rate::from_kbps(200 + n % 1000), &mut signals);
            assert!(half.decision().target >= SETUP.min);
        }
        assert_eq!(ALLOCATIONS.get() - before, 0, "{}", entry.name());
    }
}
