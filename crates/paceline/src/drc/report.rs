//! What one feedback message shows of the path.

use crate::blocks::{BaseDelayConfig, QueueDelay, RecentMinimum};
use crate::{Feedback, PacketReport};
use paceline_units::{Ecn, RemoteTime, Time, TimeDelta};

/// The packets that arrived this long before the last of a message give its queue.
const RECENT: TimeDelta = TimeDelta::from_millis(50);
/// The weight of a sample of the jitter, and of the round-trip time.
const GAIN: f64 = 0.02;
/// The base delay and the round-trip time are the least of the last minute: routes change, and clocks drift.
const BASE: BaseDelayConfig = BaseDelayConfig { history: 10, span: TimeDelta::from_secs(6) };

/// What a message contains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Report {
    /// Packets that arrived.
    pub(super) arrived: u32,
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
    /// The mean change of the queuing delay from message to message. Within a message, delays differ by what the flow's own frames
    /// do, so that larger flows would be allowed a longer queue.
    pub(super) jitter: TimeDelta,
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
    /// Creates the delays of a path without packets.
    pub(super) fn new() -> Self {
        let zero = TimeDelta::ZERO;
        Self {
            base: QueueDelay::new(BASE),
            round_trips: RecentMinimum::new(BASE),
            least: zero,
            queue: zero,
            jitter: zero,
            rtt: TimeDelta::MAX,
            srtt: zero,
            origin: None,
            ages: RecentMinimum::new(BASE),
            late: zero,
        }
    }

    /// Handles the packets of a message that comes `dt` after the one before. Losses of packets that were sent before `counted` do
    /// not count. Each packet goes to `each` as well.
    pub(super) fn handle(
        &mut self,
        now: Time,
        dt: TimeDelta,
        feedback: &Feedback<'_>,
        counted: Time,
        mut each: impl FnMut(&PacketReport),
    ) -> Report {
        let last = feedback.packets.iter().filter_map(|packet| packet.arrival).max();
        let mut report = Report { arrived: 0, lost: 0, marked: 0 };
        let mut least = TimeDelta::MAX;
        for packet in feedback.packets {
            each(packet);
            let (Some(arrival), Some(last)) = (packet.arrival, last) else {
                report.lost += u32::from(packet.sent >= counted);
                continue;
            };
            report.arrived += 1;
            report.marked += u32::from(packet.ecn == Some(Ecn::Ce));
            let queue = self.base.update(now, packet.sent, arrival);
            if last - arrival <= RECENT {
                least = least.min(queue);
            }
            let rtt = now - packet.sent;
            self.rtt = self.round_trips.update(now, rtt);
            self.srtt = if self.srtt == TimeDelta::ZERO { rtt } else { self.srtt + (rtt - self.srtt).scale(GAIN) };
        }
        if let Some(last) = last {
            let (now_0, last_0) = *self.origin.get_or_insert((now, last));
            let age = (now - now_0) - (last - last_0);
            self.late = age - self.ages.update(now, age);
        }
        if report.arrived > 0 {
            let change = TimeDelta::from_nanos((least - self.least).as_nanos().abs());
            let share = (RECENT.as_secs_f64() / dt.as_secs_f64().max(1e-3)).min(1.0);
            self.jitter += (change.scale(share) - self.jitter).scale(GAIN);
            self.queue = least.min(self.least);
            self.least = least;
        }
        report
    }
}
