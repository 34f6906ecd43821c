//! Reflection of controller configs: the name, unit, range, description and source of every number that can be set. The
//! `--set` option, the reference pages, sensitivity runs and sweeps are built on it.
//!
//! A config passes each of its numbers to a [`FieldVisitor`]. The numbers of a shared block are declared once, by the
//! [`Block`] itself; a config that contains the block adds the source of its own default to each of them, and offers
//! only those to which it adds a source.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use paceline_units::{DataSize, Rate, TimeDelta};

/// A number of a config, as help texts and reference pages show it.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldInfo {
    /// The name that `--set` accepts.
    pub name: &'static str,
    /// The unit; empty for pure numbers.
    pub unit: &'static str,
    /// A description, followed by the source of the default.
    pub source: String,
    /// The lowest and the highest valid value.
    pub range: (f64, f64),
    /// The value in this config.
    pub default: f64,
}

/// A part of a config that declares its own numbers.
pub trait Block {
    /// Passes each number to the visitor.
    fn fields(&mut self, fields: &mut FieldVisitor<'_>);
}

/// Visits the numbers of a config: records all of them and optionally changes one.
pub struct FieldVisitor<'a> {
    visited: Vec<FieldInfo>,
    /// The name of the number to change, and its new value.
    change: Option<(&'a str, f64)>,
    /// While a block is visited: the numbers that the config offers, with their sources.
    sources: Option<FieldSources>,
}

/// Names of a block's numbers. The second text is appended to the block's description: the source of the default.
pub type FieldSources = &'static [(&'static str, &'static str)];

impl<'a> FieldVisitor<'a> {
    /// Runs `visit` and returns the visited numbers with their values before the change.
    pub(crate) fn collect(change: Option<(&'a str, f64)>, visit: impl FnOnce(&mut Self)) -> Vec<FieldInfo> {
        let mut fields = Self { visited: Vec::new(), change, sources: None };
        visit(&mut fields);
        fields.visited
    }

    /// Visits the numbers of a block that `sources` names.
    ///
    /// # Panics
    /// Panics if `sources` contains a name that the block does not have.
    pub fn block(&mut self, block: &mut impl Block, sources: FieldSources) {
        let (outer, first) = (self.sources.replace(sources), self.visited.len());
        block.fields(self);
        self.sources = outer;
        let found = |name: &str| self.visited[first..].iter().any(|info| info.name == name);
        sources.iter().for_each(|(name, _)| assert!(found(name), "the block has no `{name}`"));
    }

    /// Visits a number.
    pub fn number(
        &mut self,
        name: &'static str,
        unit: &'static str,
        range: (f64, f64),
        value: &mut f64,
    ) -> FieldEntry<'_> {
        let source = match self.sources.map(|all| all.iter().find(|(of, _)| *of == name)) {
            None => "",
            Some(Some((_, source))) => source,
            Some(None) => return FieldEntry(None),
        };
        self.visited.push(FieldInfo { name, unit, source: source.to_owned(), range, default: *value });
        if let Some((of, new)) = self.change
            && of == name
        {
            *value = new;
        }
        FieldEntry(self.visited.last_mut())
    }

    /// Visits a time, in milliseconds.
    pub fn millis(&mut self, name: &'static str, range: (f64, f64), value: &mut TimeDelta) -> FieldEntry<'_> {
        let before = value.as_millis_f64();
        self.converted(name, "ms", range, before, |new| *value = TimeDelta::from_millis_f64(new))
    }

    /// Visits a rate, in bits per second.
    pub fn rate(&mut self, name: &'static str, range: (f64, f64), value: &mut Rate) -> FieldEntry<'_> {
        let before = value.as_bps_f64();
        self.converted(name, "bit/s", range, before, |new| *value = Rate::from_bps_f64(new))
    }

    /// Visits a size, in whole bytes.
    pub fn size(&mut self, name: &'static str, range: (f64, f64), value: &mut DataSize) -> FieldEntry<'_> {
        let before = value.as_bytes() as f64;
        self.converted(name, "B", range, before, |new| *value = DataSize::from_bytes(new as u64))
    }

    /// Visits a whole number.
    pub fn count(
        &mut self,
        name: &'static str,
        unit: &'static str,
        range: (usize, usize),
        value: &mut usize,
    ) -> FieldEntry<'_> {
        let (range, before) = ((range.0 as f64, range.1 as f64), *value as f64);
        self.converted(name, unit, range, before, |new| *value = new as usize)
    }

    /// Visits one of several values, numbered from 0 in the order of `values`. A value that is not among them counts as
    /// the first.
    pub fn choice<T: Copy + PartialEq>(&mut self, name: &'static str, values: &[T], value: &mut T) -> FieldEntry<'_> {
        let index = values.iter().position(|one| one == value).unwrap_or(0);
        let last = values.len() - 1;
        self.converted(name, "", (0.0, last as f64), index as f64, |new| {
            *value = values[((new + 0.5) as usize).min(last)];
        })
    }

    /// Visits a flag: 1 is true, 0 is false.
    pub fn flag(&mut self, name: &'static str, value: &mut bool) -> FieldEntry<'_> {
        self.choice(name, &[false, true], value)
    }

    /// Visits a number that the config stores in another type. `write` is called only if the number changes, so that a
    /// conversion never alters a default.
    fn converted(
        &mut self,
        name: &'static str,
        unit: &'static str,
        range: (f64, f64),
        before: f64,
        write: impl FnOnce(f64),
    ) -> FieldEntry<'_> {
        let mut value = before;
        let entry = self.number(name, unit, range, &mut value);
        if value != before {
            write(value);
        }
        entry
    }
}

/// A visited number that lacks its description, or nothing if the config does not offer the number.
#[must_use = "every number needs a description"]
pub struct FieldEntry<'a>(Option<&'a mut FieldInfo>);

impl FieldEntry<'_> {
    /// Sets the description. For a number outside any block it ends with the source of the default.
    pub fn describe(self, description: &str) {
        if let Some(info) = self.0 {
            info.source.insert_str(0, description);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Part {
        low: f64,
        high: TimeDelta,
    }

    impl Block for Part {
        fn fields(&mut self, fields: &mut FieldVisitor<'_>) {
            fields.number("low", "B", (0.0, 9.0), &mut self.low).describe("least");
            fields.millis("high_ms", (0.0, 9.0), &mut self.high).describe("most");
        }
    }

    const PART: Part = Part { low: 1.0, high: TimeDelta::from_millis(5) };

    fn visit(part: &mut Part, change: Option<(&str, f64)>, sources: FieldSources) -> Vec<FieldInfo> {
        FieldVisitor::collect(change, |fields| fields.block(part, sources))
    }

    #[test]
    fn block_numbers_without_source_are_not_offered() {
        let mut part = PART;
        let fields = visit(&mut part, Some(("low", 3.0)), &[("high_ms", ", eq. 1")]);
        let high =
            FieldInfo { name: "high_ms", unit: "ms", source: "most, eq. 1".into(), range: (0.0, 9.0), default: 5.0 };
        assert_eq!((fields, part), (vec![high], PART));
        let all: FieldSources = &[("high_ms", ""), ("low", "")];
        let fields = visit(&mut part, Some(("high_ms", 2.0)), all);
        assert_eq!(fields.iter().map(|info| info.default).collect::<Vec<_>>(), [1.0, 5.0], "values before the change");
        assert_eq!(part, Part { high: TimeDelta::from_millis(2), ..PART });
    }

    #[test]
    #[should_panic = "the block has no `hihg_ms`"]
    fn unknown_name_in_sources_panics() {
        visit(&mut PART.clone(), None, &[("hihg_ms", "")]);
    }

    #[test]
    fn choice_rounds_to_the_nearest_index() {
        let chosen = |value| {
            let mut place = 'a';
            let fields = FieldVisitor::collect(Some(("x", value)), |f| {
                f.choice("x", &['a', 'b', 'c'], &mut place).describe("one");
            });
            assert_eq!((fields[0].default, fields[0].range), (0.0, (0.0, 2.0)));
            place
        };
        assert_eq!([0.0, 0.49, 0.5, 1.49, 1.5, 2.0].map(chosen), ['a', 'a', 'b', 'b', 'c', 'c']);
    }
}
