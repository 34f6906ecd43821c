// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cumulative distributions of delays.

use super::series_map::element;
use super::{PanelBuilder, RunView, is_forward};
use crate::report::figure::{Axis, Panel, Role, Series, SeriesKind};
use crate::report::validation_text;
use crate::results::Validation;
use paceline_netsim::records::EventRecord;
use paceline_units::{FlowId, TimeDelta};

/// Largest number of steps of a distribution.
pub const STEPS: usize = 1000;

/// The panels: id, title, counted values.
const KINDS: [(&str, &str, &str); 4] = [
    ("cdf-queue", "Queuing delay", "packets that crossed a hop with a capacity"),
    ("cdf-owd", "One-way delay", "received packets, from send to arrival"),
    ("cdf-frames", "Frame delay", "rendered frames, from capture to rendering"),
    ("cdf-rtt", "Round-trip time", "measured round-trip times"),
];

struct Distributions<'a> {
    view: &'a RunView<'a>,
    values: [Vec<Vec<f32>>; 4],
}

pub(super) fn begin<'a>(view: &'a RunView<'a>) -> Box<dyn PanelBuilder + 'a> {
    Box::new(Distributions { view, values: Default::default() })
}

impl Distributions<'_> {
    fn add(&mut self, kind: usize, flow: FlowId, value: TimeDelta) {
        let Some(subject) = self.view.subject(flow) else { return };
        element(&mut self.values[kind], subject).push(value.as_millis_f64() as f32);
    }
}

impl PanelBuilder for Distributions<'_> {
    fn event(&mut self, event: &EventRecord) {
        match *event {
            EventRecord::Crossed { hop, packet, waited, .. } if is_forward(&packet) && self.view.is_limited(hop) => {
                self.add(0, packet.flow, waited);
            }
            EventRecord::Arrived { packet, delay, .. } if is_forward(&packet) => self.add(1, packet.flow, delay),
            EventRecord::Frame { at, flow, captured, .. } => self.add(2, flow, at - captured),
            EventRecord::RoundTrip { flow, rtt, .. } => self.add(3, flow, rtt),
            _ => {}
        }
    }

    fn finish(self: Box<Self>) -> Vec<Panel> {
        let panel = |((id, title, counted), subjects): ((&str, &str, &str), Vec<Vec<f32>>)| {
            let series = |(subject, values): (usize, Vec<f32>)| {
                let mut series = Series::new("cdf", "share", subject, Role::Main, SeriesKind::Cdf);
                (series.x, series.y) = steps(values).into_iter().unzip();
                series
            };
            let subjects = subjects.into_iter().enumerate().filter(|(_, values)| !values.is_empty());
            Panel {
                id: id.to_owned(),
                title: title.to_owned(),
                caption: format!("Share of {counted} with at most this value, in up to {STEPS} steps of equal share."),
                x: Axis::new(&title.to_lowercase(), "ms"),
                y: Axis { range: Some((0.0, 1.0)), ..Axis::new("share", "") },
                series: subjects.map(series).collect(),
            }
        };
        KINDS.into_iter().zip(self.values).map(panel).collect()
    }
}

/// Adds the distance between two worlds to the caption of the queuing delay.
pub(super) fn append_distance<'a>(panels: impl Iterator<Item = &'a mut Panel>, validations: &[&Validation]) {
    let (queue, ..) = KINDS[0];
    for panel in panels.filter(|panel| panel.id == queue) {
        for validation in validations {
            if let Some(distance) = validation_text::distance(validation) {
                let of = if validations.len() > 1 {
                    format!(" under {}", validation_text::controllers(validation))
                } else {
                    String::new()
                };
                panel.caption += &format!(" Of all flows together{of}: {distance}.");
            }
        }
    }
}

/// Returns the steps of a distribution: step k of n is the smallest value that k / n of all values do not exceed.
fn steps(values: Vec<f32>) -> Vec<(f64, f64)> {
    // Integers are faster to sort.
    let mut keys: Vec<i32> = values.into_iter().map(|value| ordered(value.to_bits() as i32)).collect();
    keys.sort_unstable();
    let n = keys.len().min(STEPS);
    let step = |k: usize| {
        let rank = (k * keys.len()).div_ceil(n).max(1);
        (f64::from(f32::from_bits(ordered(keys[rank - 1]) as u32)), k as f64 / n as f64)
    };
    if n == 0 { Vec::new() } else { (0..=n).map(step).collect() }
}

/// Converts the bits of a float to an integer with the same order ([`f32::total_cmp`]), and back.
fn ordered(bits: i32) -> i32 {
    bits ^ (((bits >> 31) as u32) >> 1) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_have_equal_shares() {
        assert_eq!(steps(vec![4.0, -1.0, 2.0]), [(-1.0, 0.0), (-1.0, 1.0 / 3.0), (2.0, 2.0 / 3.0), (4.0, 1.0)]);
        assert_eq!(steps(vec![-1.0, -2.0])[0].0, -2.0);
        let many = steps((0..5000u16).rev().map(f32::from).collect());
        assert_eq!((many.len(), many[0], many[1], many[1000]), (1001, (0.0, 0.0), (4.0, 0.001), (4999.0, 1.0)));
        assert!(steps(Vec::new()).is_empty());
    }
}
