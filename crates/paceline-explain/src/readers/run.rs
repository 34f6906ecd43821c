// SPDX-License-Identifier: MIT OR Apache-2.0
//! Folders that `--out` wrote. Only what endpoints know is read: packets at both ends, reports, targets and frames. Hops,
//! capacities and the scenario are not read, so that an explanation of a simulated call is worth as much as one of a real call.

use crate::error::ReadError;
use crate::model::{Call, Confidence, Flow, Mark, MarkKind, Origin, Quantity, Series};
use crate::packets::{PacketSeries, ReportKind};
use paceline_lab::results::Store;
use paceline_lab::results::tables::RunTables;
use paceline_netsim::records::{EventObserver, EventRecord, PacketClass, RunHeader};
use paceline_units::{Time, TimeDelta};
use std::path::{Path, PathBuf};

/// Name of the format.
pub const FORMAT: &str = "paceline-run";

/// Reads the run of a folder of results, or the folder of a run. `name` selects one of several runs.
///
/// # Errors
/// The folder has no run, several runs and no `name`, or a damaged table.
pub fn read(dir: &Path, name: Option<&str>) -> Result<Call, ReadError> {
    Store::read_settled(dir, || {
        let folder = run_folder(dir, name)?;
        let about = Store::read_run(&folder)?.about;
        let header = about.header();
        let mut observer = RunObserver::new(&header);
        RunTables::new(&folder, &about).replay(&header, &mut observer)?;
        Ok(observer.finish())
    })
}

/// Returns the folder of a run: `dir` itself, or that of its run `name`; the only one if absent.
///
/// # Errors
/// The folder has no run, or several runs and no `name`.
pub fn run_folder(dir: &Path, name: Option<&str>) -> Result<PathBuf, ReadError> {
    if !Store::exists(dir) {
        return Ok(dir.to_path_buf());
    }
    let runs = Store::read(dir)?.runs;
    let names = || runs.iter().map(|run| run.about.run.directory.as_str()).collect::<Vec<_>>();
    let run = match name {
        Some(name) => runs.iter().find(|run| run.about.run.directory == name),
        None if runs.len() == 1 => runs.first(),
        None => None,
    };
    let run = run.ok_or_else(|| ReadError::WhichRun {
        wanted: name.map(str::to_owned),
        runs: names().join(", "),
        count: runs.len(),
    })?;
    Ok(run.dir.clone())
}

/// Builds the model of a run from its events.
pub struct RunObserver {
    flows: Vec<FlowSeries>,
}

struct FlowSeries {
    flow: Flow,
    packets: PacketSeries,
    target: Series,
    round_trip: Series,
    cap: Series,
    last_frame: Option<(Time, TimeDelta)>,
    is_tcp: bool,
}

impl RunObserver {
    /// Creates the model of a run with these flows.
    pub fn new(header: &RunHeader) -> Self {
        let flow = |name: &String| FlowSeries {
            flow: Flow { name: name.clone(), is_sent: true, ..Flow::default() },
            packets: PacketSeries::default(),
            target: Series::new(Origin::Log, Confidence::Exact),
            round_trip: Series::new(Origin::Reports, Confidence::Exact),
            cap: Series::new(Origin::Reports, Confidence::Exact),
            last_frame: None,
            is_tcp: false,
        };
        Self { flows: header.flows.iter().map(flow).collect() }
    }

    fn change(&mut self, flow: paceline_units::FlowId, change: impl FnOnce(&mut FlowSeries)) {
        self.flows.get_mut(usize::from(flow.0)).map(change);
    }

    /// Returns the call: its media flows.
    pub fn finish(self) -> Call {
        let flows = self.flows.into_iter().filter(|flow| !flow.is_tcp && !flow.packets.is_empty());
        let flows = flows.map(|mut all| {
            all.packets.finish(&mut all.flow);
            let series =
                [(Quantity::Target, all.target), (Quantity::RoundTrip, all.round_trip), (Quantity::Cap, all.cap)];
            all.flow.series.extend(series);
            all.flow.finish();
            all.flow
        });
        Call { format: FORMAT.to_owned(), flows: flows.collect(), notes: Vec::new() }
    }
}

impl EventObserver for RunObserver {
    fn on_event(&mut self, event: &EventRecord) {
        match *event {
            EventRecord::Sent { at, packet } => self.change(packet.flow, |flow| {
                flow.is_tcp |= packet.class.is_tcp();
                let is_repair = packet.class == PacketClass::Retransmission;
                match packet.class {
                    PacketClass::ReceiverControl => flow.packets.feedback_sent(at, ReportKind::Summary),
                    PacketClass::SenderControl => {}
                    _ => flow.packets.sent(at, packet.packet, packet.size.as_bytes(), is_repair),
                }
            }),
            EventRecord::Arrived { at, packet, delay, ecn } => self.change(packet.flow, |flow| match packet.class {
                PacketClass::ReceiverControl => flow.packets.feedback(at, ReportKind::Summary),
                PacketClass::SenderControl => {}
                _ => {
                    flow.packets.outcome(packet.packet);
                    flow.packets.ecn_arrived(at, false, ecn);
                    flow.packets.arrived(at, packet.size.as_bytes(), Some(delay.as_secs_f64()));
                }
            }),
            EventRecord::RoundTrip { at, flow, rtt } => {
                self.change(flow, |flow| flow.round_trip.push(at, rtt.as_secs_f64()));
            }
            EventRecord::Decision { at, flow, target, .. } => {
                self.change(flow, |flow| flow.target.push(at, target.as_bps() as f64));
            }
            EventRecord::Remb { at, flow, rate } => {
                self.change(flow, |flow| flow.cap.push(at, rate.as_bps() as f64));
            }
            EventRecord::Frame { at, flow, .. } => self.change(flow, |flow| flow.frame(at)),
            _ => {}
        }
    }
}

impl FlowSeries {
    /// A gap of max(3 × mean, mean + 150 ms) between rendered frames is a freeze (W3C, `freezeCount`). The mean is smoothed over
    /// 30 frames here.
    fn frame(&mut self, at: Time) {
        let Some((last, mean)) = self.last_frame else {
            self.last_frame = Some((at, TimeDelta::from_millis(33)));
            return;
        };
        let gap = at - last;
        let limit = (mean * 3).max(mean + TimeDelta::from_millis(150));
        if gap >= limit {
            self.flow.marks.push(Mark { at, kind: MarkKind::Freeze(gap) });
        }
        self.last_frame = Some((at, TimeDelta::from_nanos((mean.as_nanos() * 29 + gap.as_nanos()) / 30)));
    }
}
