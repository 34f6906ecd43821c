// SPDX-License-Identifier: MIT OR Apache-2.0
//! A value that changes at given times.

use paceline_units::Time;

/// A piecewise-constant value: each point is in force from its time to the next; the first also before its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule<T> {
    points: Vec<(Time, T)>,
}

impl<T> Schedule<T> {
    /// Returns a schedule of one value.
    pub fn constant(value: T) -> Self {
        Self { points: vec![(Time::ZERO, value)] }
    }

    /// Returns a schedule of values from their times on; `None` if there is none or times do not strictly increase.
    pub fn new(points: Vec<(Time, T)>) -> Option<Self> {
        let sorted = points.windows(2).all(|w| w[0].0 < w[1].0);
        (!points.is_empty() && sorted).then_some(Self { points })
    }

    /// Returns the points in order of time.
    pub fn points(&self) -> &[(Time, T)] {
        &self.points
    }

    /// Returns the value in force at `now`.
    #[inline]
    pub fn at(&self, now: Time) -> &T {
        &self.points[self.index_at(now)].1
    }

    /// Returns the index of the point in force at `now`.
    #[inline]
    pub(crate) fn index_at(&self, now: Time) -> usize {
        match self.points.len() {
            1 => 0,
            // So few are found sooner from the end.
            2..=8 => self.points.iter().rposition(|(from, _)| *from <= now).unwrap_or(0),
            _ => self.points.partition_point(|(from, _)| *from <= now).saturating_sub(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_point_is_in_force_until_the_next() {
        let s = Schedule::new(vec![(Time::from_secs(0), 'a'), (Time::from_secs(50), 'b')]).unwrap();
        assert_eq!((*s.at(Time::ZERO), *s.at(Time::from_nanos(49_999_999_999))), ('a', 'a'));
        assert_eq!((*s.at(Time::from_secs(50)), *s.at(Time::MAX)), ('b', 'b'));
        assert_eq!(Schedule::<u8>::new(vec![]), None);
        assert_eq!(Schedule::new(vec![(Time::ZERO, 1), (Time::ZERO, 2)]), None);
    }
}
