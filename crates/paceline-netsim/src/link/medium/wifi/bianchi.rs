// SPDX-License-Identifier: MIT OR Apache-2.0
//! The saturation throughput of the distributed coordination function by Bianchi (2000): "Performance Analysis of the IEEE
//! 802.11 Distributed Coordination Function", IEEE JSAC 18 (3).

/// The contention of stations that always have packets.
#[derive(Clone, Copy, Debug)]
pub struct Saturation {
    pub stations: u32,
    /// W: smallest contention window + 1.
    pub window: f64,
    /// m: doublings of the window up to the largest.
    pub doublings: u32,
}

/// Durations of Bianchi (2000), section IV-B, in s.
#[derive(Clone, Copy, Debug)]
pub struct Durations {
    pub slot: f64,
    /// Successful transmission.
    pub success: f64,
    pub collision: f64,
}

impl Saturation {
    /// Returns tau, the probability that a station transmits in a slot, given p: equation (7).
    fn transmission_probability(&self, p: f64) -> f64 {
        let geometric: f64 = (0..self.doublings).map(|i| libm::pow(2.0 * p, f64::from(i))).sum();
        2.0 / (1.0 + self.window + p * self.window * geometric)
    }

    /// Returns p, the probability that a transmission collides, given tau: equation (9).
    fn collision_probability(&self, tau: f64) -> f64 {
        1.0 - libm::pow(1.0 - tau, f64::from(self.stations) - 1.0)
    }

    /// Returns tau and p, the fixed point of equations (7) and (9), by bisection: the right side of (7) falls with tau.
    pub fn fixed_point(&self) -> (f64, f64) {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let tau = (low + high) / 2.0;
            if self.transmission_probability(self.collision_probability(tau)) > tau { low = tau } else { high = tau }
        }
        (low, self.collision_probability(low))
    }

    /// Returns the probability that at least one station transmits in a slot: equation (10).
    fn busy_probability(&self, tau: f64) -> f64 {
        1.0 - libm::pow(1.0 - tau, f64::from(self.stations))
    }

    /// Returns the probability that a transmission is successful: equation (11).
    fn success_probability(&self, tau: f64) -> f64 {
        let n = f64::from(self.stations);
        n * tau * libm::pow(1.0 - tau, n - 1.0) / self.busy_probability(tau)
    }

    /// Returns the throughput in bit/s of frames with `payload` bits: equation (13).
    pub fn throughput(&self, payload: f64, times: &Durations) -> f64 {
        let (tau, _) = self.fixed_point();
        let (busy, success) = (self.busy_probability(tau), self.success_probability(tau));
        let mean_slot =
            (1.0 - busy) * times.slot + busy * success * times.success + busy * (1.0 - success) * times.collision;
        success * busy * payload / mean_slot
    }
}

impl Durations {
    /// Returns the durations of basic access, in us: equation (14).
    pub fn basic_access(slot: f64, data: f64, sifs: f64, ack: f64, difs: f64, propagation: f64) -> Self {
        let micros = 1e-6;
        let success = data + sifs + propagation + ack + difs + propagation;
        let collision = data + difs + propagation;
        Self { slot: slot * micros, success: success * micros, collision: collision * micros }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(actual: f64, expected: f64, relative: f64) {
        assert!((actual / expected - 1.0).abs() < relative, "{actual} is not {expected}");
    }

    /// Computed with another program, for W = 16 and m = 6. One station never collides: tau = 2/(W + 1).
    #[test]
    fn fixed_point_is_that_of_the_equations() {
        let taus = [(1, 2.0 / 17.0), (2, 0.104621), (5, 0.076149), (10, 0.052480), (20, 0.033917)];
        for (stations, expected) in taus {
            let (tau, p) = Saturation { stations, window: 16.0, doublings: 6 }.fixed_point();
            near(tau, expected, 1e-4);
            near(p + 1.0, 2.0 - libm::pow(1.0 - expected, f64::from(stations) - 1.0), 1e-4);
        }
    }

    /// 802.11a at 54 Mbit/s, 1500 bytes with 36 bytes of headers: 57 symbols after 20 us; computed with another program.
    #[test]
    fn throughput_is_that_of_the_equations() {
        let times = Durations::basic_access(9.0, 248.0, 16.0, 28.0, 34.0, 0.0);
        for (stations, mbps) in [(1, 30.496), (2, 31.497), (5, 30.127), (10, 28.302), (20, 26.316)] {
            let throughput = Saturation { stations, window: 16.0, doublings: 6 }.throughput(12_000.0, &times);
            near(throughput, mbps * 1e6, 1e-4);
        }
    }
}
