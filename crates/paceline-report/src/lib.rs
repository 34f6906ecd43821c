//! Stored results to figures, and figures to one HTML page or to vector files.
//!
//! ```text
//! DIR --read--> rows, column by column --panels--> Figure --page----------> report.html
//!               (never a simulator)                   '-----pictures, svg--> figures/*.svg
//! DIR/gap.json -------------------------gaps---------------'
//! SweepResult ----------------------sweeps--------------svg---------------> figures/*.svg
//! DIR/scoreboard.json ------------------cells--------------scoreboard-----> scoreboard.html
//! ```
//!
//! What stands in a figure is all that a picture shows: nobody downstream of [`figure`] sees a row. A report needs only
//! the files of `--out DIR`, so one that was made years ago is drawn by whoever has the folder.

pub mod cells;
pub mod error;
pub mod figure;
pub mod gaps;
pub mod page;
pub mod panels;
pub mod pictures;
pub mod read;
pub mod scoreboard;
pub mod svg;
pub mod sweeps;

pub use error::ReportError;
pub use figure::Figure;
pub use read::Results;
