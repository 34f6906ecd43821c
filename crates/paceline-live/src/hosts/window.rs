// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters of which each counts once: of sealed datagrams, and of reports of arrivals.

/// Number of counters by which one may be overtaken and still be accepted: some hundred milliseconds of sealed packets of 1200 bytes at
/// 100 Mbit/s. Reports repeat within 200 ms, in which 10 Gbit/s of such packets need some 950.
pub(crate) const WINDOW: u64 = 4096;

/// The counters that were seen: one bit each for the highest and those below it (RFC 6479).
pub(crate) struct Window {
    /// One more than the highest counter; 0 if there was none.
    end: u64,
    bits: [u64; (WINDOW / 64) as usize],
}

impl Default for Window {
    fn default() -> Self {
        Self { end: 0, bits: [0; (WINDOW / 64) as usize] }
    }
}

impl Window {
    fn place(counter: u64) -> (usize, u64) {
        ((counter / 64 % (WINDOW / 64)) as usize, 1 << (counter % 64))
    }

    /// Returns whether a counter is within the window or above it, and was not seen. The word of the highest counter is partly in use, so
    /// the window has one word less.
    pub(crate) fn is_new(&self, counter: u64) -> bool {
        let (word, bit) = Self::place(counter);
        counter >= self.end || (counter + WINDOW - 64 >= self.end && self.bits[word] & bit == 0)
    }

    /// Records a counter that is new.
    pub(crate) fn insert(&mut self, counter: u64) {
        if counter >= self.end {
            // Words that the window enters are empty.
            let first = self.end.div_ceil(64);
            let last = counter / 64;
            for word in first..=last.min(first.saturating_add(WINDOW / 64)) {
                self.bits[(word % (WINDOW / 64)) as usize] = 0;
            }
            if last > first + WINDOW / 64 {
                self.bits = [0; (WINDOW / 64) as usize];
            }
            self.end = counter + 1;
        }
        let (word, bit) = Self::place(counter);
        self.bits[word] |= bit;
    }
}

/// The sequence numbers of a stream that were seen, of 16 bits.
#[derive(Default)]
pub(crate) struct SeenNumbers {
    /// The latest number without its wraps. It starts high enough for numbers before the first one.
    latest: Option<u64>,
    window: Window,
}

impl SeenNumbers {
    /// Records a number. Returns whether it is new: not within the last 4032 numbers, or not seen.
    pub(crate) fn insert(&mut self, number: u16) -> bool {
        let latest = self.latest.unwrap_or(1 << 16 | u64::from(number));
        let extended = latest.wrapping_add_signed(i64::from(number.wrapping_sub(latest as u16) as i16));
        self.latest = Some(latest.max(extended));
        let is_new = self.window.is_new(extended) || extended + WINDOW - 64 < self.window.end;
        if self.window.is_new(extended) {
            self.window.insert(extended);
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn numbers_are_new_once_also_across_a_wrap() {
        let mut seen = SeenNumbers::default();
        assert!(seen.insert(65_530) && seen.insert(65_520), "a number before the first one");
        assert!((65_531..=65_535).chain(0..10_000).all(|number| seen.insert(number)));
        assert!(![9_999, 9_000, 6_000].map(|number| seen.insert(number)).contains(&true));
        assert!(seen.insert(5_000), "too old to know");
        assert!((10_000..=65_535).all(|number| seen.insert(number)));
        assert!(!seen.insert(65_535) && seen.insert(0));
    }

    proptest! {
        #[test]
        fn the_window_accepts_each_counter_once(steps in prop::collection::vec((any::<bool>(), 0u64..6000), 1..300)) {
            let (mut window, mut seen, mut base) = (Window::default(), BTreeSet::new(), 0u64);
            for (forward, step) in steps {
                let counter = if forward { base + step } else { base.saturating_sub(step) };
                if window.is_new(counter) {
                    prop_assert!(seen.insert(counter), "{counter} twice");
                    window.insert(counter);
                } else {
                    let is_old = counter + WINDOW - 64 < window.end;
                    prop_assert!(is_old || seen.contains(&counter), "{counter} was not seen");
                }
                base = base.max(counter);
            }
        }
    }
}
