// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decrease factor `alpha`: a constant of each region, or the "dynamic alpha" of uottawa15 (chapter 4), which
//! decreases the rate less, the closer the gradient is to the threshold.
//!
//! ```text
//! b     = sqrt(exp(-(T - gamma) / T))                                              (4.3)
//! a     = (0.99 - b) / 1.3     above max, max unknown                              (4.2, 4.4)
//!         (1 - b) / 1.14       near max
//! alpha = b + a                                                                    (4.1)
//! ```
//!
//! The listing of section 4.3 replaces the lines of libwebrtc that set the constants, where the region changes. A
//! decrease therefore uses the factor of the change before it, and a change without over-use computes the factor from a
//! `T` that may be below the threshold ([`AlphaVariant::Listing`]).
//!
//! The equations contradict table 2 of the thesis (`paceline reproduce uottawa15/table2`). They give values of `alpha`
//! between 0.9015 and 0.9923, and near the maximum between 0.9517 and 1. By the equations, `alpha` therefore never falls
//! to the constant that it replaces and cannot reach "even 0.85". The listing can: its `T` may be negative.

use super::Region;
use libm::{exp, sqrt};

/// The decrease factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Alpha {
    /// One constant near the maximum, another in the other regions.
    ByRegion {
        /// Near the maximum.
        near: f64,
        /// In the other regions.
        far: f64,
    },
    /// Equation 4.1.
    Dynamic {
        /// The interpretation of equation 4.2.
        variant: AlphaVariant,
        /// The factor computed last; initially 0.9 (section 4.3).
        last: f64,
    },
}

/// When the factor is computed, and by which line of equation 4.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlphaVariant {
    /// As printed, at each decrease: near the maximum `(1 - b) / 1.14`.
    Printed,
    /// As table 2 was probably computed, at each decrease: `(0.99 - b) / 1.3` in every region.
    Tabulated,
    /// As the listing of section 4.3: at each change of the region, by the line of the new region.
    Listing,
}

impl Alpha {
    /// Handles over-use: `T` in ms exceeded the threshold `gamma` in ms. If it did not, the equation is undefined and
    /// the factor does not change.
    pub fn handle_overuse(&mut self, region: Region, t: f64, gamma: f64) {
        if let Self::Dynamic { variant, last } = self
            && *variant != AlphaVariant::Listing
            && t > gamma
            && gamma > 0.0
        {
            *last = dynamic_alpha(t, gamma, variant.branch(region));
        }
    }

    /// Handles a change to `region` (`ChangeRegion`), also to the same one; `T` and `gamma` in ms are those of the last
    /// group. Only the listing computes a factor here, whatever `T` is. A `T` of zero gives no finite factor, and the
    /// factor does not change.
    pub fn handle_region(&mut self, region: Region, t: f64, gamma: f64) {
        if let Self::Dynamic { variant: variant @ AlphaVariant::Listing, last } = self {
            let alpha = dynamic_alpha(t, gamma, variant.branch(region));
            if alpha.is_finite() {
                *last = alpha;
            }
        }
    }

    /// Returns the factor in this region.
    pub fn factor(&self, region: Region) -> f64 {
        match *self {
            Self::ByRegion { near, .. } if region == Region::NearMax => near,
            Self::ByRegion { far, .. } => far,
            Self::Dynamic { last, .. } => last,
        }
    }
}

impl AlphaVariant {
    fn branch(self, region: Region) -> AlphaBranch {
        match (self, region) {
            (Self::Printed | Self::Listing, Region::NearMax) => AlphaBranch::NearMax,
            _ => AlphaBranch::Elsewhere,
        }
    }
}

/// The two branches of equation 4.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlphaBranch {
    /// Near max.
    NearMax,
    /// Above max, and max unknown.
    Elsewhere,
}

/// Returns `alpha` by equation 4.1. For `T` above the threshold it lies between 0.9015 and 1, between zero and the
/// threshold it exceeds 0.9923, and for a negative `T` it lies between 0.7615 and 1.
pub fn dynamic_alpha(t: f64, gamma: f64, branch: AlphaBranch) -> f64 {
    let b = b(t, gamma);
    b + a(b, branch)
}

/// Equation 4.3.
fn b(t: f64, gamma: f64) -> f64 {
    sqrt(exp(-(t - gamma) / t))
}

/// Equations 4.2 and 4.4.
fn a(b: f64, branch: AlphaBranch) -> f64 {
    match branch {
        AlphaBranch::Elsewhere => (0.99 - b) / 1.3,
        AlphaBranch::NearMax => (1.0 - b) / 1.14,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At `T = gamma`, b = 1; for `T` towards infinity, b approaches exp(-1/2) = 0.60653.
    #[test]
    fn limits_of_equation_4_1() {
        for (branch, at_threshold, at_infinity) in
            [(AlphaBranch::Elsewhere, 0.992308, 0.901507), (AlphaBranch::NearMax, 1.0, 0.951679)]
        {
            assert!((dynamic_alpha(25.0, 25.0, branch) - at_threshold).abs() < 1e-6);
            assert!((dynamic_alpha(1e12, 25.0, branch) - at_infinity).abs() < 1e-6);
        }
    }

    #[test]
    fn factor_depends_on_variant_and_region() {
        let after = |mut alpha: Alpha, region, t, gamma| {
            alpha.handle_overuse(region, t, gamma);
            alpha.factor(region)
        };
        let dynamic = |variant| Alpha::Dynamic { variant, last: 0.9 };
        let (printed, tabulated) = (dynamic(AlphaVariant::Printed), dynamic(AlphaVariant::Tabulated));
        assert!((after(printed, Region::NearMax, 15.0, 12.5) - 0.990181).abs() < 1e-6);
        assert!((after(tabulated, Region::NearMax, 15.0, 12.5) - 0.973856).abs() < 1e-6);
        for variant in [printed, tabulated] {
            assert!((after(variant, Region::AboveMax, 30.0, 25.0) - 0.973856).abs() < 1e-6);
            for t in [25.0, 0.0, -30.0, f64::NAN] {
                assert_eq!(after(variant, Region::MaxUnknown, t, 25.0), 0.9, "no over-use");
            }
        }
        let fixed = Alpha::ByRegion { near: 0.95, far: 0.9 };
        assert_eq!(
            [Region::NearMax, Region::AboveMax, Region::MaxUnknown].map(|r| after(fixed, r, 99.0, 25.0)),
            [0.95, 0.9, 0.9]
        );
    }

    /// By hand, gamma = 12.5: T = 5 has b = exp(0.75) = 2.117000 and alpha = b + (0.99 - b) / 1.3 = 1.250077; T = -5 has
    /// b = exp(-1.75) = 0.173774 and alpha = 0.801640, near the maximum 0.898533. Over-use alone computes nothing.
    #[test]
    fn listing_computes_the_factor_where_the_region_changes() {
        let mut alpha = Alpha::Dynamic { variant: AlphaVariant::Listing, last: 0.9 };
        alpha.handle_overuse(Region::MaxUnknown, 30.0, 25.0);
        assert_eq!(alpha.factor(Region::MaxUnknown), 0.9);
        let mut after = |region, t| {
            alpha.handle_region(region, t, 12.5);
            alpha.factor(region)
        };
        for (region, t, expected) in [
            (Region::NearMax, 15.0, 0.990181),
            (Region::AboveMax, 15.0, 0.973856),
            (Region::AboveMax, 5.0, 1.250077),
            (Region::MaxUnknown, -5.0, 0.801640),
            (Region::NearMax, -5.0, 0.898533),
            (Region::NearMax, 0.0, 0.898533),
        ] {
            assert!((after(region, t) - expected).abs() < 1e-6, "{region:?} {t}: {}", after(region, t));
        }
        for variant in [AlphaVariant::Printed, AlphaVariant::Tabulated] {
            let mut alpha = Alpha::Dynamic { variant, last: 0.9 };
            alpha.handle_region(Region::NearMax, 15.0, 12.5);
            assert_eq!(alpha.factor(Region::NearMax), 0.9);
        }
    }
}
