// SPDX-License-Identifier: MIT OR Apache-2.0
//! The routes of all flows, one after the other in one list.

/// A hop of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub hop: u16,
    /// Whether the hop clears the ECN field of the packets that enter.
    pub clears_ecn: bool,
}

/// The hops of each route, with an end after each. Equal routes are stored once, so they stay in the processor's cache.
#[derive(Debug)]
pub(super) struct Routes {
    steps: Vec<Option<Step>>,
    /// Of each hop.
    clears_ecn: Vec<bool>,
}

impl Routes {
    /// Creates a list without routes. `clears_ecn`: whether each hop clears the ECN field.
    pub fn new(clears_ecn: Vec<bool>) -> Self {
        Self { steps: Vec::new(), clears_ecn }
    }

    /// Adds a route, unless an equal one, or a longer one that ends with it, is there. Returns the place of its first hop.
    ///
    /// # Panics
    ///
    /// Panics if a hop has a number above `u16::MAX`.
    pub fn add(&mut self, hops: &[usize]) -> u32 {
        let step = |hop: &usize| {
            let number = u16::try_from(*hop).expect("a network has at most 65,536 hops");
            Some(Step { hop: number, clears_ecn: self.clears_ecn[*hop] })
        };
        let route: Vec<Option<Step>> = hops.iter().map(step).chain([None]).collect();
        let known = self.steps.windows(route.len()).position(|steps| steps == route);
        known.unwrap_or_else(|| {
            self.steps.extend(route);
            self.steps.len() - hops.len() - 1
        }) as u32
    }

    /// Returns the hop at a place; `None` at the end of a route.
    #[inline]
    pub fn step(&self, place: u32) -> Option<Step> {
        self.steps[place as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_route_is_read_hop_by_hop_and_equal_ones_share_their_place() {
        let mut routes = Routes::new(vec![false, true, false]);
        let all: [&[usize]; 6] = [&[0, 1], &[], &[2], &[1], &[0, 1], &[1, 0]];
        let places = all.map(|route| routes.add(route));
        for (route, place) in all.iter().zip(places) {
            let read: Vec<usize> = (place..)
                .map_while(|place| routes.step(place))
                .inspect(|step| assert_eq!(step.clears_ecn, step.hop == 1))
                .map(|step| usize::from(step.hop))
                .collect();
            assert_eq!(read, *route);
        }
        assert_eq!((places[4], places[3], places[1]), (places[0], places[0] + 1, places[0] + 2));
    }
}
