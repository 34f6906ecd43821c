//! Where a packet stands in its stream's sequence: what is missing before it, or that it comes late.

use paceline_units::StreamId;

/// A packet's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Above all before it; so many are missing in between.
    Next {
        /// How many.
        missing: u32,
    },
    /// Below the highest.
    Late,
    /// The highest, once more.
    Again,
}

/// The highest number of each stream.
#[derive(Clone, Debug, Default)]
pub struct Sequences {
    highest: Vec<(StreamId, u16)>,
}

impl Sequences {
    /// A packet of this number came.
    pub fn handle_arrival(&mut self, stream: StreamId, sequence: u16) -> Place {
        let Some((_, highest)) = self.highest.iter_mut().find(|(id, _)| *id == stream) else {
            self.highest.push((stream, sequence));
            return Place::Next { missing: 0 };
        };
        match sequence.wrapping_sub(*highest) as i16 {
            0 => Place::Again,
            ahead if ahead > 0 => {
                *highest = sequence;
                Place::Next { missing: ahead as u32 - 1 }
            }
            _ => Place::Late,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two streams, one of which wraps.
    #[test]
    fn gaps_are_found_stream_by_stream() {
        let mut sequences = Sequences::default();
        let mut place = |stream, sequence| sequences.handle_arrival(StreamId(stream), sequence);
        let next = |missing| Place::Next { missing };
        assert_eq!([place(0, 65_534), place(0, 65_535), place(0, 2)], [next(0), next(0), next(2)]);
        assert_eq!([place(1, 40_000), place(1, 40_001)], [next(0), next(0)]);
        assert_eq!([place(0, 0), place(0, 2), place(0, 3)], [Place::Late, Place::Again, next(0)]);
    }
}
