// SPDX-License-Identifier: MIT OR Apache-2.0
//! Summaries, comparisons and validations of several runs.

use super::{Database, checksum};
use crate::results::StoreError;
use rusqlite::{Transaction, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentKind {
    /// The summary of several runs of one scenario: a [`Group`](crate::results::Group).
    Group,
    /// A comparison of controllers: a [`ComparisonTable`](crate::results::ComparisonTable).
    Comparison,
    /// The differences between two worlds: a [`Validation`](crate::results::Validation).
    Validation,
}

impl DocumentKind {
    fn name(self) -> &'static str {
        match self {
            Self::Group => "group",
            Self::Comparison => "comparison",
            Self::Validation => "validation",
        }
    }
}

impl Database {
    /// Writes a document, or replaces the one with the same key. It is removed when a run that it cites is removed.
    pub(crate) fn put_document(
        &self,
        transaction: &Transaction<'_>,
        kind: DocumentKind,
        key: &str,
        document: &impl Serialize,
        cites: &[i64],
    ) -> Result<(), StoreError> {
        let text = serde_json::to_string(document).expect("strings, numbers and lists become JSON");
        let kind = kind.name();
        let sum = document_checksum(kind, key, &text);
        // An update keeps the number, and so the order of documents.
        let sql = "INSERT INTO document (kind, key, document, checksum) VALUES (?1, ?2, ?3, ?4) \
                   ON CONFLICT (kind, key) DO UPDATE SET document = ?3, checksum = ?4 RETURNING id";
        let id = self.find_number(transaction, sql, params![kind, key, text, sum])?.expect("it returns the row");
        let add = "INSERT INTO citation (document, run) SELECT ?1, ?2 \
                   WHERE NOT EXISTS (SELECT 1 FROM citation WHERE document = ?1 AND run = ?2)";
        for run in cites {
            self.execute(transaction, add, [id, *run])?;
        }
        Ok(())
    }
}

pub(crate) fn read_documents<T: DeserializeOwned>(
    database: &Database,
    kind: DocumentKind,
) -> Result<Vec<T>, StoreError> {
    database.read(|transaction| {
        let sql = "SELECT key, document, checksum FROM document WHERE kind = ?1 ORDER BY id";
        database.rows(transaction, sql, [kind.name()], |row| {
            let columns = || Ok::<[String; 3], rusqlite::Error>([row.get(0)?, row.get(1)?, row.get(2)?]);
            let [key, text, expected] = columns().map_err(|_| database.damaged("a document"))?;
            if document_checksum(kind.name(), &key, &text) != expected {
                return Err(database.damaged(&format!("the {} {key}", kind.name())));
            }
            serde_json::from_str(&text).map_err(|error| crate::results::files::damaged(database.path(), &error))
        })
    })
}

fn document_checksum(kind: &str, key: &str, text: &str) -> String {
    checksum([kind, key, text].map(str::as_bytes))
}
