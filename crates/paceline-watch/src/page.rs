//! The page: one document that loads nothing, and the rules under which a browser shows it.

/// The plotting library is the report's.
const PLOT: &str = include_str!("../../paceline-report/vendor/uplot-1.6.32/uPlot.iife.min.js");
const PLOT_STYLE: &str = include_str!("../../paceline-report/vendor/uplot-1.6.32/uPlot.min.css");
const PLOT_LICENCE: &str = include_str!("../../paceline-report/vendor/uplot-1.6.32/LICENSE");

/// The document.
pub fn html() -> String {
    include_str!("page/page.html")
        .replace("{{ plot_style }}", PLOT_STYLE)
        .replace("{{ style }}", include_str!("page/page.css"))
        .replace("{{ plot_licence }}", PLOT_LICENCE)
        .replace("{{ plot }}", PLOT)
        .replace("{{ script }}", include_str!("page/page.js"))
}

/// The browser loads nothing, talks to nobody but the socket of this port, and shows the page in no other page's frame.
pub fn policy(port: u16) -> String {
    format!(
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; \
         connect-src ws://127.0.0.1:{port} ws://localhost:{port}; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_whole_and_asks_for_nothing() {
        let html = html();
        assert!(html.contains("uPlot") && !html.contains("{{"), "everything has its place");
        let own =
            [include_str!("page/page.html"), include_str!("page/page.css"), include_str!("page/page.js")].concat();
        for outside in ["http://", "https://", "src=", "url(", "@import", "fetch(", "innerHTML"] {
            assert!(!own.contains(outside), "{outside}");
        }
        assert_eq!(html.matches("<script").count(), html.matches("</script>").count());
    }
}
