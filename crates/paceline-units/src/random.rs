// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random streams by name. Each random component of a run draws from a stream of its own, which is derived from the seed of
//! the run and the path of the component. Adding or removing a component therefore changes no draw of another.

use crate::TimeDelta;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Dxsm;

/// The random streams of one run.
#[derive(Clone, Copy, Debug)]
pub struct RandomStreams {
    seed: u64,
}

/// The random numbers of one component: PCG-64-DXSM, with the same bits on every platform.
#[derive(Clone, Debug)]
pub struct RandomStream(Pcg64Dxsm);

impl RandomStreams {
    /// Returns the streams of the run with this seed.
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Returns the stream of the component at `path`, such as `"forward/0/loss"`.
    pub fn stream(&self, path: &str) -> RandomStream {
        let mut hasher = blake3::Hasher::new_derive_key("paceline 2026 random stream");
        hasher.update(&self.seed.to_le_bytes());
        hasher.update(path.as_bytes());
        RandomStream(Pcg64Dxsm::from_seed(*hasher.finalize().as_bytes()))
    }
}

impl RandomStream {
    /// Returns 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }
    /// Returns a uniform value in [0, 1), in steps of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
    /// Returns a uniform value in [lo, hi).
    pub fn uniform(&mut self, lo: f64, hi: f64) -> f64 {
        lo + (hi - lo) * self.unit()
    }
    /// Returns true with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }
    /// Returns a normal value with mean 0 and standard deviation 1, by the Box–Muller transform of two uniform draws.
    ///
    /// The ziggurat method of a library would use the platform's `exp` and `ln` in the tails, if any crate of the program
    /// enabled them.
    pub fn normal(&mut self) -> f64 {
        let (u, v) = (self.unit(), self.unit());
        libm::sqrt(-2.0 * libm::log1p(-u)) * libm::cos(core::f64::consts::TAU * v)
    }
    /// Returns a Laplace value with mean 0 and this scale (standard deviation `scale * sqrt(2)`), by inversion.
    pub fn laplace(&mut self, scale: f64) -> f64 {
        let u = self.unit() - 0.5;
        let magnitude = -scale * libm::log1p(-2.0 * u.abs());
        if u < 0.0 { -magnitude } else { magnitude }
    }
    /// Returns a uniform time in [0, span), to the nanosecond.
    pub fn time_below(&mut self, span: TimeDelta) -> TimeDelta {
        span.scale(self.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// A change of generator, derivation or distribution would change every published result.
    #[test]
    fn first_values_are_pinned() {
        let mut s = RandomStreams::new(1).stream("forward/0/loss");
        let bits = [s.bits(), s.bits()];
        let normals: Vec<i64> = (0..4).map(|_| TimeDelta::from_millis_f64(s.normal()).as_nanos()).collect();
        assert_eq!(bits, PINNED_BITS);
        assert_eq!(normals, PINNED_NORMALS);
    }
    const PINNED_BITS: [u64; 2] = [16717330956918057653, 10392433699017177784];
    const PINNED_NORMALS: [i64; 4] = [-1_242_887, 447_742, -25_676, 464_874];

    #[test]
    fn streams_differ_by_name_and_seed() {
        let a = RandomStreams::new(1).stream("a").bits();
        assert_ne!(a, RandomStreams::new(1).stream("b").bits());
        assert_ne!(a, RandomStreams::new(2).stream("a").bits());
        assert_eq!(a, RandomStreams::new(1).stream("a").bits());
    }

    #[test]
    fn moments_are_right() {
        let mut s = RandomStreams::new(7).stream("moments");
        let n = 200_000;
        let (mut sum, mut squares, mut laplace_abs, mut unit) = (0.0, 0.0, 0.0, 0.0);
        for _ in 0..n {
            let x = s.normal();
            sum += x;
            squares += x * x;
            laplace_abs += s.laplace(0.15).abs();
            unit += s.unit();
        }
        let n = n as f64;
        assert!((sum / n).abs() < 0.01);
        assert!((squares / n - 1.0).abs() < 0.02);
        assert!((laplace_abs / n - 0.15).abs() < 0.002, "mean |x| of Laplace is its scale");
        assert!((unit / n - 0.5).abs() < 0.005);
    }
}
