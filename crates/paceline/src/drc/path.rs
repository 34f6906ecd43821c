// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one feedback message shows of the path.

use super::DrcConfig;
use crate::blocks::{BaseDelayConfig, QueueDelay, RecentMinimum};
use crate::{Feedback, PacketReport};
use paceline_units::{Ecn, RemoteTime, Time, TimeDelta};

/// The base delay and the round-trip time are the least of the last minute: routes change, and clocks drift.
const BASE: BaseDelayConfig = BaseDelayConfig { history: 10, span: TimeDelta::from_secs(6) };

/// What a message contains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Report {
    /// Packets that arrived.
    pub(super) arrived: u32,
    /// The bits that arrived.
    pub(super) bits: u64,
    /// Packets that arrived, of those sent since `counted`.
    pub(super) counted: u32,
    /// Packets that were lost, of those sent since `counted`.
    pub(super) lost: u32,
    /// Packets that arrived with a mark.
    pub(super) marked: u32,
}

/// The delays of the path.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    base: QueueDelay,
    round_trips: RecentMinimum,
    /// The least queuing delay of the last message.
    least: TimeDelta,
    /// The queue: the lesser of the least delays of the last two messages, so that one late message is none.
    pub(super) queue: TimeDelta,
    /// The mean queue that the flow's own packets do not explain: a message's last packet meets what the one before met, and what was sent
    /// since then, at the delivery rate, less the time since then.
    pub(super) jitter: TimeDelta,
    /// When the last packet of the last message was sent, and the queue that it met.
    last: Option<(Time, TimeDelta)>,
    /// The least time of the last minute from the sending of a packet to the message that reports it.
    pub(super) rtt: TimeDelta,
    /// The smoothed time.
    pub(super) srtt: TimeDelta,
    /// The times of the first message, and of the last arrival that it reports.
    origin: Option<(Time, RemoteTime)>,
    /// The least age of a message: the time since the last arrival that it reports, relative to that of the first one.
    ages: RecentMinimum,
    /// How late the last message is: its age over the least of the last minute. It is what the way back and the receiver add.
    pub(super) late: TimeDelta,
}

impl Delays {
    pub(super) fn new() -> Self {
        let zero = TimeDelta::ZERO;
        Self {
            base: QueueDelay::new(BASE),
            round_trips: RecentMinimum::new(BASE),
            least: zero,
            queue: zero,
            jitter: zero,
            last: None,
            rtt: TimeDelta::MAX,
            srtt: zero,
            origin: None,
            ages: RecentMinimum::new(BASE),
            late: zero,
        }
    }

    /// Handles the packets of a message, at a delivery rate in bit/s. Losses of packets that were sent before `counted` do not count. Each
    /// packet that arrived goes to `each` as well, with the queue that it met.
    pub(super) fn handle(
        &mut self,
        now: Time,
        feedback: &Feedback<'_>,
        counted: Time,
        delivered: f64,
        config: &DrcConfig,
        mut each: impl FnMut(&PacketReport, TimeDelta),
    ) -> Report {
        let last = feedback.packets.iter().filter_map(|packet| packet.arrival).max();
        let mut report = Report { arrived: 0, bits: 0, counted: 0, lost: 0, marked: 0 };
        let (mut least, mut newest) = (TimeDelta::MAX, None);
        for packet in feedback.packets {
            let (Some(arrival), Some(last)) = (packet.arrival, last) else {
                report.lost += u32::from(packet.sent >= counted);
                continue;
            };
            report.arrived += 1;
            report.counted += u32::from(packet.sent >= counted);
            report.marked += u32::from(packet.ecn == Some(Ecn::Ce));
            let queue = self.base.update(now, packet.sent, arrival);
            each(packet, queue);
            report.bits += packet.size.as_bits();
            newest = Some((packet.sent, queue));
            if last - arrival <= config.delivery {
                least = least.min(queue);
            }
            let rtt = now - packet.sent;
            self.rtt = self.round_trips.update(now, rtt);
            self.srtt =
                if self.srtt == TimeDelta::ZERO { rtt } else { self.srtt + (rtt - self.srtt).scale(config.gain) };
        }
        if let Some(last) = last {
            let (now_0, last_0) = *self.origin.get_or_insert((now, last));
            let age = (now - now_0) - (last - last_0);
            self.late = age - self.ages.update(now, age);
        }
        if report.arrived > 0 {
            if let (Some((sent, before)), Some((now, queue))) = (self.last, newest) {
                // In a longer time, the queue of others changes more.
                let share = (config.feedback.as_secs_f64() / (now - sent).as_secs_f64().max(1e-3)).min(1.0);
                let own = before.as_secs_f64() + report.bits as f64 / delivered.max(1.0) - (now - sent).as_secs_f64();
                let jitter = (queue.as_secs_f64() - own.max(0.0)).max(0.0);
                let jitter = TimeDelta::from_secs_f64(jitter * share).min(config.drain);
                self.jitter += (jitter - self.jitter).scale(config.gain);
            }
            self.last = newest;
            self.queue = least.min(self.least);
            self.least = least;
        }
        report
    }
}
