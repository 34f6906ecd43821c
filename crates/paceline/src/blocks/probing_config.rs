// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parameters of probing.

use crate::params;
use paceline_units::{Rate, TimeDelta};

params! {
    /// The parameters of probing. Their sources are names of `ProbeControllerConfig` (`probe_controller.cc`).
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct ProbingConfig {
        /// libwebrtc of 2026-08. A camera video has no periodic probes, a shared screen has.
        const LIBWEBRTC;

        /// Whether clusters of packets probe for more capacity.
        enabled as "probes": bool = true, from "libwebrtc";
        /// Rate of the first cluster over the start rate.
        first as "probe_first": f64 = 3.0, in 1.0..=100.0, from "first_exponential_probe_scale";
        /// Rate of the second cluster over the start rate; 0: none.
        second as "probe_second": f64 = 6.0, in 0.0..=100.0, from "second_exponential_probe_scale";
        /// Rate of a further cluster over the estimate.
        further as "probe_further": f64 = 2.0, in 1.0..=100.0, from "further_exponential_probe_scale";
        /// Share of a cluster's rate that the estimate must exceed for a further one.
        success as "probe_success": f64 = 0.7, in 0.0..=1.0, from "further_probe_threshold";
        /// Whether there is no further cluster once the estimate exceeds what is needed.
        aborts as "probe_abort": bool = false, from "abort_further_probe_if_max_lower_than_current";
        /// Whether the first cluster is repeated each second until streams are allocated.
        repeats as "probe_repeat": bool = false, from "enable_repeated_initial_probing";
        /// Longest time for which it is repeated.
        repeat_time as "probe_repeat_ms": TimeDelta = TimeDelta::from_secs(5), in 0.0..=1e5,
            from "repeated_initial_probing_time_period";
        /// Length of clusters during that time.
        repeat_duration as "probe_repeat_length_ms": TimeDelta = TimeDelta::from_millis(100), in 1.0..=1e3,
            from "initial_probe_duration";
        /// Whether there are periodic probes in the application-limited region.
        periodic as "probe_periodic": bool = false, from "requests_alr_probing";
        /// Interval of periodic probes.
        periodic_interval as "probe_periodic_ms": TimeDelta = TimeDelta::from_secs(5), in 100.0..=1e6,
            from "alr_probing_interval";
        /// Rate of a periodic cluster over the estimate.
        periodic_scale as "probe_periodic_scale": f64 = 2.0, in 0.1..=100.0, from "alr_probe_scale";
        /// Whether a change of the sources' maximum, the allocation, is probed.
        allocation as "probe_allocation": bool = true, from "probe_on_max_allocated_bitrate_change";
        /// Whether it is probed outside the application-limited region as well.
        allocation_anywhere as "probe_allocation_anywhere": bool = true,
            from "probe_on_max_allocated_bitrate_change_without_alr";
        /// Whether a decrease of the allocation counts as a change.
        allocation_decrease as "probe_allocation_decrease": bool = false,
            from "OnMaxTotalAllocatedBitrate; so before 2026-08";
        /// Rate of the first cluster over the allocation; 0: none.
        allocation_first as "probe_allocation_first": f64 = 1.0, in 0.0..=100.0, from "first_allocation_probe_scale";
        /// Rate of the second cluster over the allocation; 0: none.
        allocation_second as "probe_allocation_second": f64 = 2.0, in 0.0..=100.0,
            from "second_allocation_probe_scale";
        /// Highest of these rates over the estimate.
        allocation_limit as "probe_allocation_limit": f64 = 2.0, in 0.1..=100.0,
            from "allocation_probe_limit_by_current_scale";
        /// Lowest number of packets of a cluster.
        packets as "probe_packets": usize = 5, in 1..=100, from "min_probe_packets_sent";
        /// Length of a cluster.
        duration as "probe_ms": TimeDelta = TimeDelta::from_millis(15), in 1.0..=1e3, from "min_probe_duration";
        /// Highest rate over the estimate while loss limits an increasing rate.
        loss_limited_scale as "probe_loss_limited": f64 = 1.5, in 0.1..=100.0, from "loss_limited_probe_scale";
        /// Share of the highest rate above which nothing is probed; 0: no limit.
        skip_above as "probe_skip": f64 = 0.0, in 0.0..=100.0, from "skip_if_estimate_larger_than_fraction_of_max";
        /// Highest rate in this comparison over the allocation.
        skip_allocation as "probe_skip_allocation": f64 = 1.0, in 0.0..=100.0, from "skip_probe_max_allocated_scale";
        /// Whether a large drop is probed outside the application-limited region as well.
        rapid_recovery as "probe_rapid": bool = false, from "WebRTC-BweRapidRecoveryExperiment";
        /// Highest rate of a cluster if no maximum is known.
        max as "probe_max_bps": Rate = Rate::from_kbps(5000), in 1e3..=1e12, from "kDefaultMaxProbingBitrate";
        /// Whether a raised maximum is probed.
        raised_max as _: bool = true;
        /// Whether a first cluster at the maximum is the only one; otherwise the second one repeats it.
        once_at_max as _: bool = false;
    }
}

impl ProbingConfig {
    /// libwebrtc of 2018, of which `gcc-tfb` has the exponential probing. It is off, because rmcat-ns3 has none.
    pub const Y2018: Self = Self { enabled: false, raised_max: false, once_at_max: true, ..Self::LIBWEBRTC };
}
