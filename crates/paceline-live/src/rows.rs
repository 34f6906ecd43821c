//! Rows of many threads, brought into one order of time.

use paceline_lab::rows::{Row, RowSink};
use paceline_units::{Time, TimeDelta};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

/// A row waits so long for earlier ones of other threads: longer than a thread is ever held up without the run being a
/// disturbed one.
const PATIENCE: TimeDelta = TimeDelta::from_secs(1);

/// What hands rows on to another thread.
pub struct Tell {
    /// Where they go.
    pub to: Sender<Row>,
}

impl RowSink for Tell {
    fn row(&mut self, row: &Row) {
        // Nobody listens any more once a run has failed.
        let _ = self.to.send(*row);
    }
}

/// A row by its time, and by its place among rows of the same time.
struct Placed {
    at: Time,
    number: u64,
    row: Row,
}

impl PartialEq for Placed {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Placed {}
impl PartialOrd for Placed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Placed {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}
impl Placed {
    fn key(&self) -> (Time, u64) {
        (self.at, self.number)
    }
}

/// Hands rows to `sink` in order of time until nobody tells any more; those after `end` are none of the run.
pub fn merge(rows: &Receiver<Row>, sink: &mut dyn RowSink, now: impl Fn() -> Time, end: Time) {
    let mut waiting = BinaryHeap::new();
    let mut number = 0;
    loop {
        let told = rows.recv_timeout(Duration::from_millis(100));
        let mut more = told.ok();
        while let Some(row) = more {
            if row.at() <= end {
                sink.early(&row);
            }
            waiting.push(Reverse(Placed { at: row.at(), number, row }));
            number += 1;
            more = rows.try_recv().ok();
        }
        let over = told == Err(RecvTimeoutError::Disconnected);
        let until = if over { Time::MAX } else { now() - PATIENCE };
        while let Some(Reverse(first)) = waiting.peek()
            && first.at <= until
        {
            if first.at <= end {
                sink.row(&first.row);
            }
            waiting.pop();
        }
        if over {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::{DataSize, FlowId};
    use std::sync::mpsc;

    struct Kept(Vec<Time>);
    impl RowSink for Kept {
        fn row(&mut self, row: &Row) {
            self.0.push(row.at());
        }
    }

    #[test]
    fn threads_come_into_one_order_and_the_end_is_the_end() {
        let (to, rows) = mpsc::channel();
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let to = to.clone();
                scope.spawn(move || {
                    for n in 0..100 {
                        let at = Time::from_millis(3 * n + thread);
                        to.send(Row::Read { at, flow: FlowId(0), size: DataSize::ZERO }).unwrap();
                    }
                });
            }
            drop(to);
            let mut kept = Kept(Vec::new());
            merge(&rows, &mut kept, || Time::ZERO, Time::from_millis(250));
            let expected: Vec<Time> = (0..=250).map(Time::from_millis).collect();
            assert_eq!(kept.0, expected);
        });
    }
}
