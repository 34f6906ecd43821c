// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arrivals that the receiver has not reported yet, for reports as values.
//!
//! Reports are contiguous: each begins where the one before ended, so that every packet up to the highest received number is
//! reported once, as arrived or as missing. A packet that arrives after it was reported missing is reported again.

use super::feedback::ReportInterval;
use crate::PacketArrival;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use paceline_units::{DataSize, Ecn, RemoteTime, TimeDelta};

/// The most packets that one report may cover. A number further ahead begins anew, after an outage.
const SPAN_MAX: u64 = 32_768;
/// The number of packets at which a report is sent early.
const REPORT_EARLY: usize = 150;
/// The most late packets that wait for a report.
const LATE_MAX: usize = 1024;
/// The size of a report as libwebrtc estimates it: headers of IP, UDP and SRTP, and 30 bytes.
const REPORT_SIZE: DataSize = DataSize::from_bytes(20 + 8 + 10 + 30);

#[derive(Clone, Debug)]
pub(super) struct ArrivalLog {
    interval: ReportInterval,
    /// The number of `arrivals[0]`; `None` before the first packet.
    base: Option<u64>,
    arrivals: VecDeque<Option<(RemoteTime, Ecn)>>,
    late: Vec<PacketArrival>,
}

impl ArrivalLog {
    pub fn new(interval: TimeDelta, longest: TimeDelta) -> Self {
        let interval = ReportInterval::new(interval, longest);
        Self { interval, base: None, arrivals: VecDeque::new(), late: Vec::new() }
    }

    pub fn handle_packet(&mut self, now: RemoteTime, number: u64, ecn: Ecn, size: DataSize) {
        self.interval.handle_packet(now, size);
        if self.is_empty() {
            self.interval.start(now);
        }
        let base = *self.base.get_or_insert(number);
        match number.checked_sub(base) {
            None if self.late.len() < LATE_MAX => {
                self.late.push(PacketArrival::new(number, Some(now)).with_ecn(ecn));
            }
            None => {}
            Some(ahead) if ahead >= SPAN_MAX => {
                self.arrivals.clear();
                self.arrivals.push_back(Some((now, ecn)));
                self.base = Some(number);
            }
            Some(ahead) => {
                let index = ahead as usize;
                if self.arrivals.len() <= index {
                    self.arrivals.resize(index + 1, None);
                }
                self.arrivals[index].get_or_insert((now, ecn));
            }
        }
        if self.arrivals.len() >= REPORT_EARLY {
            self.interval.expire(now);
        }
    }

    /// Begins anew with the next packet.
    pub fn restart(&mut self) {
        self.arrivals.clear();
        self.base = None;
    }

    /// Returns the packets of the report that is due, by ascending number.
    pub fn poll(&mut self, now: RemoteTime) -> Option<Vec<PacketArrival>> {
        if self.is_empty() || !self.interval.is_due(now) {
            return None;
        }
        let mut packets = core::mem::take(&mut self.late);
        packets.sort_unstable_by_key(|packet| packet.number);
        packets.dedup_by_key(|packet| packet.number);
        let base = self.base.unwrap_or(0);
        let covered = self.arrivals.len() as u64;
        let report = |(number, arrival): (u64, Option<(RemoteTime, Ecn)>)| match arrival {
            Some((at, ecn)) => PacketArrival::new(number, Some(at)).with_ecn(ecn),
            None => PacketArrival::new(number, None),
        };
        packets.extend((base..).zip(self.arrivals.drain(..)).map(report));
        self.base = base.checked_add(covered);
        self.interval.handle_report(now, REPORT_SIZE);
        Some(packets)
    }

    pub fn poll_timeout(&self) -> Option<RemoteTime> {
        self.interval.deadline().filter(|_| !self.is_empty())
    }

    fn is_empty(&self) -> bool {
        self.arrivals.is_empty() && self.late.is_empty()
    }
}
