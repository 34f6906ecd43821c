//! What the ends of calls look like while a run in real time goes on: of each the latest picture, for whoever looks.

use crate::network::End;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A larger picture is none for a page.
const LARGEST: usize = 1 << 20;

/// Pictures of the ends of flows. Copies are the same place; who puts one there waits for nobody, and ten a second are as many
/// as anybody looks at.
#[derive(Clone, Debug, Default)]
pub struct Pictures(Arc<Mutex<BTreeMap<(usize, u8), Picture>>>);

/// A picture and its number among those of its end; the first is 1.
type Picture = (u64, Arc<[u8]>);

impl Pictures {
    /// An end of a flow looks like this, as JPEG. One that is too large is forgotten.
    pub fn put(&self, flow: usize, end: End, jpeg: Vec<u8>) {
        if jpeg.len() > LARGEST {
            return;
        }
        let mut pictures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = pictures.get(&(flow, end as u8)).map_or(1, |(last, _)| last + 1);
        pictures.insert((flow, end as u8), (number, jpeg.into()));
    }

    /// The latest picture of an end with its number, if that is another than `seen`.
    pub fn since(&self, flow: usize, end: End, seen: u64) -> Option<(u64, Arc<[u8]>)> {
        let pictures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pictures.get(&(flow, end as u8)).filter(|(number, _)| *number != seen).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_is_kept_of_each_end() {
        let pictures = Pictures::default();
        assert_eq!(pictures.since(0, End::Sender, 0), None);
        pictures.clone().put(0, End::Sender, vec![1]);
        assert_eq!(pictures.since(0, End::Sender, 0), Some((1, vec![1].into())));
        assert_eq!(pictures.since(0, End::Sender, 1), None, "it has been seen");
        assert_eq!(pictures.since(0, End::Receiver, 0), None, "of another end");
        assert_eq!(pictures.since(1, End::Sender, 0), None, "of another flow");
        pictures.put(0, End::Sender, vec![2]);
        pictures.put(0, End::Sender, vec![3]);
        assert_eq!(pictures.since(0, End::Sender, 1), Some((3, vec![3].into())));
        pictures.put(0, End::Sender, vec![0; LARGEST + 1]);
        assert_eq!(pictures.since(0, End::Sender, 3), None, "too large");
    }
}
