//! Tests of the public interface: properties that hold for every registered controller, and published numbers.

mod allocations;
mod conformance;
mod constants;
mod network_changes;
mod over_use;
mod scream_v2_cpp;
mod sender;
mod snapshots;
mod vectors;

use paceline::{Arrival, MediaKind, PacketKind};
use paceline_units::{DataSize, Ecn, StreamId, Time};

/// An arriving video packet of stream 0 with its send time; RTP timestamp and sequence number are 0.
fn video_packet(sent: Time, size: DataSize) -> Arrival {
    Arrival {
        sent: Some(sent),
        timestamp: 0,
        sequence: 0,
        stream: StreamId(0),
        media: MediaKind::Video,
        kind: PacketKind::Media,
        size,
        ecn: Ecn::NotEct,
    }
}
