//! The parameters that a table gives to the entry of a registry.

use super::{Checked, Resolver};
use crate::error::suggestion;
use crate::forms::Limit;
use crate::parameters::{Given, Parameters};
use crate::text_span::{HasTextSpan, Spanned, Table, TextSpan};
use paceline_netsim::link::queue::QueueLimit;
use paceline_netsim::parameter::{Parameter, ParameterKind, Value, Values};

/// The entry of a registry whose parameters a table gives.
pub(super) struct Owner<'a> {
    /// The kind of the entry, for messages.
    pub what: &'static str,
    pub name: &'a str,
    pub parameters: &'static [Parameter],
    /// The location of the name, for a parameter that is missing.
    pub at: TextSpan,
    /// The hop or flow, for messages.
    pub place: String,
    /// Whether values outside the range of their parameter are errors here. Otherwise the entry checks them.
    pub checks_ranges: bool,
}

impl Resolver<'_> {
    /// Returns the values of an entry's parameters: those that the table gives, and the defaults. `level` converts a level
    /// of a queue.
    pub(super) fn parameters<E>(
        &mut self,
        of: &Owner<'_>,
        table: &Table<Parameters<E>>,
        mut level: impl FnMut(&mut Self, &str, &Spanned<Limit>) -> Checked<QueueLimit>,
    ) -> Checked<Values> {
        let Owner { what, name: entry, parameters, at, place, checks_ranges } = of;
        let (mut values, mut texts) = (Vec::new(), Vec::new());
        for (name, given) in table.get().iter() {
            let Some(parameter) = parameters.iter().find(|p| p.name == name) else {
                let known: Vec<&str> = parameters.iter().map(|p| p.name).collect();
                let help = if known.is_empty() { "leave it out".to_owned() } else { suggestion(name, &known) };
                let key = table.key(name).unwrap_or(given.text_span());
                return self.fail(&key, format!("the {what} `{entry}` has no `{name}`"), help);
            };
            let value = match given {
                Given::Time(spanned) => Value::Time(*spanned.get()),
                Given::Fraction(spanned) => Value::Fraction(*spanned.get()),
                Given::Number(spanned) => Value::Number(*spanned.get()),
                Given::Count(spanned) => Value::Count(*spanned.get()),
                Given::Size(spanned) => Value::Size(*spanned.get()),
                Given::Rate(spanned) => Value::Rate(*spanned.get()),
                Given::Text(spanned) => {
                    texts.push((parameter.name, spanned.get().clone()));
                    continue;
                }
                Given::Flag(spanned) => Value::Flag(*spanned.get()),
                Given::Level(spanned) => Value::Level(level(self, name, spanned)?),
            };
            if *checks_ranges && !parameter.allows(value) {
                let range = parameter.range().unwrap_or_default();
                return self.fail(given, format!("`{name}` must be {range}"), "leave the key out for its default");
            }
            values.push((parameter.name, value));
        }
        let is_given = |p: &Parameter| table.get().iter().any(|(name, _)| name == p.name);
        let missing = parameters.iter().find(|p| p.is_required && !is_given(p));
        if let Some(Parameter { name, kind, description, .. }) = missing {
            let example = match kind {
                ParameterKind::Fraction => "\"1 %\"",
                ParameterKind::Time(..) => "\"10 ms\"",
                ParameterKind::Size(..) => "\"15 KB\"",
                ParameterKind::Rate => "\"1 Mbps\"",
                ParameterKind::Text => "\"…\"",
                ParameterKind::Level => "\"10 packets\"",
                ParameterKind::Flag => "true",
                ParameterKind::Number(..) | ParameterKind::Count(..) => "1",
            };
            let message = format!("the {what} `{entry}` of the {place} needs `{name}`");
            return self.fail(at, message, format!("add `{name} = {example}`: {description}"));
        }
        Ok(Values::new(parameters, &values).with_texts(texts))
    }
}
