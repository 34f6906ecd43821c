//! Four classes of packets by DSCP, as those of Wi-Fi (RFC 8325, section 4.3, figure 1), each with a FIFO queue.

use super::fifo::Fifo;
use super::{LimitCheck, LinkRate, QueuedPacket};
use paceline_units::{DataSize, Dscp};

/// Number of classes.
pub(super) const CLASSES: usize = 4;

/// Returns the class of a packet: 0 voice, 1 video, 2 best effort, 3 background.
pub(super) fn class_of(dscp: Dscp) -> usize {
    match dscp.bits() {
        // EF, VA, CS6, CS7.
        46 | 44 | 48 | 56 => 0,
        // CS5, AF4x, CS4, AF3x, CS3.
        40 | 34 | 36 | 38 | 32 | 26 | 28 | 30 | 24 => 1,
        // CS1, and LE (RFC 8622, section 8).
        8 | 1 => 3,
        _ => 2,
    }
}

/// A queue for each class, and their sums.
#[derive(Debug, Default)]
pub(super) struct Classes {
    pub queues: [Fifo; CLASSES],
}

impl Classes {
    pub fn packets(&self) -> usize {
        self.queues.iter().map(Fifo::len).sum()
    }

    pub fn bytes(&self) -> DataSize {
        self.queues.iter().map(Fifo::bytes).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.queues.iter().all(Fifo::is_empty)
    }

    /// Returns whether a packet of `size` fits the limit of all queues together.
    pub fn has_room(&self, limit: &mut LimitCheck, size: DataSize, rate: LinkRate<'_>) -> bool {
        limit.fits(self.bytes(), self.packets(), size, rate)
    }

    /// Removes the last packet of a class.
    pub fn pop_last(&mut self, class: usize) -> Option<QueuedPacket> {
        self.queues[class].pop_last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codepoints_are_in_the_classes_of_rfc_8325() {
        let of = |names: &[&str]| names.iter().map(|name| class_of(name.parse().unwrap())).collect::<Vec<_>>();
        assert_eq!(of(&["EF", "VA", "CS6", "CS7"]), [0; 4]);
        assert_eq!(of(&["CS5", "AF41", "AF42", "AF43", "CS4", "AF31", "AF32", "AF33", "CS3"]), [1; 9]);
        assert_eq!(of(&["DF", "AF21", "AF23", "CS2", "AF11", "AF13", "63"]), [2; 7]);
        assert_eq!(of(&["CS1", "LE"]), [3; 2]);
    }
}
