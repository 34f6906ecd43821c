// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads and writes RTP headers and RTCP compounds.
//!
//! This crate contains formats and no algorithms. It reads no clock and allocates nothing while it reads or writes. It
//! never panics on bytes from the network: for malformed bytes it returns a [`WireError`], whose kinds can be counted.
//!
//! ```
//! use paceline_wire::{CompoundWriter, ReportBlock, Rtcp, parse_compound};
//! let mut buffer = [0; 1200];
//! let mut compound = CompoundWriter::new(&mut buffer);
//! compound.receiver_report(1, &[ReportBlock { ssrc: 2, fraction_lost: 26, ..ReportBlock::default() }])?;
//! compound.remb(1, "2.5 Mbps".parse()?, &[2])?;
//! let len = compound.finish();
//!
//! for packet in parse_compound(&buffer[..len])? {
//!     match packet {
//!         Rtcp::ReceiverReport { mut blocks, .. } => assert_eq!(blocks.next().unwrap().fraction_lost, 26),
//!         Rtcp::Remb { rate, .. } => assert_eq!(rate.as_bps(), 2_500_000),
//!         _ => unreachable!(),
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
#[macro_use]
extern crate std;

mod app;
mod bytes;
mod ccfb;
mod compound_writer;
mod error;
mod keyframe;
mod nack;
pub mod ntp;
mod reception;
pub mod red;
mod remb;
mod report;
mod rtcp;
mod rtp;
pub mod rtx;
mod sdes;
mod sequence;
mod twcc;
pub mod ulpfec;
mod vp8;
mod xr;

pub use app::NadaFeedback;
pub use ccfb::{ArrivalOffset, CongestionBlock, CongestionBlocks, CongestionFeedback, Reception, Receptions};
pub use compound_writer::CompoundWriter;
pub use error::{WireError, WriteError};
pub use keyframe::FirEntries;
pub use nack::LostPackets;
pub use reception::ReceptionStats;
pub use remb::lower_rembs;
pub use report::{ReportBlock, ReportBlocks};
pub use rtcp::{Compound, Rtcp, RtcpPackets, Ssrcs, parse_compound};
pub use rtp::{AbsSendTime, ExtensionIds, RtpHeader, clear_stamps, is_rtcp, padding_len};
pub use sdes::{SdesChunk, SdesChunks};
pub use sequence::{FIRST_CYCLE, unwrap_after};
pub use twcc::{PacketStatuses, TWCC_TICK, TransportFeedback, unwrap_ticks};
pub use vp8::Vp8Descriptor;
pub use xr::{DelayEntries, DelayEntry, XrBlock, XrBlocks};
