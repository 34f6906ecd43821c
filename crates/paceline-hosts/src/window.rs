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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

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
