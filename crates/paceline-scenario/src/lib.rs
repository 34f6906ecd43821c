// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenario text to [`Scenario`].
//!
//! `tree` parses the text into values with places, `layers` merges the file with constants, a case, `--set` and
//! `--controller`, `reader` turns the result into the typed [`file`](ScenarioFile), and `resolve` fills in every default and
//! checks what depends on several keys. Each error is a [`ScenarioError`] with its location and a hint.

mod call_path;
mod case;
mod catalogue;
pub mod cellular;
mod constants;
mod edit;
mod error;
mod evaluation;
mod file;
mod forms;
mod fresh;
mod layers;
mod overrides;
mod parameters;
mod preset;
mod reader;
mod resolve;
mod template;
mod text_file;
mod text_span;
pub mod trace;
mod tree;
mod values;

pub use call_path::{Call, CallPath};
pub use catalogue::{Catalogue, EXPECTED, Origin, SUITE, file_name, is_formula_table, is_scenario};
pub use edit::edit_text;
pub use error::{ScenarioError, and, nearest_of_many, no_controller, suggestion};
pub use evaluation::{
    Assert, Constant, Each, EachOf, Expect, IncludeIf, LossMeasure, Measure, Quantity, QueueMeasure, Reference, Remark,
    Scenario, Window, renamed_metric,
};
pub use file::{AnyValue, ScenarioFile, schema};
pub use layers::{Changes, edited, error_at_key, load, load_cases};
pub use overrides::Override;
pub use paceline_netsim::records::Label;
pub use preset::{Preset, path_names, path_preset, path_presets, source_presets};
pub use reader::parse;
pub use template::{Template, Traffic, template_sources};
pub use text_span::Spanned;

use paceline::Registry;
use paceline_netsim::records::MetricCatalogue;

/// The names that scenario files may use.
#[derive(Clone, Copy)]
pub struct Registries<'a> {
    /// Controllers of media flows.
    pub controllers: &'a Registry,
    /// Metrics of published values and bounds; `None` accepts any name, for programs that evaluate nothing.
    pub metrics: Option<MetricCatalogue>,
}

impl<'a> From<&'a Registry> for Registries<'a> {
    fn from(controllers: &'a Registry) -> Self {
        Self { controllers, metrics: None }
    }
}
