// SPDX-License-Identifier: MIT OR Apache-2.0
//! The transfers of the workload: when the next connection begins, how much it sends, and when new data stops.
//!
//! Owns the workload, its random numbers, and the begin and size of the current transfer.

use super::TcpSenderEvent;
use crate::flow::tcp::workload::{Bursts, Workload, draw_pause, draw_transfer_size};
use paceline_units::{DataSize, RandomStream, Time};

#[derive(Debug)]
pub(super) struct Transfers {
    workload: Workload,
    /// The times of [`Workload::Bursts`].
    bursts: Option<Bursts>,
    random: RandomStream,
    /// The time at which the next connection begins; [`Time::MAX`] if never.
    next_start: Time,
    /// The time at which the workload stops sending new data.
    stop: Time,
    /// The time at which the connection began, and its bytes of data.
    began: Time,
    total: u64,
    /// Bytes that the program has written, for a sender without a workload.
    written: Option<u64>,
}

impl Transfers {
    pub fn new(workload: Workload, start: Time, mut random: RandomStream) -> Self {
        let next_start = workload.first_connection(start, &mut random);
        Self { workload, bursts: None, random, next_start, stop: Time::MAX, began: start, total: 0, written: None }
    }

    pub fn set_bursts(&mut self, bursts: Bursts) {
        self.bursts = Some(bursts);
    }

    pub fn next_start(&self) -> Time {
        self.next_start
    }

    /// Adds data that the program writes.
    pub fn write(&mut self, bytes: u64) {
        self.written = Some(self.written.unwrap_or_default() + bytes);
    }

    /// Returns whether new data may be sent after the first `sent` bytes.
    pub fn allows_new_data(&self, now: Time, sent: u64) -> bool {
        now < self.stop && self.written.is_none_or(|written| sent < written)
    }

    /// Begins the next connection. Returns its bytes of data.
    pub fn begin(&mut self, now: Time) -> u64 {
        (self.began, self.next_start, self.total) = (now, Time::MAX, u64::MAX);
        match self.workload {
            Workload::Bulk => {}
            Workload::OnOff { on, off } => {
                self.stop = now + on;
                self.next_start = self.stop + off;
            }
            Workload::Short { size, .. } | Workload::Bursts { size, .. } => {
                self.total = draw_transfer_size(&mut self.random, size).as_bytes()
            }
        }
        self.total
    }

    /// Ends the transfer and schedules the next one.
    pub fn finish(&mut self, now: Time) -> TcpSenderEvent {
        match (self.workload, &mut self.bursts) {
            (Workload::Short { pause, .. }, _) => self.next_start = now + draw_pause(&mut self.random, pause),
            (Workload::Bursts { pause, .. }, Some(bursts)) => self.next_start = bursts.after(now, pause),
            _ => {}
        }
        TcpSenderEvent::TransferDone { size: DataSize::from_bytes(self.total), took: now - self.began }
    }
}
