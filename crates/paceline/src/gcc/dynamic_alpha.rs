//! The decrease factor `alpha`: a constant of each region, or the thesis's "dynamic alpha" (uottawa15, chapter 4), which
//! gives way the less the closer the gradient is to the threshold.
//!
//! ```text
//! b     = sqrt(exp(-(T - gamma) / T))                                              (4.3)
//! a     = (0.99 - b) / 1.3     above max, max unknown                              (4.2, 4.4)
//!         (1 - b) / 1.14       near max
//! alpha = b + a                                                                    (4.1)
//! ```
//!
//! The equations contradict the thesis's own table 2 (`paceline reproduce uottawa15/table2`). By them `alpha` lies between
//! 0.9015 and 0.9923, near the maximum between 0.9517 and 1: it never falls to the constant that it replaces, and cannot take
//! "even 0.85".

use super::Region;
use libm::exp;

/// The decrease factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Alpha {
    /// A constant near the maximum, another elsewhere.
    ByRegion {
        /// Near the maximum.
        near: f64,
        /// Elsewhere.
        far: f64,
    },
    /// By equation 4.1.
    Dynamic {
        /// How equation 4.2 is read.
        reading: Reading,
        /// The factor that the last over-use gave; at first 0.9 (section 4.3).
        last: f64,
    },
}

/// How equation 4.2 is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// As printed: near the maximum `(1 - b) / 1.14`.
    Printed,
    /// As table 2 was, as far as that can be told: `(0.99 - b) / 1.3` everywhere.
    Tabulated,
}

impl Alpha {
    /// Over-use was found: `T` and the threshold that it exceeded, ms. Where `T` does not exceed it the equation has no
    /// meaning, and the factor stays.
    pub fn handle_overuse(&mut self, region: Region, t: f64, gamma: f64) {
        if let Self::Dynamic { reading, last } = self
            && t > gamma
            && gamma > 0.0
        {
            *last = dynamic_alpha(t, gamma, reading.branch(region));
        }
    }

    /// The factor in this region.
    pub fn factor(&self, region: Region) -> f64 {
        match *self {
            Self::ByRegion { near, far } => {
                if region == Region::NearMax {
                    near
                } else {
                    far
                }
            }
            Self::Dynamic { last, .. } => last,
        }
    }
}

impl Reading {
    fn branch(self, region: Region) -> Branch {
        match (self, region) {
            (Self::Printed, Region::NearMax) => Branch::NearMax,
            _ => Branch::Elsewhere,
        }
    }
}

/// The two lines of equation 4.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    /// Near max.
    NearMax,
    /// Above max and max unknown.
    Elsewhere,
}

/// Equation 4.1, for `T` above the threshold.
pub fn dynamic_alpha(t: f64, gamma: f64, branch: Branch) -> f64 {
    let b = b(t, gamma);
    b + a(b, branch)
}

/// Equation 4.3.
fn b(t: f64, gamma: f64) -> f64 {
    exp(-(t - gamma) / t).sqrt()
}

/// Equations 4.2 and 4.4.
fn a(b: f64, branch: Branch) -> f64 {
    match branch {
        Branch::Elsewhere => (0.99 - b) / 1.3,
        Branch::NearMax => (1.0 - b) / 1.14,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 4.1 at `T = gamma` is b = 1; for ever greater `T` it nears b = exp(-1/2) = 0.60653.
    #[test]
    fn limits() {
        for (branch, at_threshold, at_infinity) in
            [(Branch::Elsewhere, 0.992308, 0.901507), (Branch::NearMax, 1.0, 0.951679)]
        {
            assert!((dynamic_alpha(25.0, 25.0, branch) - at_threshold).abs() < 1e-6);
            assert!((dynamic_alpha(1e12, 25.0, branch) - at_infinity).abs() < 1e-6);
        }
    }

    #[test]
    fn readings_and_regions() {
        let after = |mut alpha: Alpha, region, t, gamma| {
            alpha.handle_overuse(region, t, gamma);
            alpha.factor(region)
        };
        let dynamic = |reading| Alpha::Dynamic { reading, last: 0.9 };
        let (printed, tabulated) = (dynamic(Reading::Printed), dynamic(Reading::Tabulated));
        assert!((after(printed, Region::NearMax, 15.0, 12.5) - 0.990181).abs() < 1e-6);
        assert!((after(tabulated, Region::NearMax, 15.0, 12.5) - 0.973856).abs() < 1e-6);
        for reading in [printed, tabulated] {
            assert!((after(reading, Region::AboveMax, 30.0, 25.0) - 0.973856).abs() < 1e-6);
            for t in [25.0, 0.0, -30.0, f64::NAN] {
                assert_eq!(after(reading, Region::MaxUnknown, t, 25.0), 0.9, "no over-use");
            }
        }
        let fixed = Alpha::ByRegion { near: 0.95, far: 0.9 };
        assert_eq!(
            [Region::NearMax, Region::AboveMax, Region::MaxUnknown].map(|r| after(fixed, r, 99.0, 25.0)),
            [0.95, 0.9, 0.9]
        );
    }
}
