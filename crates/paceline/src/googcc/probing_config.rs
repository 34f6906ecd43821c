//! The parameters of probing.

use crate::{Block, FieldVisitor};
use paceline_units::{Rate, TimeDelta};

/// The numbers of probing. Names in brackets are those of `ProbeControllerConfig` (`probe_controller.cc`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbingConfig {
    /// Whether there are probes.
    pub enabled: bool,
    /// The rates of the first two clusters over the start rate; a second of zero: none.
    pub start: (f64, f64),
    /// The rate of a further cluster over the estimate.
    pub further: f64,
    /// The share of a cluster's rate that the estimate must exceed for a further one.
    pub success: f64,
    /// Whether further probing stops once the estimate exceeds what is needed.
    pub aborts: bool,
    /// Whether the first cluster is repeated each second until streams are allocated, and for how long.
    pub repeats: (bool, TimeDelta),
    /// The length of clusters during that time.
    pub repeat_duration: TimeDelta,
    /// Whether there are periodic probes in the application-limited region, and their interval.
    pub periodic: (bool, TimeDelta),
    /// The rate of a periodic cluster over the estimate.
    pub periodic_scale: f64,
    /// Whether a change of the allocation is probed, and whether also outside the application-limited region.
    pub allocation: (bool, bool),
    /// Whether a decrease of the allocation counts as a change.
    pub allocation_decrease: bool,
    /// The rates of the two clusters over the allocation; zero: none.
    pub allocation_scales: (f64, f64),
    /// The highest of these rates over the estimate.
    pub allocation_limit: f64,
    /// The least number of packets of a cluster.
    pub packets: usize,
    /// The length of a cluster.
    pub duration: TimeDelta,
    /// The highest rate over the estimate while loss limits an increasing rate.
    pub loss_limited_scale: f64,
    /// Nothing is probed above this share of the highest rate; zero: no such limit.
    pub skip_above: f64,
    /// The highest rate in this comparison over the allocation.
    pub skip_allocation: f64,
    /// Whether a large drop is probed outside the application-limited region as well.
    pub rapid_recovery: bool,
    /// The highest rate of a cluster if no maximum is known.
    pub max: Rate,
}

impl ProbingConfig {
    /// libwebrtc of 2026-08. A camera video has no periodic probes, a shared screen has.
    pub const LIBWEBRTC: Self = Self {
        enabled: true,
        start: (3.0, 6.0),
        further: 2.0,
        success: 0.7,
        aborts: false,
        repeats: (false, TimeDelta::from_secs(5)),
        repeat_duration: TimeDelta::from_millis(100),
        periodic: (false, TimeDelta::from_secs(5)),
        periodic_scale: 2.0,
        allocation: (true, true),
        allocation_decrease: false,
        allocation_scales: (1.0, 2.0),
        allocation_limit: 2.0,
        packets: 5,
        duration: TimeDelta::from_millis(15),
        loss_limited_scale: 1.5,
        skip_above: 0.0,
        skip_allocation: 1.0,
        rapid_recovery: false,
        max: Rate::from_kbps(5000),
    };
}

impl Block for ProbingConfig {
    fn fields(&mut self, fields: &mut FieldVisitor<'_>) {
        let f = fields;
        f.flag("probes", &mut self.enabled).describe("whether clusters of packets probe for more capacity");
        f.number("probe_first", "", (1.0, 100.0), &mut self.start.0)
            .describe("rate of the first cluster over the start rate (first_exponential_probe_scale)");
        f.number("probe_second", "", (0.0, 100.0), &mut self.start.1)
            .describe("rate of the second cluster over the start rate (second_exponential_probe_scale); 0: none");
        f.number("probe_further", "", (1.0, 100.0), &mut self.further)
            .describe("rate of a further cluster over the estimate (further_exponential_probe_scale)");
        f.number("probe_success", "", (0.0, 1.0), &mut self.success).describe(
            "share of a cluster's rate that the estimate must exceed for a further one (further_probe_threshold)",
        );
        f.flag("probe_abort", &mut self.aborts).describe(
            "whether there is no further one above what is needed (abort_further_probe_if_max_lower_than_current)",
        );
        f.flag("probe_repeat", &mut self.repeats.0)
            .describe("whether the first cluster is repeated until streams exist (enable_repeated_initial_probing)");
        f.millis("probe_repeat_ms", (0.0, 1e5), &mut self.repeats.1)
            .describe("for how long (repeated_initial_probing_time_period)");
        f.millis("probe_repeat_length_ms", (1.0, 1e3), &mut self.repeat_duration)
            .describe("length of clusters during that time (initial_probe_duration)");
        f.flag("probe_periodic", &mut self.periodic.0)
            .describe("whether there are probes in the application-limited region (requests_alr_probing)");
        f.millis("probe_periodic_ms", (100.0, 1e6), &mut self.periodic.1)
            .describe("interval of these probes (alr_probing_interval)");
        f.number("probe_periodic_scale", "", (0.1, 100.0), &mut self.periodic_scale)
            .describe("their rate over the estimate (alr_probe_scale)");
        f.flag("probe_allocation", &mut self.allocation.0)
            .describe("whether a change of the sources' maximum is probed (probe_on_max_allocated_bitrate_change)");
        f.flag("probe_allocation_anywhere", &mut self.allocation.1).describe(
            "whether also while the flow is not application-limited (probe_on_max_allocated_bitrate_change_without_alr)",
        );
        f.flag("probe_allocation_decrease", &mut self.allocation_decrease)
            .describe("whether a decrease counts as a change, as before 2026-08 (OnMaxTotalAllocatedBitrate)");
        f.number("probe_allocation_first", "", (0.0, 100.0), &mut self.allocation_scales.0)
            .describe("rate of the first cluster over the sources' maximum (first_allocation_probe_scale); 0: none");
        f.number("probe_allocation_second", "", (0.0, 100.0), &mut self.allocation_scales.1)
            .describe("rate of the second cluster over it (second_allocation_probe_scale); 0: none");
        f.number("probe_allocation_limit", "", (0.1, 100.0), &mut self.allocation_limit)
            .describe("highest of these rates over the estimate (allocation_probe_limit_by_current_scale)");
        f.count("probe_packets", "", (1, 100), &mut self.packets)
            .describe("least packets of a cluster (min_probe_packets_sent)");
        f.millis("probe_ms", (1.0, 1e3), &mut self.duration).describe("length of a cluster (min_probe_duration)");
        f.number("probe_loss_limited", "", (0.1, 100.0), &mut self.loss_limited_scale)
            .describe("highest rate over the estimate while loss limits it (loss_limited_probe_scale)");
        f.number("probe_skip", "", (0.0, 100.0), &mut self.skip_above).describe(
            "no probe above this share of the maximum (skip_if_estimate_larger_than_fraction_of_max); 0: no limit",
        );
        f.number("probe_skip_allocation", "", (0.0, 100.0), &mut self.skip_allocation)
            .describe("that maximum over the sources' maximum (skip_probe_max_allocated_scale)");
        f.flag("probe_rapid", &mut self.rapid_recovery).describe(
            "whether a drop is probed outside the application-limited region (WebRTC-BweRapidRecoveryExperiment)",
        );
        f.rate("probe_max_bps", (1e3, 1e12), &mut self.max)
            .describe("highest cluster while no maximum is known (kDefaultMaxProbingBitrate)");
    }
}
