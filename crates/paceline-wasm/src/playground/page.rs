// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page: one HTML document with the engine inside it. It loads nothing.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use sha2::{Digest, Sha256};
use std::io::{self, Write};

// The plotting library, the common script and the common style are those of the report page.
const PLOT: &str = include_str!("../../../paceline-lab/vendor/uplot-1.6.32/uPlot.iife.min.js");
const PLOT_STYLE: &str = include_str!("../../../paceline-lab/vendor/uplot-1.6.32/uPlot.min.css");
const PLOT_LICENCE: &str = include_str!("../../../paceline-lab/vendor/uplot-1.6.32/LICENSE");

const STYLE: &str =
    concat!(include_str!("../../../paceline-lab/src/report/page/common.css"), include_str!("page/page.css"));
const ENGINE: &str = include_str!("page/engine.js");
const SCRIPT: &str = concat!(
    include_str!("../../../paceline-lab/src/report/page/common.js"),
    include_str!("page/plots.js"),
    include_str!("page/curve.js"),
    include_str!("page/link.js"),
    include_str!("page/controls.js"),
    include_str!("page/page.js")
);

/// Returns the page with this WebAssembly module.
///
/// # Errors
/// Compression fails, which does not happen in memory.
pub fn html(module: &[u8]) -> io::Result<String> {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
    packed.write_all(module)?;
    let packed = STANDARD.encode(packed.finish()?);
    Ok(include_str!("page/page.html")
        .replace("{{ policy }}", &policy())
        .replace("{{ plot_style }}", PLOT_STYLE)
        .replace("{{ style }}", STYLE)
        .replace("{{ plot_licence }}", PLOT_LICENCE)
        .replace("{{ plot }}", PLOT)
        .replace("{{ engine }}", ENGINE)
        .replace("{{ script }}", SCRIPT)
        .replace("{{ module }}", &packed))
}

/// The policy: the scripts and styles of this page by their hashes, the module, workers from the text of the page, and no
/// connection.
fn policy() -> String {
    let hashes = |texts: &[&str]| -> String {
        texts.iter().map(|text| format!(" 'sha256-{}'", STANDARD.encode(Sha256::digest(text)))).collect()
    };
    format!(
        "default-src 'none'; script-src{} 'wasm-unsafe-eval'; style-src{}; worker-src blob:; img-src data:; \
         base-uri 'none'; form-action 'none'",
        hashes(&[PLOT, ENGINE, SCRIPT]),
        hashes(&[PLOT_STYLE, STYLE])
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_is_complete_and_loads_no_external_resource() {
        let html = html(b"module").unwrap();
        assert!(!html.contains("{{"), "every placeholder is replaced");
        assert_eq!(html.matches("<script").count(), html.matches("</script>").count());
        let own = [include_str!("page/page.html"), STYLE, ENGINE, SCRIPT].concat();
        for outside in ["https://", "src=", "url(", "@import", "fetch(", "XMLHttpRequest"] {
            assert!(!own.contains(outside), "{outside}");
        }
        assert!(policy().starts_with("default-src 'none'; script-src 'sha256-") && !policy().contains("unsafe-inline"));
    }
}
