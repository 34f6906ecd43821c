// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order in which the receiver wrote its reports.

use core::cmp::Ordering;

/// The order key of a report block: how many packets had been sent up to the highest sequence number it names, then the
/// last sender report that the receiver had seen (LSR) and the delay since (DLSR).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReportOrder {
    pub sent: u64,
    pub last_sr: u32,
    pub delay: u32,
}

impl ReportOrder {
    /// Returns whether this report was written after `other`.
    pub fn is_after(&self, other: &Self) -> bool {
        // LSR is the middle of an NTP timestamp: it wraps every 18 hours, and zero means that there is none.
        let later = self.last_sr.wrapping_sub(other.last_sr) as i32;
        match self.sent.cmp(&other.sent) {
            Ordering::Equal if self.last_sr == other.last_sr => self.delay > other.delay,
            Ordering::Equal => other.last_sr == 0 || (self.last_sr != 0 && later > 0),
            order => order.is_gt(),
        }
    }
}

/// The content of a compound's reports, up to the packet that is being read.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ReportStatus {
    /// A block on one of the flow's streams was newer than the last accepted one.
    pub(super) fresh: bool,
    /// A report had blocks on the flow's streams, and none of them was newer.
    pub(super) stale: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_ordered_by_highest_packet_then_sender_report_then_delay() {
        let order = |sent, last_sr, delay| ReportOrder { sent, last_sr, delay };
        let ordered = [
            ReportOrder::default(),
            order(1, 0, 0),
            order(5, 0, 0), // before the first sender report arrived
            order(5, 0xFFFF_0000, 0),
            order(5, 0xFFFF_0000, 700),
            order(5, 3, 100), // LSR wrapped after 18 hours
            order(6, 2, 0),   // sender reports were reordered
            order(7, 0, 0),
        ];
        for (i, earlier) in ordered.iter().enumerate() {
            for (j, later) in ordered.iter().enumerate() {
                assert_eq!(later.is_after(earlier), j > i, "{later:?} after {earlier:?}");
            }
        }
    }
}
