//! What the ends of calls look like: of each the latest picture.

use paceline_lab::network::End;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// No more than ten a second of each end are kept: a page shows no more.
const APART: Duration = Duration::from_millis(95);

/// A larger picture is none for a page.
const LARGEST: usize = 1 << 20;

/// Pictures of the ends of flows, for whoever looks. Copies are the same place; nobody ever waits for anybody.
#[derive(Clone, Debug, Default)]
pub struct Pictures(Arc<Mutex<BTreeMap<(usize, u8), Picture>>>);

#[derive(Debug)]
struct Picture {
    number: u64,
    at: Instant,
    jpeg: Arc<[u8]>,
}

impl Pictures {
    /// Whether a picture of this end would be kept now: who has to encode one need not otherwise.
    pub fn wants(&self, flow: usize, end: End) -> bool {
        let pictures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pictures.get(&(flow, end as u8)).is_none_or(|last| last.at.elapsed() >= APART)
    }

    /// An end of a flow looks like this, as JPEG. One that comes too soon after the last is forgotten.
    pub fn put(&self, flow: usize, end: End, jpeg: Vec<u8>) {
        if jpeg.len() > LARGEST || !self.wants(flow, end) {
            return;
        }
        let mut pictures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = pictures.get(&(flow, end as u8)).map_or(1, |last| last.number + 1);
        pictures.insert((flow, end as u8), Picture { number, at: Instant::now(), jpeg: jpeg.into() });
    }

    /// The picture of an end and its number, if it is another than the one of this number; the first is 1.
    pub(crate) fn since(&self, flow: usize, end: End, number: u64) -> Option<(u64, Arc<[u8]>)> {
        let pictures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let picture = pictures.get(&(flow, end as u8)).filter(|p| p.number != number)?;
        Some((picture.number, picture.jpeg.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_is_kept_and_ten_a_second_are_enough() {
        let pictures = Pictures::default();
        assert!(pictures.wants(0, End::Sender) && pictures.since(0, End::Sender, 0).is_none());
        pictures.clone().put(0, End::Sender, vec![1]);
        assert_eq!(pictures.since(0, End::Sender, 0), Some((1, vec![1].into())));
        assert_eq!(pictures.since(0, End::Sender, 1), None, "it has been seen");
        assert_eq!(pictures.since(0, End::Receiver, 0), None, "of another end");
        pictures.put(0, End::Sender, vec![2]);
        assert!(!pictures.wants(0, End::Sender));
        assert_eq!(pictures.since(0, End::Sender, 1), None, "too soon");
        pictures.put(0, End::Receiver, vec![0; LARGEST + 1]);
        assert_eq!(pictures.since(0, End::Receiver, 0), None, "too large");
        std::thread::sleep(APART);
        pictures.put(0, End::Sender, vec![3]);
        assert_eq!(pictures.since(0, End::Sender, 1), Some((2, vec![3].into())));
    }
}
