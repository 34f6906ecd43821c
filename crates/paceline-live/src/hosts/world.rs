// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two hosts as a world: this host sends the media flows of a plan to a receiver, over the real path between them.

use crate::hosts::message::SessionId;
use crate::hosts::report::SendReport;
use crate::hosts::sender::{Peer, Progress, Sender};
use crate::hosts::session_flow::Flows;
use crate::hosts::terms::Terms;
use crate::testbed::host_monitor::HostMonitor;
use crate::testbed::lateness;
use paceline::Registry;
use paceline_netsim::network::{TraceEvent, TraceHash};
use paceline_netsim::plan::Plan;
use paceline_netsim::records::{EventObserver, EventRecord, HostStats, Percentiles};
use paceline_netsim::world::{Outcome, World, WorldError};
use paceline_units::{DataSize, Ecn, FlowId, TimeDelta};
use std::sync::{Arc, Mutex, PoisonError};

/// Receives the state of a session twice per second.
pub type OnProgress = Box<dyn Fn(&Progress) + Send + Sync>;

/// This host and a receiver. A run is one session.
pub struct TwoHosts {
    peer: Arc<Peer>,
    terms: Terms,
    on_progress: OnProgress,
    report: Mutex<Option<SendReport>>,
}

impl TwoHosts {
    /// The name in results.
    pub const NAME: &str = "hosts";

    /// Creates a world of sessions with these terms.
    pub fn new(peer: Arc<Peer>, terms: Terms, on_progress: OnProgress) -> Self {
        Self { peer, terms, on_progress, report: Mutex::default() }
    }

    /// Returns the duration of the latest session; zero before the first one.
    pub fn lasted(&self) -> TimeDelta {
        let report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        report.as_ref().map_or(TimeDelta::ZERO, |report| TimeDelta::from_secs_f64(report.lasted_s))
    }

    /// Returns the report of the latest session; `None` if none was made.
    pub fn into_report(self) -> Option<SendReport> {
        self.report.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl World for TwoHosts {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn real_time(&self) -> bool {
        true
    }

    /// Makes a session. The flows of `plan` are those that the terms have forward ([`crate::hosts::session_plan::sent_plan`]).
    fn run(
        &self,
        plan: &Plan,
        registry: &Registry,
        seed: u64,
        observer: &mut dyn EventObserver,
    ) -> Result<Outcome, WorldError> {
        let mut id = [0; 8];
        getrandom::fill(&mut id)
            .map_err(|error| WorldError::Broken { cause: format!("the system has no random numbers: {error}") })?;
        let (id, terms) = (SessionId(id), Terms { seed, ..self.terms.clone() });
        let flows = Flows::build(id, &terms, true, (&plan.flows, observer.wants_signals()), registry)?;
        let sender = Sender { peer: &self.peer, terms: &terms, plan, id };
        let (monitor, mut trace) = (HostMonitor::start(), Trace::default());
        let report = sender.run(flows, &mut (&mut trace, observer), &mut |now| (self.on_progress)(now))?;
        let outcome = Outcome {
            trace_hash: trace.hash.finish(),
            events: trace.events,
            delivered: report.measured.received_packets,
            machine: Some(host_stats(&monitor, &report)),
            programs: Vec::new(),
        };
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
        Ok(outcome)
    }
}

/// Returns the statistics of this host. The path is real, so its link is never late.
fn host_stats(monitor: &HostMonitor, report: &SendReport) -> HostStats {
    let (idle, others) = monitor.shares();
    let wake_us = lateness::percentiles(&report.lateness);
    let facts = report.evidence.host.describe();
    let disturbed = if facts.is_empty() { lateness::disturbance(&wake_us) } else { Some(facts.join("; ")) };
    HostStats { idle, others, late_us: Percentiles::default(), wake_us, disturbed, attempts: 1 }
}

/// Hashes and counts what happened in a session, whether controllers emit signals or not. The path is hop 0, which the ends of the flows follow.
#[derive(Default)]
struct Trace {
    hash: TraceHash,
    events: u64,
}

impl EventObserver for Trace {
    fn on_event(&mut self, event: &EventRecord) {
        let [sender, receiver] = [0, 1].map(|end| move |flow: FlowId| 1 + 2 * usize::from(flow.0) + end);
        let (component, kind, number, size, ecn) = match *event {
            EventRecord::Sent { packet, .. } => {
                (sender(packet.flow), TraceEvent::Sent, packet.packet, packet.size, Ecn::NotEct)
            }
            EventRecord::Crossed { packet, .. } => (0, TraceEvent::Crossed, packet.packet, packet.size, Ecn::NotEct),
            EventRecord::Dropped { packet, .. } => (0, TraceEvent::Loss, packet.packet, packet.size, Ecn::NotEct),
            EventRecord::Arrived { packet, ecn, .. } => {
                (receiver(packet.flow), TraceEvent::Arrived, packet.packet, packet.size, ecn)
            }
            EventRecord::Decision { flow, target, pacing, .. } => {
                let target = DataSize::from_bytes(target.as_bps());
                (sender(flow), TraceEvent::Decision, pacing.as_bps(), target, Ecn::NotEct)
            }
            EventRecord::Frame { flow, captured, size, .. } => {
                (receiver(flow), TraceEvent::Frame, captured.as_nanos() as u64, size, Ecn::NotEct)
            }
            _ => return,
        };
        self.events += 1;
        self.hash.add(event.at(), component, kind, number, size, ecn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_netsim::records::{HalfName, PacketClass, PacketRecord};
    use paceline_units::Time;

    #[test]
    fn trace_is_of_packets_and_does_not_depend_on_signals() {
        let packet = |number: u64, ecn: Ecn| {
            let size = DataSize::from_bytes(1200);
            let packet = PacketRecord { packet: number, flow: FlowId(0), class: PacketClass::Media, size };
            EventRecord::Arrived { at: Time::from_millis(5), packet, delay: TimeDelta::from_millis(1), ecn }
        };
        let (at, flow) = (Time::ZERO, FlowId(0));
        let signal = EventRecord::Signal { at, flow, half: HalfName::Send, signal: 0, value: 1.0 };
        let trace = |events: &[EventRecord]| {
            let mut trace = Trace::default();
            events.iter().for_each(|event| trace.on_event(event));
            (trace.hash.finish(), trace.events)
        };
        let (one, two) = (packet(1, Ecn::NotEct), packet(2, Ecn::NotEct));
        let both = trace(&[one, two]);
        assert_eq!(both.1, 2);
        assert_eq!(trace(&[signal, one, signal, two]), both);
        for others in [vec![one], vec![two, one], vec![one, packet(2, Ecn::Ce)]] {
            assert_ne!(trace(&others).0, both.0, "{others:?}");
        }
    }
}
