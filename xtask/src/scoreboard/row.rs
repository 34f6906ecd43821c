// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines of the tables of suites.

/// What the names of controllers of other libraries begin with.
pub(super) const OTHERS: [&str; 2] = ["goog_cc-", "rtc-interceptor-"];

/// The use of media that tables do not name.
pub(super) const USUAL_USE: &str = "conversation";

/// A line of a table.
pub(super) struct Row<'a> {
    pub controller: &'a str,
    pub test: &'a str,
    /// Whether all bounds hold.
    pub passes: bool,
    /// The names of the bounds that fail. The others may be undecided.
    pub failed: Vec<&'a str>,
    /// The mean score; `None` if a run has none.
    pub score: Option<f64>,
    /// What other flows keep of their fair share; `None` without such flows.
    pub others_keep: Option<f64>,
}

impl<'a> Row<'a> {
    /// Reads a line; `None` for the lines at the top.
    pub fn read(line: &'a str) -> Option<Self> {
        let is_head = ["#", "up to\t", "repeats\t", "title\t", "family\t", "developed\t", "use\t"]
            .iter()
            .any(|head| line.starts_with(head));
        assert!(is_head || line.is_empty() || line.split('\t').count() == 7, "no line of a table: {line}");
        let [controller, test, held, failed, score, others_keep, _] =
            line.split('\t').collect::<Vec<_>>().try_into().ok()?;
        let failed = failed.split(' ').filter(|name| *name != "-").collect();
        let passes = held.split_once('/').is_some_and(|(held, all)| held == all);
        Some(Self {
            controller,
            test,
            passes,
            failed,
            score: score.parse().ok(),
            others_keep: others_keep.parse().ok(),
        })
    }
}
