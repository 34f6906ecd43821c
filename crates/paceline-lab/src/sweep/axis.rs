// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads an axis of a sweep: its keys and their values. The values are computed when they are needed, so memory does not grow
//! with the number of values.

use super::file::{AxisTable, ConstantTable, Numbers, SamplesTable, StepsTable};
use crate::results::{Axis, AxisValues};
use paceline_scenario::{AnyValue, Origin, ScenarioError, Spanned};

const MOST: u64 = 100_000_000;
/// Largest number of values with units.
const UNIT_MOST: u64 = 100_000;

pub(super) fn controllers(names: &[String]) -> Axis {
    let values = names.iter().map(|name| vec![toml::Value::String(name.clone())]).collect();
    Axis { keys: vec![super::CONTROLLER.to_owned()], values: AxisValues::Listed(values) }
}

pub(super) fn read(origin: &Origin, table: &AxisTable) -> Result<Axis, ScenarioError> {
    if let Some(constants) = &table.one_at_a_time {
        return one_at_a_time(origin, table, constants);
    }
    let keys = keys(origin, table)?;
    let values = match (&table.values, &table.log, &table.linear, &table.samples) {
        (Some(values), None, None, None) => AxisValues::Listed(list(origin, values, &keys)?),
        (None, Some(log), None, None) => {
            let (from, to, steps, unit) = steps(origin, log, &keys, "log")?;
            if from <= 0.0 {
                let help = "write it like { from = 1e-5, to = 0.1, steps = 8 }";
                return Err(origin.error_at(log, "a log grid goes from above 0 up", help));
            }
            in_unit(&keys, AxisValues::Log { from, to, steps }, unit)
        }
        (None, None, Some(linear), None) => {
            let (from, to, steps, unit) = steps(origin, linear, &keys, "linear")?;
            in_unit(&keys, AxisValues::Linear { from, to, steps }, unit)
        }
        (None, None, None, Some(samples)) => draws(origin, samples, &keys)?,
        _ => {
            let span = table.key.as_ref().map(Spanned::span).or(table.keys.as_ref().map(Spanned::span));
            let message = "an axis has one of `values`, `log`, `linear`, `samples` and `one_at_a_time`";
            let problem = ScenarioError::at(&origin.name, &origin.text, span.unwrap_or(0..0), message);
            return Err(problem.help("write values = [1, 2] or log = { from = 1e-5, to = 0.1, steps = 8 }"));
        }
    };
    Ok(Axis { keys, values })
}

/// Returns the names of the n-th key's values; `None` if they are numbers.
pub(super) fn names(axis: &Axis, key: usize) -> Option<Vec<String>> {
    let AxisValues::Listed(values) = &axis.values else { return None };
    if values.iter().all(|each| number(&each[key]).is_some()) {
        return None;
    }
    let mut names: Vec<String> = Vec::new();
    for name in values.iter().map(|each| label(&each[key])) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Some(names)
}

pub(super) fn number(value: &toml::Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|i| i as f64))
}

pub(super) fn label(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn keys(origin: &Origin, table: &AxisTable) -> Result<Vec<String>, ScenarioError> {
    match (&table.key, &table.keys) {
        (Some(key), None) => Ok(vec![key.get().clone()]),
        (None, Some(keys)) if !keys.get().is_empty() => Ok(keys.get().clone()),
        (_, Some(keys)) => {
            Err(origin.error_at(keys, "an axis has either `key` or `keys`", "write keys = [\"a\", \"b\"]"))
        }
        (None, None) => Err(origin.error("an axis without a key", "write key = \"media.config.k_u\"")),
    }
}

fn list(
    origin: &Origin,
    values: &Spanned<Vec<AnyValue>>,
    keys: &[String],
) -> Result<Vec<Vec<toml::Value>>, ScenarioError> {
    if values.get().is_empty() {
        return Err(origin.error_at(values, "an axis without values", "write values = [1, 2]"));
    }
    let each = values.get().iter().map(|value| match (&value.0, keys.len()) {
        (value, 1) => Ok(vec![value.clone()]),
        (toml::Value::Array(several), n) if several.len() == n => Ok(several.clone()),
        _ => Err(origin.error_at(
            values,
            "a value of an axis with several keys is a list, a value for each",
            format!("write values = [[1, 2]] with {} in each", keys.len()),
        )),
    });
    each.collect()
}

/// Returns the numbers of a grid as values with this unit; without one, as they are.
fn in_unit(keys: &[String], values: AxisValues, unit: &str) -> AxisValues {
    if unit.is_empty() {
        return values;
    }
    let axis = Axis { keys: keys.to_vec(), values };
    // Nine significant digits: more would show the rounding of the steps.
    let text = |value: f64| format!("{} {unit}", format!("{value:.8e}").parse::<f64>().unwrap_or(value));
    let each = (0..axis.count()).map(|place| axis.at(place).iter().filter_map(number).map(text).collect::<Vec<_>>());
    AxisValues::Listed(each.map(|values| values.into_iter().map(toml::Value::String).collect()).collect())
}

/// Returns first value, last value, number of values and unit of a grid.
fn steps<'a>(
    origin: &Origin,
    place: &'a Spanned<StepsTable>,
    keys: &[String],
    name: &str,
) -> Result<(f64, f64, u64, &'a str), ScenarioError> {
    let StepsTable { from, to, steps } = place.get();
    let (Some((from, unit)), Some((to, other))) = (from.parts(), to.parts()) else {
        let help = "write it like { from = \"10 ms\", to = \"100 ms\", steps = 4 }";
        return Err(origin.error_at(place, "an end of the grid is not a number or a number with a unit", help));
    };
    if unit != other {
        let help = "write it like { from = \"10 ms\", to = \"1000 ms\", steps = 4 }";
        return Err(origin.error_at(place, "both ends of a grid need the same unit", help));
    }
    // Values with units are kept in memory.
    let most = if unit.is_empty() { MOST } else { UNIT_MOST };
    let sound = from.is_finite() && to.is_finite() && from < to && (2..=most).contains(steps) && keys.len() == 1;
    match sound {
        true => Ok((from, to, *steps, unit)),
        false => {
            let above = if name == "log" { "above 0 " } else { "" };
            let message = format!("a {name} grid goes from {above}up, in 2 steps or more, for one key");
            Err(origin.error_at(place, message, "write it like { from = 1e-5, to = 0.1, steps = 8 }"))
        }
    }
}

fn draws(origin: &Origin, place: &Spanned<SamplesTable>, keys: &[String]) -> Result<AxisValues, ScenarioError> {
    let table = place.get();
    let each = |numbers: &Numbers| match numbers {
        Numbers::One(one) => vec![*one; keys.len()],
        Numbers::Each(each) => each.clone(),
    };
    let (from, to) = (each(&table.from), each(&table.to));
    let fits = from.len() == keys.len() && to.len() == keys.len() && (1..=MOST).contains(&table.count);
    if !fits || from.iter().zip(&to).any(|(from, to)| !(*from > 0.0 && from < to && to.is_finite())) {
        let help = "write it like { from = 1e-5, to = 0.1, count = 1000 }";
        return Err(origin.error_at(
            place,
            "samples are drawn from above 0 up, from one range or one for each key",
            help,
        ));
    }
    Ok(AxisValues::Samples { from, to, count: table.count, seed: table.seed.unwrap_or(1) })
}

fn one_at_a_time(
    origin: &Origin,
    table: &AxisTable,
    place: &Spanned<Vec<ConstantTable>>,
) -> Result<Axis, ScenarioError> {
    let AxisTable { key, keys, values, log, linear, samples, .. } = table;
    let without_keys = key.is_none() && keys.is_none() && values.is_none();
    let alone = without_keys && log.is_none() && linear.is_none() && samples.is_none();
    let constants = place.get();
    if !alone || constants.is_empty() {
        let help = "write only one_at_a_time = [{ key = \"media.config.k_u\", base = 0.01 }]";
        return Err(origin.error_at(place, "an axis with `one_at_a_time` has no other keys", help));
    }
    let low: Vec<f64> = constants.iter().map(|c| c.low.unwrap_or(c.base / 2.0)).collect();
    let high: Vec<f64> = constants.iter().map(|c| c.high.unwrap_or(c.base * 2.0)).collect();
    for (constant, (low, high)) in constants.iter().zip(low.iter().zip(&high)) {
        if !(*low < constant.base && constant.base < *high) {
            let message = format!("`{}` needs a low value below and a high value above its base", constant.key);
            return Err(origin.error_at(place, message, "write low and high if half and double are not suitable"));
        }
    }
    let keys = constants.iter().map(|c| c.key.clone()).collect();
    let base = constants.iter().map(|c| c.base).collect();
    Ok(Axis { keys, values: AxisValues::OneAtATime { base, low, high } })
}
