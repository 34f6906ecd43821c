// SPDX-License-Identifier: MIT OR Apache-2.0
//! The series that the page draws: a fixed number of rows for any duration.

use paceline::Registry;
use paceline_netsim::plan::Plan;
use paceline_netsim::records::{EventObserver, EventRecord, PacketRecord, RunDescription};
use paceline_units::{Rate, Time, TimeDelta};
use serde::Serialize;

/// Rows of each series: about one per pixel of a wide plot.
const ROWS: usize = 1000;

/// Rates and losses are those of the last second.
const WINDOW: TimeDelta = TimeDelta::from_secs(1);

/// A series. Its rows follow each other in the columns of the answer, in the order of the series; NaN stands for no value.
#[derive(Debug, Serialize)]
pub struct Series {
    /// `capacity`, `received`, `target`, `queue`, `queue-max`, `loss` or `signal`.
    pub kind: &'static str,
    /// The flow, by number; none for the link.
    pub flow: Option<usize>,
    /// Name of a signal; empty for the others.
    pub name: String,
    /// Unit of the values.
    pub unit: String,
    /// Name of each value of a state; empty for numbers.
    pub states: Vec<String>,
}

#[derive(Clone, Copy, Default)]
struct FlowRow {
    received: u64,
    arrived: u32,
    lost: u32,
}

#[derive(Clone, Copy, Default)]
struct QueueRow {
    sum: f64,
    packets: u32,
    max: f64,
}

/// Receives the events of a run.
pub struct SeriesObserver<'a> {
    plan: &'a Plan,
    description: RunDescription,
    row: TimeDelta,
    flows: Vec<Vec<FlowRow>>,
    targets: Vec<Vec<Option<Rate>>>,
    queue: Vec<QueueRow>,
    /// Of each half of each flow: each signal, the last value in each row.
    signals: Vec<[Vec<Vec<f32>>; 2]>,
}

impl<'a> SeriesObserver<'a> {
    /// Creates an observer of runs of a plan.
    pub fn new(plan: &'a Plan, registry: &Registry) -> Self {
        let description = plan.describe(registry);
        let row = TimeDelta::from_nanos((plan.duration.as_nanos() / ROWS as i64).max(1));
        let empty = || vec![f32::NAN; ROWS];
        let signals = |flow: &paceline_netsim::records::FlowDescription| {
            flow.signals.each_ref().map(|half| half.iter().map(|_| empty()).collect())
        };
        Self {
            plan,
            row,
            flows: vec![vec![FlowRow::default(); ROWS]; plan.flows.len()],
            targets: vec![vec![None; ROWS]; plan.flows.len()],
            queue: vec![QueueRow::default(); ROWS],
            signals: description.flows.iter().map(signals).collect(),
            description,
        }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        ROWS
    }

    fn index(&self, at: Time) -> usize {
        ((at.as_nanos() / self.row.as_nanos()) as usize).min(ROWS - 1)
    }

    fn flow_row(&mut self, at: Time, packet: &PacketRecord) -> Option<&mut FlowRow> {
        let row = self.index(at);
        (!packet.class.is_from_receiver()).then(|| &mut self.flows[usize::from(packet.flow.0)][row])
    }

    /// Appends the values of all series to `columns`, and describes them.
    pub fn finish(self, columns: &mut Vec<f32>) -> Vec<Series> {
        let mut all = Vec::new();
        let mut add = |kind, flow, (name, unit): (&str, &str), states: &[String], values: Vec<f32>| {
            columns.extend(values);
            let (name, unit, states) = (name.to_owned(), unit.to_owned(), states.to_vec());
            all.push(Series { kind, flow, name, unit, states });
        };
        let end = |row: usize| Time::ZERO + TimeDelta::from_nanos(self.row.as_nanos() * (row as i64 + 1));
        if let Some(capacity) = &self.plan.hops[self.plan.bottleneck].capacity {
            let mean = |row: usize| {
                let volume = capacity.volume(end(row) - self.row, end(row)).as_bits() as f64;
                (volume / self.row.as_secs_f64() / 1e6) as f32
            };
            add("capacity", None, ("", "Mbit/s"), &[], (0..ROWS).map(mean).collect());
        }
        let window = (WINDOW.as_nanos() / self.row.as_nanos()).clamp(1, ROWS as i64) as usize;
        let over = |row: usize| (row + 1).saturating_sub(window)..row + 1;
        for (flow, rows) in self.flows.iter().enumerate() {
            let (start, stop) = self.description.flows[flow].lives_s;
            let lives = |row: usize| end(row).as_secs_f64() > start && (end(row) - self.row).as_secs_f64() < stop;
            let rate = |row: usize| {
                let bytes: u64 = rows[over(row)].iter().map(|row| row.received).sum();
                let seconds = self.row.as_secs_f64() * over(row).len() as f64;
                if lives(row) { (bytes as f64 * 8.0 / seconds / 1e6) as f32 } else { f32::NAN }
            };
            add("received", Some(flow), ("", "Mbit/s"), &[], (0..ROWS).map(rate).collect());
            let mut last = None;
            let mut target = |row: usize| {
                last = self.targets[flow][row].or(last);
                last.filter(|_| lives(row)).map_or(f32::NAN, |rate: Rate| (rate.as_bps_f64() / 1e6) as f32)
            };
            if self.plan.flows[flow].media().is_some() {
                add("target", Some(flow), ("", "Mbit/s"), &[], (0..ROWS).map(&mut target).collect());
            }
            let loss = |row: usize| {
                let (mut lost, mut all) = (0, 0);
                rows[over(row)].iter().for_each(|row| (lost, all) = (lost + row.lost, all + row.lost + row.arrived));
                if all > 0 { lost as f32 * 100.0 / all as f32 } else { f32::NAN }
            };
            add("loss", Some(flow), ("", "%"), &[], (0..ROWS).map(loss).collect());
        }
        let mean = |row: &QueueRow| if row.packets > 0 { (row.sum / f64::from(row.packets)) as f32 } else { 0.0 };
        add("queue", None, ("", "ms"), &[], self.queue.iter().map(mean).collect());
        add("queue-max", None, ("", "ms"), &[], self.queue.iter().map(|row| row.max as f32).collect());
        for (flow, halves) in self.signals.iter().enumerate() {
            let described = self.description.flows[flow].signals.iter().flatten();
            for (signal, values) in described.zip(halves.iter().flatten()) {
                // A signal holds until its next value.
                let mut last = f32::NAN;
                let held = values.iter().map(|value| {
                    last = if value.is_nan() { last } else { *value };
                    last
                });
                add("signal", Some(flow), (&signal.name, &signal.unit), &signal.states, held.collect());
            }
        }
        all
    }
}

impl EventObserver for SeriesObserver<'_> {
    fn on_event(&mut self, event: &EventRecord) {
        match event {
            EventRecord::Arrived { at, packet, .. } => {
                if let Some(row) = self.flow_row(*at, packet) {
                    row.received += packet.size.as_bytes();
                    row.arrived += 1;
                }
            }
            EventRecord::Dropped { at, packet, .. } => {
                if let Some(row) = self.flow_row(*at, packet) {
                    row.lost += 1;
                }
            }
            EventRecord::Crossed { hop, waited, left, .. } if usize::from(*hop) == self.plan.bottleneck => {
                let row = self.index(*left);
                let (row, waited) = (&mut self.queue[row], waited.as_millis_f64());
                row.sum += waited;
                row.packets += 1;
                row.max = row.max.max(waited);
            }
            EventRecord::Decision { at, flow, target, .. } => {
                let row = self.index(*at);
                self.targets[usize::from(flow.0)][row] = Some(*target);
            }
            EventRecord::Signal { at, flow, half, signal, value } => {
                let row = self.index(*at);
                self.signals[usize::from(flow.0)][*half as usize][usize::from(*signal)][row] = *value as f32;
            }
            _ => {}
        }
    }

    fn wants_signals(&self) -> bool {
        true
    }
}
