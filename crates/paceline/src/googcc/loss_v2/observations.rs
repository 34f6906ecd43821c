// SPDX-License-Identifier: MIT OR Apache-2.0
//! Observations: the packets of at least 250 ms each, and the loss ratio over all of them.

use super::LossV2;
use super::config::OBSERVATIONS_MAX;
use crate::PacketReport;
use crate::blocks::units::{floor_sent, rate_of};
use alloc::vec::Vec;
use paceline_units::{DataSize, Rate, Time, TimeDelta, round_to_u64};

/// The observations of most and of least loss do not count once there are more than this (`loss_based_bwe_v2.cc`).
const TRIM_ABOVE: u64 = 3;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Observation {
    pub number: u64,
    /// The packets that were lost, those that arrived, and all, or their kilobytes.
    pub lost: f64,
    pub received: f64,
    pub all: f64,
    pub size: DataSize,
    pub lost_size: DataSize,
    pub rate: Rate,
}

/// The observation that is not complete yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Partial {
    pub packets: u32,
    pub size: DataSize,
    /// Lost packets in order of their numbers, with sizes.
    pub lost: Vec<(u64, u64)>,
}

impl LossV2 {
    /// Adds the packets to the current observation. Returns the last send time if that completes it
    /// (`PushBackObservation`).
    pub(super) fn observe(&mut self, packets: &[PacketReport], clock: TimeDelta) -> Option<Time> {
        let first = packets.first()?;
        let (mut earliest, mut latest) = (first.sent, first.sent);
        let mut bytes = DataSize::ZERO;
        for packet in packets {
            self.partial.count(packet);
            bytes += packet.size;
            earliest = earliest.min(packet.sent);
            latest = latest.max(packet.sent);
        }
        self.partial.packets += packets.len() as u32;
        self.partial.size += bytes;
        let (earliest, latest) = (floor_sent(earliest, clock), floor_sent(latest, clock));
        let duration = latest - *self.last_sent.get_or_insert(earliest);
        if !duration.is_positive() || duration < self.config.observation {
            return None;
        }
        self.last_sent = Some(latest);
        self.complete(duration);
        Some(latest)
    }

    fn complete(&mut self, duration: TimeDelta) {
        let rate = rate_of(self.partial.size, duration);
        let smoothing = self.config.sending_smoothing;
        let rate = match self.newest().filter(|_| smoothing > 0.0) {
            Some(newest) => newest.rate.scale(smoothing) + rate.scale(1.0 - smoothing),
            None => rate,
        };
        let (packets, lost) = (f64::from(self.partial.packets), self.partial.lost.len() as f64);
        let lost_size = DataSize::from_bytes(self.partial.lost.iter().map(|(_, bytes)| bytes).sum());
        let (number, size) = (self.count, self.partial.size);
        let kilobytes = |size: DataSize| size.as_bytes() as f64 / 1e3;
        let [lost, received, all] = match self.config.counts_bytes {
            true => [lost_size, size.saturating_sub(lost_size), size].map(kilobytes),
            false => [lost, packets - lost, packets],
        };
        let observation = Observation { number, lost, received, all, size, lost_size, rate };
        let Partial { packets, size, lost } = &mut self.partial;
        (*packets, *size) = (0, DataSize::ZERO);
        lost.clear();
        let index = (self.count % self.config.observations as u64) as usize;
        match self.observations.get_mut(index) {
            Some(oldest) => *oldest = observation,
            None => {
                self.observations.reserve_exact(self.config.observations - self.observations.len());
                self.observations.push(observation);
            }
        }
        self.count += 1;
        self.average_loss = if self.config.counts_bytes { self.byte_loss() } else { self.packet_loss() };
        self.upper = match self.average_loss - self.config.upper_offset {
            above if above > 0.0 => Rate::from_bps_f64(self.config.upper_balance.as_bps_f64() / above),
            _ => self.bounds.1,
        };
    }

    fn newest(&self) -> Option<&Observation> {
        let newest = self.count.checked_sub(1)?;
        self.observations.get((newest % self.config.observations as u64) as usize)
    }

    /// Returns the weights of an observation: in the objective, and in the average loss.
    pub(super) fn weight(&self, observation: &Observation) -> (f64, f64) {
        self.weights[(self.count - 1 - observation.number) as usize]
    }

    /// Returns the average loss ratio of packets (`CalculateAverageReportedPacketLossRatio`).
    pub(super) fn packet_loss(&self) -> f64 {
        let (mut packets, mut lost) = (0.0, 0.0);
        for observation in &self.observations {
            let weight = self.weight(observation).1;
            packets += weight * observation.all;
            lost += weight * observation.lost;
        }
        lost / packets
    }

    /// Returns the average loss ratio of bytes without the observations of most and of least loss
    /// (`CalculateAverageReportedByteLossRatio`). They count if the one of most loss was sent at a much higher rate than the
    /// others: then the loss is no accident.
    pub(super) fn byte_loss(&self) -> f64 {
        let (mut total, mut lost) = (0, 0);
        // Ratio, weighted lost bytes, weighted bytes.
        let (mut least, mut most) = ((1.0, 0, 0), (0.0, 0, 0));
        let mut rate_of_most = Rate::ZERO;
        for observation in &self.observations {
            let weight = self.weight(observation).1;
            let (bytes, lost_bytes) = (observation.size.as_bytes() as f64, observation.lost_size.as_bytes() as f64);
            let weighted = (round_to_u64(weight * lost_bytes), round_to_u64(weight * bytes));
            lost += weighted.0;
            total += weighted.1;
            let ratio = if bytes > 0.0 { lost_bytes / bytes } else { 0.0 };
            if self.count > TRIM_ABOVE && ratio > most.0 {
                most = (ratio, weighted.0, weighted.1);
                rate_of_most = observation.rate;
            }
            if self.count > TRIM_ABOVE && ratio < least.0 {
                least = (ratio, weighted.0, weighted.1);
            }
        }
        if total == 0 {
            return 0.0;
        }
        let excess = self.median_rate().scale(self.config.median_factor) <= rate_of_most;
        if excess || total == most.2 + least.2 {
            return lost as f64 / total as f64;
        }
        // If one observation is both, it is subtracted twice.
        let (lost, total) = (lost as f64 - (most.1 + least.1) as f64, total as f64 - (most.2 + least.2) as f64);
        lost / total
    }

    /// Returns the median sending rate of the observations with a rate (`GetMedianSendingRate`).
    fn median_rate(&self) -> Rate {
        let mut rates = [0; OBSERVATIONS_MAX];
        let mut n = 0;
        for observation in self.observations.iter().filter(|observation| !observation.rate.is_zero()) {
            rates[n] = observation.rate.as_bps();
            n += 1;
        }
        let rates = &mut rates[..n];
        rates.sort_unstable();
        Rate::from_bps(match n {
            0 => 0,
            n if n % 2 == 0 => rates[n / 2 - 1].midpoint(rates[n / 2]),
            n => rates[n / 2],
        })
    }
}

impl Partial {
    /// Counts a packet as lost, or as received after all.
    #[inline]
    pub(super) fn count(&mut self, packet: &PacketReport) {
        let (number, bytes) = (packet.sequence, packet.size.as_bytes());
        if packet.arrival.is_none() {
            match self.lost.last() {
                Some((last, _)) if *last >= number => self.insert(number, bytes),
                _ => self.lost.push((number, bytes)),
            }
        } else if !self.lost.is_empty()
            && let Ok(index) = self.lost.binary_search_by_key(&number, |(number, _)| *number)
        {
            self.lost.remove(index);
        }
    }

    #[cold]
    fn insert(&mut self, number: u64, bytes: u64) {
        if let Err(index) = self.lost.binary_search_by_key(&number, |(number, _)| *number) {
            self.lost.insert(index, (number, bytes));
        }
    }
}
