//! The numbers of a config: each with a name, a unit, a range and a source, from which `--set`, the docs, sensitivity
//! runs and sweeps derive.
//!
//! A config of one piece has a table of [`Field`]s. One that is made of blocks goes through them: each [`Block`] brings
//! its own numbers and says what they are; the config adds whence their defaults are, and so which of them it offers.

use paceline_units::{Rate, TimeDelta};

/// One number of a config.
pub struct Field<C: 'static> {
    /// Its name, as `--set` takes it.
    pub name: &'static str,
    /// Its unit; empty for pure numbers.
    pub unit: &'static str,
    /// What it is and where its default comes from.
    pub source: &'static str,
    /// Lowest and highest value that make sense, both allowed.
    pub range: (f64, f64),
    /// Reads it.
    pub get: fn(&C) -> f64,
    /// Writes it.
    pub set: fn(&mut C, f64),
}

/// A field without its type: what help and docs print.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldInfo {
    /// Its name.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// What it is and where its default comes from.
    pub source: String,
    /// Lowest and highest value.
    pub range: (f64, f64),
    /// Its value in this entry's config.
    pub default: f64,
}

/// A part of a config that brings its own numbers.
pub trait Block {
    /// Goes through them.
    fn fields(&mut self, fields: &mut Fields<'_>);
}

/// Goes through the numbers of a config: lists them all, and may change one on its way.
pub struct Fields<'a> {
    listed: Vec<FieldInfo>,
    /// What is to be changed, and to what.
    change: Option<(&'a str, f64)>,
    /// Within a block: what of it is offered, and whence.
    sources: Option<Sources>,
}

/// Names of a block's numbers, each with what follows the block's own words: where the default comes from.
pub type Sources = &'static [(&'static str, &'static str)];

impl<'a> Fields<'a> {
    /// What `through` lists, with the values before the change.
    pub(crate) fn listed(change: Option<(&'a str, f64)>, through: impl FnOnce(&mut Self)) -> Vec<FieldInfo> {
        let mut fields = Self { listed: Vec::new(), change, sources: None };
        through(&mut fields);
        fields.listed
    }

    /// A whole table.
    pub fn table<C>(&mut self, config: &mut C, table: &[Field<C>]) {
        for field in table {
            let mut value = (field.get)(config);
            let before = value;
            self.number(field.name, field.unit, field.range, &mut value).says(field.source);
            if value != before {
                (field.set)(config, value);
            }
        }
    }

    /// The numbers of a block that have a source here. Panics for a source of none: that is a slip in the program.
    pub fn block(&mut self, block: &mut impl Block, sources: Sources) {
        let (outer, first) = (self.sources.replace(sources), self.listed.len());
        block.fields(self);
        self.sources = outer;
        let found = |name: &str| self.listed[first..].iter().any(|info| info.name == name);
        sources.iter().for_each(|(name, _)| assert!(found(name), "the block has no `{name}`"));
    }

    /// A number.
    pub fn number(&mut self, name: &'static str, unit: &'static str, range: (f64, f64), place: &mut f64) -> Listed<'_> {
        let source = match self.sources.map(|all| all.iter().find(|(of, _)| *of == name)) {
            None => "",
            Some(Some((_, source))) => source,
            Some(None) => return Listed(None),
        };
        self.listed.push(FieldInfo { name, unit, source: source.to_owned(), range, default: *place });
        if let Some((of, value)) = self.change
            && of == name
        {
            *place = value;
        }
        Listed(self.listed.last_mut())
    }

    /// A time, in milliseconds.
    pub fn millis(&mut self, name: &'static str, range: (f64, f64), place: &mut TimeDelta) -> Listed<'_> {
        let before = place.as_millis_f64();
        self.converted(name, "ms", range, before, |value| *place = TimeDelta::from_millis_f64(value))
    }

    /// A rate, in bits per second.
    pub fn rate(&mut self, name: &'static str, range: (f64, f64), place: &mut Rate) -> Listed<'_> {
        let before = place.as_bps_f64();
        self.converted(name, "bit/s", range, before, |value| *place = Rate::from_bps_f64(value))
    }

    /// A whole number.
    pub fn count(&mut self, name: &'static str, range: (usize, usize), place: &mut usize) -> Listed<'_> {
        let range = (range.0 as f64, range.1 as f64);
        self.converted(name, "", range, *place as f64, |value| *place = value as usize)
    }

    /// One of several, by its place among them; what is not one of them counts as the first.
    pub fn choice<T: Copy + PartialEq>(&mut self, name: &'static str, of: &[T], place: &mut T) -> Listed<'_> {
        let index = of.iter().position(|one| one == place).unwrap_or(0);
        let last = of.len() - 1;
        self.converted(name, "", (0.0, last as f64), index as f64, |value| {
            *place = of[((value + 0.5) as usize).min(last)];
        })
    }

    /// Whether or not: 1 or 0.
    pub fn flag(&mut self, name: &'static str, place: &mut bool) -> Listed<'_> {
        self.choice(name, &[false, true], place)
    }

    /// A number that the config holds in another form: that is written when the number changes.
    fn converted(
        &mut self,
        name: &'static str,
        unit: &'static str,
        range: (f64, f64),
        before: f64,
        write: impl FnOnce(f64),
    ) -> Listed<'_> {
        let mut value = before;
        let listed = self.number(name, unit, range, &mut value);
        if value != before {
            write(value);
        }
        listed
    }
}

/// A number that was listed, unless the config does not offer it.
#[must_use = "say what it is"]
pub struct Listed<'a>(Option<&'a mut FieldInfo>);

impl Listed<'_> {
    /// What it is, and in a config's own numbers where its default comes from.
    pub fn says(self, what: &str) {
        if let Some(info) = self.0 {
            info.source.insert_str(0, what);
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
        fn fields(&mut self, fields: &mut Fields<'_>) {
            fields.number("low", "B", (0.0, 9.0), &mut self.low).says("least");
            fields.millis("high_ms", (0.0, 9.0), &mut self.high).says("most");
        }
    }

    const PART: Part = Part { low: 1.0, high: TimeDelta::from_millis(5) };

    fn through(part: &mut Part, change: Option<(&str, f64)>, sources: Sources) -> Vec<FieldInfo> {
        Fields::listed(change, |fields| fields.block(part, sources))
    }

    /// A number without a source is not offered, and so cannot be set.
    #[test]
    fn a_config_offers_what_it_has_a_source_for() {
        let mut part = PART;
        let listed = through(&mut part, Some(("low", 3.0)), &[("high_ms", ", eq. 1")]);
        let high =
            FieldInfo { name: "high_ms", unit: "ms", source: "most, eq. 1".into(), range: (0.0, 9.0), default: 5.0 };
        assert_eq!((listed, part), (vec![high], PART));
        let all: Sources = &[("high_ms", ""), ("low", "")];
        let listed = through(&mut part, Some(("high_ms", 2.0)), all);
        assert_eq!(listed.iter().map(|info| info.default).collect::<Vec<_>>(), [1.0, 5.0], "as it was");
        assert_eq!(part, Part { high: TimeDelta::from_millis(2), ..PART });
    }

    #[test]
    #[should_panic = "the block has no `hihg_ms`"]
    fn a_source_of_nothing_is_a_slip() {
        through(&mut PART.clone(), None, &[("hihg_ms", "")]);
    }

    /// 1.49 is nearer to the second of three.
    #[test]
    fn choices_by_number() {
        let chosen = |value| {
            let mut place = 'a';
            let listed =
                Fields::listed(Some(("x", value)), |f| f.choice("x", &['a', 'b', 'c'], &mut place).says("one"));
            assert_eq!((listed[0].default, listed[0].range), (0.0, (0.0, 2.0)));
            place
        };
        assert_eq!([0.0, 0.49, 0.5, 1.49, 1.5, 2.0].map(chosen), ['a', 'a', 'b', 'b', 'c', 'c']);
    }
}
