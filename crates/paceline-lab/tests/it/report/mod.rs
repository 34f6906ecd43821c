// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports of stored runs: reading folders, pages in a browser, SVG files, vendored code.

mod browser;
mod reading;
mod results;
mod svg;
mod vendor;
