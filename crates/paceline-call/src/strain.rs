//! What of a run with browsers shows the machine and not the path.

use std::sync::atomic::{AtomicU32, Ordering};

/// A sender whose quality the processor limits in more than this share of its statistics would have sent something else on a
/// quiet machine.
const BY_CPU: f64 = 0.1;

/// Counts of all calls of a run.
#[derive(Debug, Default)]
pub struct Strain {
    /// Looks at statistics of senders, and those of them that the processor limited.
    looks: AtomicU32,
    by_cpu: AtomicU32,
    /// Pictures that were told too late for their time.
    late: AtomicU32,
}

impl Strain {
    /// A look at a sender's statistics.
    pub fn looked(&self, by_cpu: bool) {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.by_cpu.fetch_add(by_cpu.into(), Ordering::Relaxed);
    }

    /// A picture came to a screen; `late`: its row has a later time than it.
    pub fn rendered(&self, late: bool) {
        self.late.fetch_add(late.into(), Ordering::Relaxed);
    }

    /// Why the run was a disturbed one; none: it was not.
    pub fn disturbed(&self) -> Option<String> {
        let [looks, by_cpu, late] = [&self.looks, &self.by_cpu, &self.late].map(|count| count.load(Ordering::Relaxed));
        match () {
            () if late > 0 => Some(format!("{late} pictures were told too late for their time")),
            () if f64::from(by_cpu) > BY_CPU * f64::from(looks) => {
                Some(format!("the processor limited a browser's encoder in {by_cpu} of {looks} looks at it"))
            }
            () => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_disturbs_and_a_moment_does_not() {
        let of = |looks: u32, by_cpu: u32, late: u32| {
            let strain = Strain::default();
            (0..looks).for_each(|n| strain.looked(n < by_cpu));
            (0..600).for_each(|n| strain.rendered(n < late));
            strain.disturbed()
        };
        assert_eq!((of(0, 0, 0), of(20, 0, 0), of(20, 2, 0)), (None, None, None));
        assert!(of(20, 3, 0).is_some_and(|why| why.contains("in 3 of 20 looks")));
        assert!(of(20, 0, 1).is_some_and(|why| why.starts_with("1 pictures")));
    }
}
