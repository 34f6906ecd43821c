// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP flows: congestion control, profile, workload.

use super::{Checked, Resolver, names};
use crate::file::{Flow, TcpKeys, WorkloadTable};
use crate::text_span::Table;
use paceline_netsim::flow::tcp::{CONGESTION, Profile, TcpConfig, TcpEcn, Workload, find_congestion};
use paceline_netsim::plan::{FlowKind, FlowPlan, HopPlan, TcpPlan};
use paceline_units::{DataSize, TimeDelta};

/// Payload of a full segment, bytes.
const SEGMENTS: std::ops::RangeInclusive<u64> = 100..=1460;

impl Resolver<'_> {
    /// `mtu`: the smallest one of the route while the flow lasts.
    pub(super) fn tcp(&self, flow: &TcpKeys, mtu: DataSize) -> Checked<TcpPlan> {
        let mut config = TcpConfig { segment: TcpConfig::segment_for(mtu), ..TcpConfig::default() };
        if let Some(spanned) = &flow.congestion {
            let known: Vec<&str> = CONGESTION.iter().map(|(name, ..)| *name).collect();
            let unknown = || self.unknown(spanned, "congestion control", &known);
            config.congestion = find_congestion(spanned.get()).map_or_else(unknown, Ok)?;
        }
        config.ecn = TcpEcn::default_of(config.congestion);
        if let Some(spanned) = &flow.ecn {
            let unknown = || self.unknown(spanned, "use of ECN", &names(TcpEcn::NAMES));
            let ecn = TcpEcn::named(spanned.get()).map_or_else(unknown, Ok)?;
            if !ecn.fits(config.congestion) {
                let message =
                    format!("`{}` does not work with the congestion control `{}`", spanned.get(), config.congestion);
                let help = "`classic` and `abe` are for `new-reno` and `cubic`, `accurate` is for `dctcp`, `l4s` for `dctcp` and `prague`";
                return self.fail(spanned, message, help);
            }
            config.ecn = ecn;
        }
        if let Some(spanned) = &flow.profile {
            let unknown = || self.unknown(spanned, "TCP profile", &names(Profile::NAMES));
            config.profile = Profile::named(spanned.get()).map_or_else(unknown, Ok)?;
        }
        let error =
            ("a full segment must have 100 to 1460 bytes", "1448 bytes fill an Ethernet frame, with TCP timestamps");
        let segment = self.valid(&flow.segment, |segment| SEGMENTS.contains(&segment.as_bytes()), error)?;
        config.segment = segment.unwrap_or(config.segment);
        let error = (
            "a receive window must hold at least two segments",
            "leave the key out for a window that no usual path fills",
        );
        let least = config.segment + config.segment;
        config.receive_window = self.valid(&flow.receive_window, |window| *window >= least, error)?;
        let workload = flow.workload.as_ref().map_or(Ok(Workload::Bulk), |w| self.workload(w))?;
        Ok(TcpPlan { config, workload })
    }

    /// Checks that a segment and its acknowledgement take time: a window in no time is an endless rate.
    pub(super) fn check_round_trip(&self, flow: &Flow, plan: &FlowPlan, hops: &[HopPlan]) -> Checked<()> {
        let takes_time = |index: &usize| {
            let hop = &hops[*index];
            hop.capacity.is_some() || hop.delay.points().iter().all(|(_, delay)| delay.is_positive())
        };
        // Short transfers end.
        let FlowKind::Tcp(TcpPlan { workload: Workload::Bulk | Workload::OnOff { .. }, .. }) = &plan.kind else {
            return Ok(());
        };
        let mut way = plan.route.iter().chain(&plan.return_route);
        if plan.access_delay.is_positive() || way.any(takes_time) {
            return Ok(());
        }
        let message = format!("a segment of the flow `{}` and its acknowledgement take no time", plan.id);
        self.fail(&flow.id, message, "give the path a `capacity` or an `rtt` above 0")
    }

    fn workload(&self, spanned: &Table<WorkloadTable>) -> Checked<Workload> {
        let (table, what) = (spanned.get(), "workload");
        let kind = table.kind.get().as_str();
        let allowed_keys: &[&str] = match kind {
            "bulk" => &[],
            "on-off" => &["on", "off"],
            "short" => &["size", "pause", "begins_off"],
            "bursts" => &["size", "pause"],
            _ => return self.unknown(&table.kind, what, &names(Workload::NAMES)),
        };
        self.reject_unknown_keys(spanned, &table.kind, what, allowed_keys)?;
        let mut needed = allowed_keys.iter().filter(|key| **key != "begins_off");
        if let Some(key) = needed.find(|key| spanned.key(key).is_none()) {
            let example = if *key == "size" { "[\"100 KB\", \"1 MB\"]" } else { "\"3 s\"" };
            return self.needs(&table.kind, what, key, example);
        }
        let time = |spanned| self.positive(spanned, TimeDelta::ZERO);
        Ok(match (kind, &table.size) {
            ("on-off", _) => Workload::OnOff { on: time(&table.on)?, off: time(&table.off)? },
            (_, Some(size)) => {
                let (least, most) = *size.get();
                if least == DataSize::ZERO || least > most {
                    let help = "write it like [\"100 KB\", \"1 MB\"]";
                    return self.fail(size, "sizes must be [smallest, largest], both > 0", help);
                }
                let begins_off = table.begins_off.as_ref().is_some_and(|begins_off| *begins_off.get());
                let (size, pause) = ((least, most), time(&table.pause)?);
                if kind == "bursts" {
                    Workload::Bursts { size, pause }
                } else {
                    Workload::Short { size, pause, begins_off }
                }
            }
            _ => Workload::Bulk,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{Changes, Origin, load};
    use paceline::Registry;

    #[test]
    fn a_path_on_which_nothing_takes_time_is_refused() {
        let load = |path: &str| {
            let text = format!(
                "id = \"a/b\"\ntitle = \"t\"\nduration = \"5 s\"\n{path}\n[[flow]]\nid = \"tcp\"\nkind = \"tcp\"\n"
            );
            load(&Origin::from_text("a.toml", text), &Changes::default(), &Registry::standard())
        };
        for path in ["path = { rtt = \"0 ms\" }", "[path.forward]\ndelay = [[\"0 s\", \"9 ms\"], [\"2 s\", \"0 ms\"]]"]
        {
            let error = format!("{:?}", miette::Report::new(load(path).unwrap_err()));
            assert!(error.contains("take no time"), "{error}");
        }
        for path in ["path = { rtt = \"1 ms\" }", "path = { rtt = \"0 ms\", reverse = { capacity = \"1 Mbps\" } }"] {
            load(path).unwrap();
        }
    }
}
