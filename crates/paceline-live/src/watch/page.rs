// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page: one document without external resources, and its content security policy.

// The plotting library, the common script and the common style are shared with the report page.
const PLOT: &str = include_str!("../../../paceline-lab/vendor/uplot-1.6.32/uPlot.iife.min.js");
const PLOT_STYLE: &str = include_str!("../../../paceline-lab/vendor/uplot-1.6.32/uPlot.min.css");
const PLOT_LICENCE: &str = include_str!("../../../paceline-lab/vendor/uplot-1.6.32/LICENSE");

const STYLE: &str =
    concat!(include_str!("../../../paceline-lab/src/report/page/common.css"), include_str!("page/page.css"));
const SCRIPT: &str =
    concat!(include_str!("../../../paceline-lab/src/report/page/common.js"), include_str!("page/page.js"));

/// Returns the document. Its scripts and styles have the nonce of its policy.
pub fn html(nonce: &str) -> String {
    include_str!("page/page.html")
        .replace("{{ nonce }}", nonce)
        .replace("{{ plot_style }}", PLOT_STYLE)
        .replace("{{ style }}", STYLE)
        .replace("{{ plot_licence }}", PLOT_LICENCE)
        .replace("{{ plot }}", PLOT)
        .replace("{{ script }}", SCRIPT)
}

/// Returns the content security policy: scripts and styles with this nonce, no external resources, no connection except the web
/// socket of this port, no frames.
pub fn policy(port: u16, nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data: blob:; \
         connect-src ws://127.0.0.1:{port} ws://localhost:{port}; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_is_complete_and_loads_no_external_resource() {
        let html = html("0123");
        let own_elements = html.matches("<script").count() + html.matches("<style").count();
        assert_eq!(
            html.matches(" nonce=\"0123\">").count(),
            own_elements,
            "scripts and styles without a nonce are refused"
        );
        assert!(policy(80, "0123").contains("script-src 'nonce-0123';") && !policy(80, "0123").contains("unsafe"));
        assert!(html.contains("uPlot") && !html.contains("{{"), "every placeholder is replaced");
        let own = [include_str!("page/page.html"), STYLE, SCRIPT].concat();
        for outside in ["http://", "https://", "src=", "url(", "@import", "fetch(", "innerHTML"] {
            assert!(!own.contains(outside), "{outside}");
        }
        assert_eq!(html.matches("<script").count(), html.matches("</script>").count());
    }
}
