// SPDX-License-Identifier: MIT OR Apache-2.0
//! In steady state a controller does not allocate, and its state is small.

use paceline::{
    AppMessage, Arrival, Event, Feedback, Message, NadaMode, NadaReport, Outgoing, PacketKind, PacketReport,
    ReceiverReport, Registry, RoundTrip, SendHalf, SentPacket, Setup, Signals, StreamState,
};
use paceline_units::{DataSize, Fraction, Rate, RemoteTime, StreamId, Time, TimeDelta};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

/// The system allocator with counters. An allocator cannot be written in safe Rust.
struct CountingAllocator;

// SAFETY: every call goes to the system allocator unchanged.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|n| n.set(n.get() + 1));
        BYTES.with(|n| n.set(n.get() + layout.size()));
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const SETUP: Setup = Setup::new(Rate::from_kbps(300), Rate::from_kbps(50), Rate::from_kbps(2000));
const WARM_UP: u64 = 1000;
const PACKETS: u64 = 100_000;

#[test]
fn counter_counts_allocations() {
    let before = (ALLOCATIONS.get(), BYTES.get());
    drop(std::hint::black_box(vec![1u8; 77]));
    assert!(ALLOCATIONS.get() > before.0 && BYTES.get() >= before.1 + 77);
}

#[test]
fn receive_halves_do_not_allocate_and_are_small() {
    for entry in Registry::standard().iter() {
        let Some(mut half) = entry.build(&SETUP, &[]).unwrap().receive else { continue };
        assert!(size_of_val(&*half) < 4096, "{}: {} bytes", entry.name(), size_of_val(&*half));
        let mut signals = Signals::disabled();
        let (mut before, mut messages) = (0, 0);
        for n in 0..WARM_UP + PACKETS {
            if n == WARM_UP {
                before = ALLOCATIONS.get();
            }
            // Frames of four packets each 33 ms. The queuing delay is a sawtooth, so that every state is reached.
            let (frame, part) = ((n / 4) as i64, (n % 4) as i64);
            let sent = Time::from_millis(frame * 33 + part * 2);
            let queue = TimeDelta::from_micros(500 * (frame % 120 - 60).abs());
            let now = RemoteTime::from_millis(70_000 + frame * 33 + part * 2) + queue;
            let (timestamp, sequence) = ((frame * 2970) as u32, n as u16);
            let arrival = Arrival::new(timestamp, sequence, DataSize::from_bytes(1200)).with_sent(Some(sent));
            half.handle_arrival(now, &arrival, &mut signals);
            if half.poll_timeout().is_some_and(|due| due <= now) {
                half.handle_timeout(now, &mut signals);
            }
            messages += u64::from(half.poll_message(now).is_some());
        }
        assert_eq!(ALLOCATIONS.get() - before, 0, "{}", entry.name());
        // 101,000 packets are 833 s and 25,250 frames of two groups each: from one message per second to one per group.
        // GCC of 2013 sends REMBs for decreases alone.
        let least = if entry.name() == "gcc-2013" { 20 } else { 700 };
        assert!((least..50_600).contains(&messages), "{}: {messages} messages", entry.name());
    }
}

/// Includes the guard.
#[test]
fn controllers_are_small() {
    let registry = Registry::standard();
    for entry in registry.iter() {
        let before = BYTES.get();
        let pair = entry.build(&SETUP, &[]).unwrap();
        let (bytes, halves) =
            (BYTES.get() - before, usize::from(pair.send.is_some()) + usize::from(pair.receive.is_some()));
        assert!((1..4096 * halves).contains(&bytes), "{}: {bytes} bytes", entry.name());
    }
}

#[test]
fn send_halves_do_not_allocate() {
    for entry in Registry::standard().iter() {
        let Some(mut half) = entry.build(&SETUP, &[]).unwrap().send else { continue };
        let mut signals = Signals::disabled();
        let mut before = 0;
        for n in 0..WARM_UP + PACKETS {
            if n == WARM_UP {
                before = ALLOCATIONS.get();
            }
            let now = Time::from_millis(n as i64 * 500);
            let fraction_lost = Fraction::from_q8((n % 64) as u8);
            let rtt = RoundTrip::after(None, TimeDelta::from_millis(50));
            half.handle_event(now, &Event::RoundTrip(&rtt), &mut signals);
            let report = ReceiverReport::new(fraction_lost);
            half.handle_event(now, &Event::Report(&report), &mut signals);
            for message in messages(n) {
                half.handle_event(now, &Event::Message(&message), &mut signals);
            }
            assert!(half.decision().target >= SETUP.min);
        }
        assert_eq!(ALLOCATIONS.get() - before, 0, "{}", entry.name());
        send_feedback(entry.name(), &mut *half, &mut signals);
    }
}

/// One message of each kind, with values that form a sawtooth.
fn messages(n: u64) -> [Message; 3] {
    let incoming = Rate::from_kbps(200 + n % 1000);
    let saw = TimeDelta::from_micros(100 * (n as i64 % 80 - 40).abs());
    let gradient = [(saw.as_nanos() / 1000 - 2000) as u32, 33_000, 300, incoming.as_bps() as u32];
    let mode = if n.is_multiple_of(7) { NadaMode::RampUp } else { NadaMode::Gradual };
    [
        Message::Remb(incoming),
        Message::App(AppMessage::new(*b"GCCM", 0, &gradient).unwrap()),
        Message::Nada(NadaReport { mode, signal: saw * 10, incoming }),
    ]
}

/// A packet each 4 ms and feedback on twelve of them each 48 ms, with a loss of 0.1 %, a few reordered packets, and a
/// queuing delay that forms a sawtooth, so that every state is reached.
fn send_feedback(name: &str, half: &mut dyn SendHalf, signals: &mut Signals) {
    const PER_MESSAGE: u64 = 12;
    let mut reports = Vec::new();
    let mut before = 0;
    for n in 0..WARM_UP + PACKETS {
        if n == WARM_UP {
            before = ALLOCATIONS.get();
        }
        let now = Time::from_millis(60_000_000 + n as i64 * 4);
        let size = DataSize::from_bytes(1200);
        if n.is_multiple_of(8) {
            let (stream, queued) = (StreamId(n.is_multiple_of(16) as u8), DataSize::from_bytes(1200 * (n % 3)));
            half.handle_event(now, &Event::Stream(&StreamState::new(stream, queued)), &mut Signals::disabled());
        }
        half.handle_event(now, &Event::Sent(&SentPacket::new(n, size)), &mut Signals::disabled());
        while half.poll_timeout().is_some_and(|due| due <= now) {
            half.handle_event(now, &Event::Timeout, signals);
        }
        let queue = TimeDelta::from_micros(100 * (n as i64 / 12 % 400 - 200).abs());
        let reordered = TimeDelta::from_millis(if n % 1200 == 5 { 9 } else { 0 });
        let arrival = RemoteTime::from_nanos(now.as_nanos()) + TimeDelta::from_secs(777) + queue + reordered;
        reports.push(PacketReport::new(n, now, size, Some(arrival).filter(|_| n % 1000 != 7)));
        if reports.len() as u64 == PER_MESSAGE {
            let flight = DataSize::from_bytes(5000);
            let feedback = Feedback::new(&reports, flight, flight);
            half.handle_event(now + TimeDelta::from_millis(3), &Event::Feedback(&feedback), signals);
            assert!(half.decision().target >= SETUP.min, "{name}");
            reports.clear();
        }
    }
    assert_eq!(ALLOCATIONS.get() - before, 0, "{name}");
}

/// With each controller, in a program that paces and in one whose sender does.
#[test]
fn senders_do_not_allocate() {
    for entry in Registry::standard().iter() {
        run_sender(entry.name(), false);
        run_sender(entry.name(), true);
    }
}

/// A frame of three packets each 16 ms, and reports on them each 48 ms, with a loss of 0.1 %, reordered packets, and a queuing delay
/// that forms a sawtooth. The history keeps 10 s of packets after a loss, so the warm-up has more than that.
fn run_sender(name: &str, paces: bool) {
    const FRAMES: i64 = 30_000;
    const WARM_UP: i64 = 10_000;
    let controller = Registry::standard().build(name, &SETUP).unwrap();
    let (mut sender, _) = controller.endpoints::<()>(&SETUP);
    sender.set_paces(paces);
    let (packet, mut sent) = (((), DataSize::from_bytes(300)), Vec::with_capacity(1000));
    let mut before = 0;
    for frame in 0..FRAMES {
        if frame == WARM_UP {
            before = ALLOCATIONS.get();
        }
        let (start, end) = (Time::from_millis(16 * frame), Time::from_millis(16 * (frame + 1)));
        if paces {
            let _ = sender.push_video(start, false, [packet; 3]);
            while let Some(due) = sender.poll_timeout().filter(|due| *due < end) {
                let now = due.max(start);
                sender.handle_timeout(now);
                while let Some(packet) = sender.poll_transmit(now) {
                    sent.push((packet.head.number, now));
                }
            }
        } else {
            for _ in 0..3 {
                let packet = Outgoing::new(packet.1, StreamId(0), PacketKind::Media);
                sent.push((sender.handle_sent(start, &packet), start));
            }
            while sender.poll_timeout().is_some_and(|due| due <= start) {
                sender.handle_timeout(start);
            }
        }
        if frame % 3 == 2 {
            let queue = TimeDelta::from_micros(100 * (frame / 3 % 400 - 200).abs());
            let report = |&(number, at): &(u64, Time)| {
                let reordered = TimeDelta::from_millis(if number % 1200 == 5 { 9 } else { 0 });
                let arrival = RemoteTime::from_nanos(at.as_nanos()) + TimeDelta::from_secs(777) + queue + reordered;
                (number, Some(arrival).filter(|_| number % 1000 != 7), None)
            };
            sender.handle_reports(end, sent.iter().map(report));
            sender.handle_rtt(end, queue + TimeDelta::from_millis(40));
            sender.handle_loss(end, Fraction::from_q8((frame / 3 % 8) as u8));
            sent.clear();
        }
        while sender.poll_event().is_some() {}
        while sender.poll_probe().is_some() {}
    }
    assert_eq!(ALLOCATIONS.get() - before, 0, "{name}, paces: {paces}");
}
