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
//! The equations contradict the thesis's own table 2 ([`table_2`]). By them `alpha` lies between 0.9015 and 0.9923, near the
//! maximum between 0.9517 and 1: it never falls to the constant that it replaces, and cannot take "even 0.85".

use super::Region;
use libm::{exp, round};

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

/// A line of table 2 beside what the equations give.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TableCell {
    /// The threshold, ms.
    pub gamma: f64,
    /// The scaled gradient, ms.
    pub t: f64,
    /// `alpha` as the thesis tabulates it.
    pub tabulated: f64,
    /// `alpha` by the line of equation 4.2 for above max and max unknown.
    pub elsewhere: f64,
    /// `alpha` by the line for near max.
    pub near_max: f64,
}

impl TableCell {
    /// The line of equation 4.2 that the threshold stands for: the whole threshold means that the maximum is unknown;
    /// of the two regions with half of it, near max is the one with a line of its own.
    pub fn branch(&self) -> Branch {
        if self.gamma == THRESHOLD { Branch::Elsewhere } else { Branch::NearMax }
    }
    /// `alpha` by a line of equation 4.2.
    pub fn alpha(&self, branch: Branch) -> f64 {
        match branch {
            Branch::NearMax => self.near_max,
            Branch::Elsewhere => self.elsewhere,
        }
    }
    /// Whether a line of equation 4.2, rounded as the table is, gives something else than it says.
    pub fn is_contradicted_by(&self, branch: Branch) -> bool {
        round(100.0 * self.alpha(branch)) != round(100.0 * self.tabulated)
    }
    /// Whether the line of equation 4.2 that the threshold stands for gives something else than the table says.
    pub fn is_contradicted(&self) -> bool {
        self.is_contradicted_by(self.branch())
    }
}

/// The default threshold, ms.
const THRESHOLD: f64 = 25.0;

/// Table 2 of the thesis ("different assumed T values and the expected dynamic alpha"), each line with what equations
/// 4.1 to 4.4 give.
pub fn table_2() -> [TableCell; 10] {
    const HALF: f64 = THRESHOLD / 2.0;
    const TABULATED: [(f64, f64, f64); 10] = [
        (THRESHOLD, 26.0, 0.99),
        (THRESHOLD, 45.0, 0.95),
        (THRESHOLD, 100.0, 0.92),
        (THRESHOLD, 1000.0, 0.91),
        (THRESHOLD, 5000.0, 0.90),
        (HALF, 13.0, 0.99),
        (HALF, 20.0, 0.96),
        (HALF, 45.0, 0.93),
        (HALF, 100.0, 0.91),
        (HALF, 5000.0, 0.90),
    ];
    TABULATED.map(|(gamma, t, tabulated)| TableCell {
        gamma,
        t,
        tabulated,
        elsewhere: dynamic_alpha(t, gamma, Branch::Elsewhere),
        near_max: dynamic_alpha(t, gamma, Branch::NearMax),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Six of ten lines contradict the equation; read as `(0.99 - b) / 1.3` throughout, three do.
    #[test]
    fn table_2_contradicts_the_equations() {
        let table = table_2();
        let contradicted = |by: &dyn Fn(&TableCell) -> bool| -> Vec<(f64, f64)> {
            table.iter().filter(|c| by(c)).map(|c| (c.gamma, c.t)).collect()
        };
        let near = [(12.5, 13.0), (12.5, 20.0), (12.5, 45.0), (12.5, 100.0), (12.5, 5000.0)];
        assert_eq!(contradicted(&TableCell::is_contradicted), [&[(25.0, 1000.0)][..], &near].concat());
        let everywhere = |c: &TableCell| c.is_contradicted_by(Branch::Elsewhere);
        assert_eq!(contradicted(&everywhere), [(25.0, 1000.0), (12.5, 20.0), (12.5, 45.0)]);
    }

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
