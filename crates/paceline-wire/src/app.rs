//! Application-defined packets (APP; RFC 3550, section 6.7): a subtype, a name of four characters, and 32-bit words of data.
//! This crate reads two names, both with subtype 0. It returns the data of other names unchanged.
//!
//! `NADA` carries the feedback of RFC 8698, section 5.3, whose 48 bits two words hold:
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! |m|      x_curr, 0.1 ms         |           reserved            |
//! |                       r_recv, bit/s                           |
//! ```
//!
//! `m` is the mode (`rmode`: 0 accelerated ramp-up, 1 gradual update). The reserved bits are written as zero and ignored.
//!
//! `GCCM` carries the measurements of a receiver whose sender computes the estimate: the inter-group delay variation and the
//! incoming rate:
//!
//! ```text
//! |       d_m = (t_i - t_{i-1}) - (T_i - T_{i-1}), signed, us     |
//! |       T_i - T_{i-1}, us                                       |
//! |       L_i - L_{i-1}, signed, bytes                            |
//! |       R, bit/s; 0 while it is unknown                         |
//! ```
//!
//! Neither contains a time, so a receiver writes them after a report. A value outside the range of its field is written as
//! the nearest value in range.

use crate::bytes::{be16, be32, put};
use crate::compound_writer::{APPLICATION, CompoundWriter};
use crate::{WireError, WriteError};
use paceline_units::{Rate, TimeDelta};

const NADA: [u8; 4] = *b"NADA";
const NADA_LEN: usize = 8;
const STEP: [u8; 4] = *b"GCCM";
const STEP_LEN: usize = 16;

/// The unit of `x_curr`.
const SIGNAL_UNIT: TimeDelta = TimeDelta::from_micros(100);
const GRADUAL: u16 = 0x8000;

/// The feedback of a NADA receiver (RFC 8698, section 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NadaFeedback {
    /// `rmode`: true for gradual rate update, false for accelerated ramp-up.
    pub gradual: bool,
    /// `x_curr`, the composite congestion signal: 0 to 3.2767 s.
    pub signal: TimeDelta,
    /// `r_recv`, the receiving rate.
    pub rate: Rate,
}

/// The difference between two successive groups of packets, measured by a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupStep {
    /// `d_m`, the inter-group delay variation: arrival spacing minus departure spacing.
    pub gradient: TimeDelta,
    /// `T_i - T_{i-1}`, the departure spacing.
    pub departure: TimeDelta,
    /// `L_i - L_{i-1}`, the difference of the group sizes in bytes.
    pub size: i32,
    /// `R`, the receiving rate; zero while it is unknown.
    pub rate: Rate,
}

/// The data of an APP packet whose name this crate reads.
pub(crate) enum AppMessage {
    Nada(NadaFeedback),
    GroupStep(GroupStep),
}

/// Reads the data of an APP packet; `None` for another name. `subtype` is the five-bit field that other packet types use as a
/// count.
pub(crate) fn read(subtype: u8, name: [u8; 4], data: &[u8]) -> Result<Option<AppMessage>, WireError> {
    match (subtype, name) {
        (0, NADA) => {
            let b: &[u8; NADA_LEN] = data.try_into().map_err(|_| WireError::AppLength)?;
            let first = be16(b, 0);
            let signal = SIGNAL_UNIT * i64::from(first & !GRADUAL);
            let feedback = NadaFeedback { gradual: first & GRADUAL != 0, signal, rate: rate(be32(b, 4)) };
            Ok(Some(AppMessage::Nada(feedback)))
        }
        (0, STEP) => {
            let b: &[u8; STEP_LEN] = data.try_into().map_err(|_| WireError::AppLength)?;
            let step = GroupStep {
                gradient: TimeDelta::from_micros((be32(b, 0) as i32).into()),
                departure: TimeDelta::from_micros(be32(b, 4).into()),
                size: be32(b, 8) as i32,
                rate: rate(be32(b, 12)),
            };
            Ok(Some(AppMessage::GroupStep(step)))
        }
        _ => Ok(None),
    }
}

impl CompoundWriter<'_> {
    /// Writes an APP packet of this name and subtype, whose lower five bits count, with these words of data.
    pub fn app(&mut self, ssrc: u32, subtype: u8, name: [u8; 4], words: &[u32]) -> Result<(), WriteError> {
        let data = self.application(ssrc, subtype & 0x1F, name, 4 * words.len())?;
        for (index, word) in words.iter().enumerate() {
            put(data, 4 * index, word.to_be_bytes());
        }
        Ok(())
    }

    /// Writes NADA feedback.
    pub fn nada(&mut self, ssrc: u32, feedback: &NadaFeedback) -> Result<(), WriteError> {
        let data = self.application(ssrc, 0, NADA, NADA_LEN)?;
        let signal = in_units(feedback.signal, SIGNAL_UNIT).clamp(0, i64::from(!GRADUAL)) as u16;
        put(data, 0, (signal | if feedback.gradual { GRADUAL } else { 0 }).to_be_bytes());
        put(data, 2, [0; 2]);
        put(data, 4, bps(feedback.rate).to_be_bytes());
        Ok(())
    }

    /// Writes the difference between two groups of packets.
    pub fn group_step(&mut self, ssrc: u32, step: &GroupStep) -> Result<(), WriteError> {
        const MICROSECOND: TimeDelta = TimeDelta::from_micros(1);
        let gradient = in_units(step.gradient, MICROSECOND).clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        let departure = in_units(step.departure, MICROSECOND).clamp(0, u32::MAX.into()) as u32;
        let data = self.application(ssrc, 0, STEP, STEP_LEN)?;
        put(data, 0, gradient.to_be_bytes());
        put(data, 4, departure.to_be_bytes());
        put(data, 8, step.size.to_be_bytes());
        put(data, 12, bps(step.rate).to_be_bytes());
        Ok(())
    }

    /// Writes SSRC and name. Returns the data, which the caller fills.
    fn application(&mut self, ssrc: u32, subtype: u8, name: [u8; 4], len: usize) -> Result<&mut [u8], WriteError> {
        let (head, data) = self.packet(APPLICATION, subtype, 8 + len)?.split_at_mut(8);
        put(head, 0, ssrc.to_be_bytes());
        put(head, 4, name);
        Ok(data)
    }
}

/// Rounds to the nearest unit, halves up.
fn in_units(span: TimeDelta, unit: TimeDelta) -> i64 {
    (span + unit / 2).as_nanos().div_euclid(unit.as_nanos())
}

fn rate(bps: u32) -> Rate {
    Rate::from_bps(bps.into())
}

fn bps(rate: Rate) -> u32 {
    rate.as_bps().try_into().unwrap_or(u32::MAX)
}
