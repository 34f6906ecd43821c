// SPDX-License-Identifier: MIT OR Apache-2.0
//! Preview images of the ends of calls during a run in real time.

use crate::flow_end::FlowEnd;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum size of an image, bytes.
const LARGEST: usize = 1 << 20;

/// The latest image of each end of each flow. Clones share their state; writers never wait for readers. A reader needs at
/// most ten images per second.
#[derive(Clone, Debug, Default)]
pub struct PreviewImages(Arc<Mutex<BTreeMap<(usize, u8), NumberedImage>>>);

/// An image and its number among those of its end, from 1.
type NumberedImage = (u64, Arc<[u8]>);

impl PreviewImages {
    /// Stores a JPEG image of an end of a flow. An image above 1 MiB is discarded.
    pub fn put(&self, flow: usize, end: FlowEnd, jpeg: Vec<u8>) {
        if jpeg.len() > LARGEST {
            return;
        }
        let mut images = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = images.get(&(flow, end as u8)).map_or(1, |(last, _)| last + 1);
        images.insert((flow, end as u8), (number, jpeg.into()));
    }

    /// Returns the latest image of an end and its number, unless the number is `seen`.
    pub fn since(&self, flow: usize, end: FlowEnd, seen: u64) -> Option<(u64, Arc<[u8]>)> {
        let images = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        images.get(&(flow, end as u8)).filter(|(number, _)| *number != seen).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_latest_image_of_each_end() {
        let images = PreviewImages::default();
        assert_eq!(images.since(0, FlowEnd::Sender, 0), None);
        images.clone().put(0, FlowEnd::Sender, vec![1]);
        assert_eq!(images.since(0, FlowEnd::Sender, 0), Some((1, vec![1].into())));
        assert_eq!(images.since(0, FlowEnd::Sender, 1), None, "already seen");
        assert_eq!(images.since(0, FlowEnd::Receiver, 0), None, "another end");
        assert_eq!(images.since(1, FlowEnd::Sender, 0), None, "another flow");
        images.put(0, FlowEnd::Sender, vec![2]);
        images.put(0, FlowEnd::Sender, vec![3]);
        assert_eq!(images.since(0, FlowEnd::Sender, 1), Some((3, vec![3].into())));
        images.put(0, FlowEnd::Sender, vec![0; LARGEST + 1]);
        assert_eq!(images.since(0, FlowEnd::Sender, 3), None, "too large");
    }
}
