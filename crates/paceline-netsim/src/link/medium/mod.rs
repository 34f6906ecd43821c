// SPDX-License-Identifier: MIT OR Apache-2.0
//! Media on which links transmit one after the other, in an order that the medium decides. Links share some of them; a cell has one
//! link.
//!
//! A link with packets requests the medium. The medium decides from arrival times, capacities and seed alone when the link
//! transmits, and what else happens to the packets. The driver calls [`Medium::advance`] before and after each arrival at
//! a member and each change of one, and at [`Medium::next_start`]; a late call makes the same decisions.
//!
//! To add one: a [`MediumKind`], a file here, and a link server that names it, which declares its scenario keys.

mod cell;
mod half_duplex;
mod wifi;

use super::hop::Link;
use super::medium_plan::{MediumKind, MediumPlan};
use crate::parameter::Values;
use cell::Cell;
use half_duplex::HalfDuplex;
use paceline_units::{RandomStreams, Time};
use wifi::Wifi;

pub(super) use cell::{PATTERN, is_pattern};

/// A medium on which links transmit. It knows its links by their indices in a slice, which the driver passes to each call.
pub trait Medium: Send {
    /// Returns the indices of the links.
    fn members(&self) -> &[usize];

    /// Returns the time of the next transmission, as of the last call of [`advance`](Self::advance); `None` if no link
    /// requests the medium.
    fn next_start(&self, links: &[Link]) -> Option<Time>;

    /// Handles a possible request of the link `hop`, and begins every transmission that is due by `now`. Returns whether
    /// links may have new outputs: those of [`changed`](Self::changed).
    fn advance(&mut self, now: Time, hop: usize, links: &mut [Link]) -> bool;

    /// Returns the links that may have new outputs since the last call of [`advance`](Self::advance).
    fn changed(&self) -> &[usize] {
        self.members()
    }
}

/// A link on a medium.
#[derive(Clone, Copy, Debug)]
struct Member<'a> {
    hop: usize,
    /// The name of the hop.
    id: &'a str,
    values: &'a Values,
}

/// Returns the media that hops share, and the index of the medium of each hop. A hop is given by its name, and by its part in
/// a medium.
pub fn build_media<'a>(
    hops: impl Iterator<Item = (&'a str, Option<&'a MediumPlan>)>,
    streams: &RandomStreams,
) -> (Vec<Box<dyn Medium>>, Vec<Option<u16>>) {
    let mut media: Vec<(&MediumPlan, Vec<Member<'_>>)> = Vec::new();
    let mut medium_of = Vec::new();
    for (hop, (id, plan)) in hops.enumerate() {
        let index = plan.map(|plan| {
            let is_shared = |of: &MediumPlan| of.name == plan.name && !plan.name.is_empty();
            let index = media.iter().position(|(of, _)| is_shared(of)).unwrap_or(media.len());
            if index == media.len() {
                media.push((plan, Vec::new()));
            }
            media[index].1.push(Member { hop, id, values: &plan.values });
            index as u16
        });
        medium_of.push(index);
    }
    let build = |(plan, members): &(&MediumPlan, Vec<Member<'_>>)| -> Box<dyn Medium> {
        match plan.kind {
            MediumKind::HalfDuplex => Box::new(HalfDuplex::new(members.iter().map(|member| member.hop).collect())),
            MediumKind::Wifi => Box::new(Wifi::new(members, streams, &format!("medium/{}", plan.name))),
            MediumKind::Cell => Box::new(Cell::new(&members[0], streams, &format!("cell/{}", members[0].id))),
        }
    };
    (media.iter().map(build).collect(), medium_of)
}
