//! Converts stored results to figures, and figures to HTML pages and SVG files.
//!
//! ```text
//! DIR --read--> events ---------------panels-----> Figure --page-----------------> report.html
//!                                                     '-----figure_groups, svg---> figures/*.svg
//! DIR/validation.json -------------------------validations---------------'
//! SweepResult ----------------------sweeps--------------svg----------------------> figures/*.svg
//! DIR/scoreboard.json ------------------cells--------------scoreboard------------> scoreboard.html
//! ```
//!
//! A [`figure::Figure`] contains everything that a plot shows; the output modules do not read events. A report needs only the
//! files of `--out DIR`, so results of older versions can still be drawn.

pub mod cells;
pub mod error;
pub mod figure;
pub mod figure_groups;
pub mod page;
pub mod panels;
pub mod read;
pub mod scoreboard;
pub mod svg;
pub mod sweeps;
pub mod validation_text;

pub use error::ReportError;
pub use figure::Figure;
pub use read::Results;
