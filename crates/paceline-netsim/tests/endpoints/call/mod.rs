// SPDX-License-Identifier: MIT OR Apache-2.0
//! Test calls between a media sender and a media receiver.

mod application_limit;
mod damaged_input;
mod delivery;
mod fec;
mod harness;
mod network_changes;
mod outages;
mod packet_reports;
mod packet_size;
mod probes;
mod receive_half_messages;
mod rfc8888;
mod robustness;
mod rtcp;
mod streams;
mod transport_feedback;

use harness::{FPS, RenderedFrame};
use paceline::PacketKind;
use paceline_netsim::flow::DatagramKind;
use paceline_units::{Rate, Time, TimeDelta};

const fn kbps(kbps: u64) -> Rate {
    Rate::from_kbps(kbps)
}
const fn ms(ms: i64) -> TimeDelta {
    TimeDelta::from_millis(ms)
}
fn is_kind(kind: PacketKind) -> impl Fn(&DatagramKind) -> bool {
    move |sent| matches!(sent, DatagramKind::Rtp { kind: k, .. } if *k == kind)
}
fn any_media(sent: &DatagramKind) -> bool {
    matches!(sent, DatagramKind::Rtp { .. })
}
/// Number of a video frame, computed from its RTP timestamp.
fn frame_number(rendered: &RenderedFrame) -> u64 {
    (rendered.timestamp as f64 * FPS / 90_000.0).round() as u64
}
/// Time from capture until the frame was rendered.
fn frame_delay(rendered: &RenderedFrame) -> TimeDelta {
    rendered.at - Time::from_secs_f64(frame_number(rendered) as f64 / FPS)
}
fn assert_within(value: f64, low: f64, high: f64, what: &str) {
    assert!((low..=high).contains(&value), "{what}: {value}, expected {low} to {high}");
}
