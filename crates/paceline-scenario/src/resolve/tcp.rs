//! TCP flows: congestion control, profile, workload.

use super::{Checked, Resolver, names};
use crate::file::{TcpKeys, WorkloadTable};
use crate::text_span::Table;
use paceline_flow::tcp::{CONGESTION, Profile, TcpConfig, Workload, find_congestion};
use paceline_netsim::plan::TcpPlan;
use paceline_units::{DataSize, TimeDelta};

/// Payload of a full segment, bytes.
const SEGMENTS: std::ops::RangeInclusive<u64> = 100..=1460;

impl Resolver<'_> {
    /// `mtu`: the smallest one of the route while the flow lasts.
    pub(super) fn tcp(&self, flow: &TcpKeys, mtu: DataSize) -> Checked<TcpPlan> {
        let mut config = TcpConfig { segment: TcpConfig::segment_for(mtu), ..TcpConfig::default() };
        if let Some(spanned) = &flow.congestion {
            let known: Vec<&str> = CONGESTION.iter().map(|(name, ..)| *name).collect();
            let found =
                find_congestion(spanned.get()).map_or_else(|| self.unknown(spanned, "congestion control", &known), Ok);
            config.congestion = found?;
        }
        if let Some(spanned) = &flow.profile {
            let unknown = || self.unknown(spanned, "TCP profile", &names(Profile::NAMES));
            config.profile = Profile::named(spanned.get()).map_or_else(unknown, Ok)?;
        }
        if let Some(spanned) = &flow.segment {
            if !SEGMENTS.contains(&spanned.get().as_bytes()) {
                let help = "1448 bytes fill an Ethernet frame, with TCP timestamps";
                return self.fail(spanned, "a full segment must have 100 to 1460 bytes", help);
            }
            config.segment = *spanned.get();
        }
        if let Some(spanned) = &flow.receive_window {
            if *spanned.get() < config.segment + config.segment {
                let help = "leave the key out for an unlimited window";
                return self.fail(spanned, "a receive window must hold at least two segments", help);
            }
            config.receive_window = Some(*spanned.get());
        }
        let workload = flow.workload.as_ref().map_or(Ok(Workload::Bulk), |w| self.workload(w))?;
        Ok(TcpPlan { config, workload })
    }

    fn workload(&self, spanned: &Table<WorkloadTable>) -> Checked<Workload> {
        let (table, what) = (spanned.get(), "workload");
        let kind = table.kind.get().as_str();
        let allowed_keys: &[&str] = match kind {
            "bulk" => &[],
            "on-off" => &["on", "off"],
            "short" => &["size", "pause"],
            _ => return self.unknown(&table.kind, what, &names(Workload::NAMES)),
        };
        self.reject_unknown_keys(spanned, &table.kind, what, allowed_keys)?;
        if let Some(key) = allowed_keys.iter().find(|key| spanned.key(key).is_none()) {
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
                Workload::Short { size: (least, most), pause: time(&table.pause)? }
            }
            _ => Workload::Bulk,
        })
    }
}
