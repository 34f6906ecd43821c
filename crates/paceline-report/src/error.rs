//! Why there is no report.

use paceline_lab::store::StoreError;
use parquet::errors::ParquetError;
use std::io;
use std::path::PathBuf;

/// Why results could not be read, or a page not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The folder or one of its JSON files.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The folder has no run.
    #[error("`{}` holds no run; `paceline run SCENARIO --out DIR` puts some there", .path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
    },
    /// A table is no Parquet file, or a damaged one.
    #[error("`{}` cannot be read as a table", .path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: ParquetError,
    },
    /// A table has not the column, or the column not the values, that results have.
    #[error("`{}`: column `{column}` {cause}", .path.display())]
    Column {
        /// The file.
        path: PathBuf,
        /// The column.
        column: &'static str,
        /// What is wrong with it.
        cause: String,
    },
    /// The operating system refused.
    #[error("cannot {action} `{}`", .path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// Its answer.
        #[source]
        source: io::Error,
    },
    /// The page's template failed: a defect of this crate.
    #[error("the page cannot be put together")]
    Page(#[from] askama::Error),
}
