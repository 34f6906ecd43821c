//! What a run's plots need and its rows do not say. It stands in `about.json`, so that a report reads files only.

use crate::plan::{FlowKind, Plan, QueuePlan};
use paceline::{Registry, SignalShape, SignalSpec};
use paceline_flow::tcp::TcpSender;
use paceline_link::queue::DropTailLimit;
use paceline_units::{Time, TimeDelta};
use serde::{Deserialize, Serialize};

/// Recorded delivery opportunities are told as their mean over this.
const CAPACITY_BIN: TimeDelta = TimeDelta::from_millis(100);

/// The scenario as plots need it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// A line on the scenario.
    pub title: String,
    /// Where it comes from.
    pub source: String,
    /// How long the run lasts, s.
    pub duration_s: f64,
    /// Every hop, forward path first.
    pub hops: Vec<HopSetting>,
    /// Every flow.
    pub flows: Vec<FlowSetting>,
}

/// A hop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HopSetting {
    /// Its name.
    pub id: String,
    /// Whether it is on the forward path.
    pub forward: bool,
    /// From when (s) which rate (bit/s); a recorded trace as its means over 100 ms. None: unlimited.
    pub capacity: Option<Vec<(f64, f64)>>,
    /// Its queue's discipline.
    pub queue: String,
    /// How much the queue holds, and the unit: `ms` (of drain time), `B` or `packets`.
    pub limit: (f64, String),
}

/// A flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowSetting {
    /// Its name.
    pub id: String,
    /// `media` or `tcp`.
    pub kind: String,
    /// Hops of its data, in order, by name.
    pub route: Vec<String>,
    /// When it begins at the earliest, and when it ends, s.
    pub lives_s: (f64, f64),
    /// From when (s) which round-trip time (ms) propagation alone takes.
    pub propagation: Vec<(f64, f64)>,
    /// Name of each stream.
    pub streams: Vec<String>,
    /// What its send half and its receive half emit.
    pub signals: [Vec<SignalSetting>; 2],
}

/// A signal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SignalSetting {
    /// Its name.
    pub name: String,
    /// Unit of its values; empty for a plain number or a state.
    pub unit: String,
    /// What each value of a state is called; empty for a number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<String>,
}

impl Setting {
    /// That of a plan.
    pub fn of(plan: &Plan, registry: &Registry) -> Self {
        let end = Time::ZERO + plan.duration;
        let hops = plan.hops.iter().enumerate().map(|(index, hop)| HopSetting {
            id: hop.id.clone(),
            forward: index < plan.forward_hops,
            capacity: hop.capacity.as_ref().map(|capacity| {
                let steps = capacity.steps(end, CAPACITY_BIN);
                steps.iter().map(|(at, rate)| (at.as_secs_f64(), rate.as_bps_f64())).collect()
            }),
            queue: match hop.queue {
                QueuePlan::DropTail { .. } => "drop-tail".to_owned(),
            },
            limit: match hop.queue {
                QueuePlan::DropTail { limit: DropTailLimit::Bytes(size), .. } => {
                    (size.as_bytes() as f64, "B".to_owned())
                }
                QueuePlan::DropTail { limit: DropTailLimit::Packets(count), .. } => {
                    (f64::from(count), "packets".to_owned())
                }
                QueuePlan::DropTail { limit: DropTailLimit::DrainTime(time), .. } => {
                    (time.as_millis_f64(), "ms".to_owned())
                }
            },
        });
        let flows = plan.flows.iter().map(|flow| {
            let mut changes: Vec<Time> = flow
                .route
                .iter()
                .chain(&flow.return_route)
                .flat_map(|hop| plan.hops[*hop].delay.points().iter().map(|(at, _)| *at))
                .chain([Time::ZERO])
                .filter(|at| *at < end)
                .collect();
            changes.sort_unstable();
            changes.dedup();
            let rtt = |at: Time| (at.as_secs_f64(), flow.base_rtt_at(plan, at).as_millis_f64());
            FlowSetting {
                id: flow.id.clone(),
                kind: flow.kind.name().to_owned(),
                route: flow.route.iter().map(|hop| plan.hops[*hop].id.clone()).collect(),
                lives_s: (flow.start.as_secs_f64(), flow.stop.min(end).as_secs_f64()),
                propagation: changes.into_iter().map(rtt).collect(),
                streams: flow.media().map_or(Vec::new(), |m| m.streams.iter().map(|s| s.id.clone()).collect()),
                signals: match &flow.kind {
                    FlowKind::Tcp(_) => [signals(TcpSender::SIGNALS), Vec::new()],
                    FlowKind::Media(media) => registry.get(&media.controller.name).map_or(Default::default(), |e| {
                        let (send, receive) = e.signals();
                        [signals(send), signals(receive)]
                    }),
                },
            }
        });
        Self {
            title: plan.title.clone(),
            source: plan.source.clone(),
            duration_s: plan.duration.as_secs_f64(),
            hops: hops.collect(),
            flows: flows.collect(),
        }
    }
}

fn signals(specs: &[SignalSpec]) -> Vec<SignalSetting> {
    let one = |spec: &SignalSpec| SignalSetting {
        name: spec.name.to_owned(),
        unit: spec.unit.to_owned(),
        states: match spec.shape {
            SignalShape::Series => Vec::new(),
            SignalShape::State(states) => states.iter().map(|s| (*s).to_owned()).collect(),
        },
    };
    specs.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Catalogue, Changes, load};

    #[test]
    fn a_plan_tells_what_plots_need() {
        let registry = Registry::standard();
        let changes = Changes { controller: Some("gcc-2016".to_owned()), ..Changes::default() };
        let plan = load(&Catalogue.find("mmsys16/table1").unwrap(), &changes, &registry).unwrap();
        let setting = Setting::of(&plan, &registry);
        assert_eq!((setting.duration_s, setting.hops.len(), setting.flows.len()), (200.0, 2, 1));
        let hop = &setting.hops[0];
        let steps = [(0.0, 1e6), (50.0, 2.5e6), (100.0, 0.5e6), (150.0, 1e6)];
        assert_eq!(hop.capacity.as_deref(), Some(&steps[..]));
        assert_eq!((hop.forward, &hop.limit), (true, &(300.0, "ms".to_owned())));
        assert_eq!((setting.hops[1].forward, &setting.hops[1].capacity), (false, &None));
        let flow = &setting.flows[0];
        assert_eq!((flow.kind.as_str(), flow.propagation.as_slice()), ("media", &[(0.0, 50.0)][..]));
        assert_eq!((flow.route.as_slice(), flow.lives_s), (&["forward".to_owned()][..], (0.0, 200.0)));
        let states = |half: usize, name: &str| {
            flow.signals[half].iter().find(|s| s.name == name).map(|s| s.states.len()).unwrap()
        };
        assert_eq!((states(1, "usage"), states(1, "gamma"), states(0, "A_s")), (3, 0, 0));
    }
}
