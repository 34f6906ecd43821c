// SPDX-License-Identifier: MIT OR Apache-2.0
//! Media that several links share: the links transmit one after the other, in an order that the medium decides.
//!
//! A link with packets requests the medium. The medium decides from arrival times, capacities and seed alone when the link
//! transmits, and what else happens to the packets. The driver calls [`Medium::advance`] before and after each arrival at
//! a member and each change of one, and at [`Medium::next_start`]; a late call makes the same decisions.
//!
//! To add one: a [`MediumKind`], a file here, and a link server that names it, which declares its scenario keys.

mod half_duplex;
mod wifi;

use super::hop::Link;
use super::medium_plan::{MediumKind, MediumPlan};
use crate::parameter::Values;
use half_duplex::HalfDuplex;
use paceline_units::{RandomStreams, Time};
use wifi::Wifi;

/// A medium that links share. It knows its links by their indices in a slice, which the driver passes to each call.
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

/// A link that shares a medium.
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
    hops: impl Iterator<Item = (&'a str, Option<&'a MediumPlan>)> + Clone,
    streams: &RandomStreams,
) -> (Vec<Box<dyn Medium>>, Vec<Option<u16>>) {
    let mut names: Vec<&str> = Vec::new();
    let mut medium_of = Vec::new();
    for (_, plan) in hops.clone() {
        let index = plan.map(|plan| {
            names.iter().position(|other| *other == plan.name).unwrap_or_else(|| {
                names.push(&plan.name);
                names.len() - 1
            })
        });
        medium_of.push(index.map(|index| index as u16));
    }
    let build = |name: &&str| {
        let of_name = |(hop, (id, plan)): (usize, (&'a str, Option<&'a MediumPlan>))| {
            let plan = plan.filter(|plan| plan.name == **name)?;
            Some((plan.kind, Member { hop, id, values: &plan.values }))
        };
        let (kinds, members): (Vec<_>, Vec<_>) = hops.clone().enumerate().filter_map(of_name).unzip();
        let medium: Box<dyn Medium> = match kinds[0] {
            MediumKind::HalfDuplex => Box::new(HalfDuplex::new(members.iter().map(|member| member.hop).collect())),
            MediumKind::Wifi => Box::new(Wifi::new(&members, streams, &format!("medium/{name}"))),
        };
        medium
    };
    (names.iter().map(build).collect(), medium_of)
}
