//! The parts, each alone: receive half, bare heap, RTP headers, link. Allocations are counted.

use divan::counter::ItemsCount;
use divan::{AllocProfiler, Bencher};
use paceline::Registry;
use paceline_benches::{BareHeap, ReceiveLoop};
use paceline_netsim::link::queue::QueueLimit;
use paceline_netsim::link::{Capacity, Descriptor, HopPlan, Link, Schedule};
use paceline_units::{DataSize, Dscp, Ecn, FlowId, RandomStreams, Rate, Time, TimeDelta};
use paceline_wire::{AbsSendTime, ExtensionIds, RtpHeader};

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

const BATCH: u64 = 1000;

/// No line about allocations under it: none are made.
#[divan::bench]
fn receive_half_steady(bencher: Bencher) {
    let mut receiver = ReceiveLoop::new(&Registry::standard());
    (0..10_000).for_each(|_| receiver.step());
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| (0..BATCH).for_each(|_| receiver.step()));
}

/// From nothing to a steady state: `max alloc` is the size of the half.
#[divan::bench]
fn receive_half_from_new(bencher: Bencher) {
    let registry = Registry::standard();
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        let mut receiver = ReceiveLoop::new(&registry);
        (0..BATCH).for_each(|_| receiver.step());
        receiver
    });
}

#[divan::bench(args = [4, 16, 64, 1024])]
fn bare_heap(bencher: Bencher, pending: usize) {
    let mut heap = BareHeap::new(pending);
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| (0..BATCH).for_each(|_| heap.step()));
}

fn header(number: u16) -> RtpHeader {
    RtpHeader {
        marker: number % 4 == 3,
        payload_type: 96,
        sequence: number,
        timestamp: number as u32 / 4 * 3000,
        ssrc: 0x1234_5678,
        abs_send_time: Some(AbsSendTime::from_time(Time::from_millis(number as i64 * 8))),
        transport_sequence: Some(number),
        padding: false,
    }
}

#[divan::bench]
fn rtp_header_write(bencher: Bencher) {
    let (ids, mut buffer) = (ExtensionIds::default(), [0; 256]);
    let headers: Vec<RtpHeader> = (0..BATCH as u16).map(header).collect();
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        for header in &headers {
            divan::black_box(header).write(&ids, divan::black_box(&mut buffer));
        }
    });
}

#[divan::bench]
fn rtp_header_parse(bencher: Bencher) {
    let (ids, mut buffer) = (ExtensionIds::default(), [0; 256]);
    let len = header(7).write(&ids, &mut buffer);
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        for _ in 0..BATCH {
            let bytes = divan::black_box(&buffer[..len]);
            divan::black_box(RtpHeader::parse(bytes, &ids)).expect("it was just written");
        }
    });
}

/// A packet into a link that is just too slow for them, and out again.
#[divan::bench]
fn link(bencher: Bencher) {
    let hop = HopPlan {
        capacity: Some(Capacity::constant(Rate::from_kbps(2400))),
        delay: Schedule::constant(TimeDelta::from_millis(25)),
        ..HopPlan::new("bench", QueueLimit::DrainTime(TimeDelta::from_millis(300)))
    };
    let mut link = Link::new(hop, &RandomStreams::new(1));
    let mut now = Time::ZERO;
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        for id in 0..BATCH as u32 {
            now += TimeDelta::from_millis(4);
            let packet = Descriptor {
                id,
                flow: FlowId(0),
                size: DataSize::from_bytes(1250),
                ecn: Ecn::NotEct,
                dscp: Dscp::DEFAULT,
            };
            link.handle_packet(now, packet);
            while let Some(output) = link.poll_output(now) {
                divan::black_box(output);
            }
        }
    });
}
