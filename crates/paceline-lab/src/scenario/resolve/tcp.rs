//! TCP flows: congestion control, profile, workload.

use super::{Checked, Resolver};
use crate::plan::TcpPlan;
use crate::scenario::file::{Flow, Placed, WorkloadTable};
use crate::scenario::problem::suggestion;
use paceline_flow::tcp::{CONGESTION, Profile, TcpConfig, Workload, congestion_named};
use paceline_units::{DataSize, TimeDelta};

/// Payload of a full segment, bytes.
const SEGMENTS: std::ops::RangeInclusive<u64> = 100..=1460;

impl Resolver<'_> {
    pub(super) fn tcp(&self, flow: &Flow) -> Checked<TcpPlan> {
        let mut config = TcpConfig::default();
        if let Some(place) = &flow.congestion {
            let known: Vec<&str> = CONGESTION.iter().map(|(name, ..)| *name).collect();
            config.congestion = congestion_named(place.get()).ok_or_else(|| {
                let problem = self.complain(place, format!("no congestion control `{}`", place.get()));
                problem.help(suggestion(place.get(), &known))
            })?;
        }
        if let Some(place) = &flow.profile {
            let known: Vec<&str> = Profile::NAMES.iter().map(|(n, _)| *n).collect();
            config.profile = Profile::named(place.get()).ok_or_else(|| {
                let problem = self.complain(place, format!("no TCP profile `{}`", place.get()));
                problem.help(suggestion(place.get(), &known))
            })?;
        }
        if let Some(place) = &flow.segment {
            if !SEGMENTS.contains(&place.get().as_bytes()) {
                let problem = self.complain(place, "a full segment carries 100 to 1460 bytes");
                return Err(problem.help("1448 bytes fill an Ethernet frame, with TCP timestamps"));
            }
            config.segment = *place.get();
        }
        if let Some(place) = &flow.receive_window {
            if *place.get() < config.segment + config.segment {
                let problem = self.complain(place, "a receive window holds at least two segments");
                return Err(problem.help("leave the key out for an unlimited one"));
            }
            config.receive_window = Some(*place.get());
        }
        let workload = flow.workload.as_ref().map_or(Ok(Workload::Bulk), |w| self.workload(w))?;
        Ok(TcpPlan { config, workload })
    }

    fn workload(&self, place: &Placed<WorkloadTable>) -> Checked<Workload> {
        let table = place.get();
        let kind = table.kind.get().as_str();
        let takes: &[&str] = match kind {
            "bulk" => &[],
            "on-off" => &["on", "off"],
            "short" => &["size", "pause"],
            other => {
                let known: Vec<&str> = Workload::NAMES.iter().map(|(n, _)| *n).collect();
                let problem = self.complain(&table.kind, format!("no workload `{other}`"));
                return Err(problem.help(suggestion(other, &known)));
            }
        };
        let written = [
            ("on", table.on.as_ref().map(Placed::span)),
            ("off", table.off.as_ref().map(Placed::span)),
            ("size", table.size.as_ref().map(Placed::span)),
            ("pause", table.pause.as_ref().map(Placed::span)),
        ];
        for (key, span) in written {
            match (span, takes.contains(&key)) {
                (Some(span), false) => {
                    let message = format!("the workload `{kind}` has no `{key}`");
                    let problem = crate::scenario::problem::Problem::at(&self.origin.name, self.text, span, message);
                    return Err(problem.help(suggestion(key, takes)));
                }
                (None, true) => {
                    let problem = self.complain(&table.kind, format!("the workload `{kind}` needs `{key}`"));
                    let value = if key == "size" { "[\"100 KB\", \"1 MB\"]" } else { "\"3 s\"" };
                    return Err(problem.help(format!("add `{key} = {value}`")));
                }
                _ => {}
            }
        }
        let time = |place: &Option<Placed<TimeDelta>>| self.positive(place, TimeDelta::ZERO);
        Ok(match kind {
            "on-off" => Workload::OnOff { on: time(&table.on)?, off: time(&table.off)? },
            "short" => {
                let size = table.size.as_ref().expect("it was asked for");
                let (least, most) = *size.get();
                if least == DataSize::ZERO || least > most {
                    let problem = self.complain(size, "sizes are [smallest, largest], above nothing");
                    return Err(problem.help("write it like [\"100 KB\", \"1 MB\"]"));
                }
                Workload::Short { size: (least, most), pause: time(&table.pause)? }
            }
            _ => Workload::Bulk,
        })
    }
}
