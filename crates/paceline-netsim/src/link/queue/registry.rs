// SPDX-License-Identifier: MIT OR Apache-2.0
//! The queue disciplines by name. To add one: a file in this folder that declares a [`QueueEntry`], and a line in
//! [`DISCIPLINES`].

use super::{
    Discipline, QueueLimit, codel, drop_tail, drr, dual_pi2, fq_codel, pie, priority, red, srtcm, step, trtcm,
};
use crate::parameter::{Parameter, ParameterKind, Value, Values, registry_entry};
use paceline_units::{DataSize, RandomStream, RandomStreams};

/// Every discipline; the first is the default.
pub static DISCIPLINES: &[QueueEntry] = &[
    drop_tail::ENTRY,
    codel::ENTRY,
    fq_codel::ENTRY,
    pie::ENTRY,
    red::ENTRY,
    dual_pi2::ENTRY,
    step::ENTRY,
    srtcm::ENTRY,
    trtcm::ENTRY,
    priority::ENTRY,
    drr::ENTRY,
];

/// A discipline: its name, its parameters, and how to create a queue.
pub struct QueueEntry {
    /// The name in scenarios.
    pub name: &'static str,
    /// A description, in one line.
    pub summary: &'static str,
    /// The limit, which every discipline has: a level, with the default that applies if a scenario gives none.
    pub limit: Parameter,
    /// The parameters besides the limit.
    pub parameters: &'static [Parameter],
    /// Creates an empty queue.
    pub build: fn(&QueueSetup<'_>) -> Box<dyn Discipline>,
}

impl QueueEntry {
    /// Declares the key `limit` of a discipline: its default, and a description with the source.
    pub const fn limit(default: &'static str, description: &'static str) -> Parameter {
        Parameter::new("limit", ParameterKind::Level, default).about(description)
    }

    /// Returns the limit that applies if a scenario gives none.
    pub fn default_limit(&self) -> QueueLimit {
        match self.limit.default() {
            Some(Value::Level(limit)) => limit,
            other => unreachable!("the limit of `{}` is {other:?}", self.name),
        }
    }
}

registry_entry!(QueueEntry, DISCIPLINES, "discipline", "queue discipline");

/// The configuration of one queue.
#[derive(Debug)]
pub struct QueueSetup<'a> {
    pub limit: QueueLimit,
    /// The parameters of the discipline.
    pub values: &'a Values,
    /// The random streams of the run.
    pub streams: &'a RandomStreams,
    /// The path of the hop, such as `hop/forward`.
    pub path: &'a str,
    /// The MTU of the hop's interface.
    pub mtu: DataSize,
}

impl QueueSetup<'_> {
    /// Returns the random stream of the queue, `<path>/queue`. A discipline that draws calls this once and keeps it.
    pub fn random(&self) -> RandomStream {
        self.streams.stream(&format!("{}/queue", self.path))
    }
}

/// A queue discipline with its limit and parameters.
#[derive(Clone, Debug)]
pub struct QueuePlan {
    pub discipline: &'static QueueEntry,
    pub limit: QueueLimit,
    /// The parameters of the discipline.
    pub values: Values,
}

impl QueuePlan {
    /// Returns a drop-tail queue that marks nothing.
    pub fn drop_tail(limit: QueueLimit) -> Self {
        let discipline = &DISCIPLINES[0];
        Self { discipline, limit, values: Values::new(discipline.parameters, &[]) }
    }

    /// Returns the name of the discipline in scenarios.
    pub fn name(&self) -> &'static str {
        self.discipline.name
    }

    /// Creates the queue of the hop at `path`, such as `hop/forward`, whose interface has this MTU.
    pub fn build(&self, streams: &RandomStreams, path: &str, mtu: DataSize) -> Box<dyn Discipline> {
        (self.discipline.build)(&QueueSetup { limit: self.limit, values: &self.values, streams, path, mtu })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::MTU;
    use crate::parameter::check_registry;

    #[test]
    fn names_are_unique_and_defaults_are_allowed() {
        check_registry::<QueueEntry>();
        for entry in DISCIPLINES {
            assert_eq!((entry.limit.name, entry.limit.kind), ("limit", ParameterKind::Level));
            assert!(entry.limit.allows(Value::Level(entry.default_limit())));
            for parameter in entry.parameters {
                assert!(!["limit", "follows_capacity"].contains(&parameter.name));
                assert!(!parameter.is_required, "a queue of a limit only must be valid");
            }
        }
        assert_eq!(QueuePlan::drop_tail(QueueLimit::Packets(1)).name(), "drop-tail");
    }

    #[test]
    fn text_of_a_plan_has_no_address() {
        for discipline in DISCIPLINES {
            let values = Values::new(discipline.parameters, &[]);
            let text = format!("{:?}", QueuePlan { discipline, limit: QueueLimit::Packets(1), values });
            assert!(text.contains(discipline.name) && !text.contains("0x"), "{text}");
        }
    }

    #[test]
    fn each_queue_has_a_random_stream_of_its_own() {
        let values = Values::new(&[], &[]);
        let bits = |seed, path| {
            let streams = RandomStreams::new(seed);
            let limit = QueueLimit::Packets(1);
            QueueSetup { limit, values: &values, streams: &streams, path, mtu: MTU }.random().bits()
        };
        assert_eq!(bits(1, "hop/a"), bits(1, "hop/a"));
        assert_ne!(bits(1, "hop/a"), bits(1, "hop/b"));
        assert_ne!(bits(1, "hop/a"), bits(2, "hop/a"));
    }
}
