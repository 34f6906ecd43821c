// SPDX-License-Identifier: MIT OR Apache-2.0
//! A result as readers see it: the same content as text for the terminal and as HTML for notebooks.

use crate::output;
use crate::table::Table;
use std::fmt::Write;

/// What a result shows, from top to bottom.
#[derive(Default)]
pub struct View(Vec<Block>);

enum Block {
    /// Name and title.
    Heading(String),
    /// A line with a mark, such as `· `.
    Line(&'static str, String),
    /// Sentences that are not indented.
    Sentences(String),
    Table(Table),
    /// A table that is drawn in parts where it is wider than the terminal.
    Parts(String, Table),
    /// A drawing of characters. Notebooks have a plot in its place.
    Drawing(Table),
    /// The place of a plot in notebooks.
    Plot,
    Gap,
}

impl View {
    /// Adds a heading.
    pub fn heading(&mut self, text: impl Into<String>) {
        self.0.push(Block::Heading(text.into()));
    }
    /// Adds a line with a mark.
    pub fn line(&mut self, mark: &'static str, text: impl Into<String>) {
        self.0.push(Block::Line(mark, text.into()));
    }
    /// Adds sentences that are not indented.
    pub fn sentences(&mut self, text: impl Into<String>) {
        self.0.push(Block::Sentences(text.into()));
    }
    /// Adds a table and a gap.
    pub fn table(&mut self, table: Table) {
        self.table_with_note(table, None);
    }
    /// Adds a table, a line that belongs to it, and a gap.
    pub fn table_with_note(&mut self, table: Table, note: Option<String>) {
        self.0.push(Block::Table(table));
        self.0.extend(note.map(|note| Block::Line("", note)));
        self.gap();
    }
    /// Adds a table that the terminal shows as `parts`, and a gap.
    pub fn parts(&mut self, parts: String, whole: Table) {
        self.0.extend([Block::Parts(parts, whole), Block::Gap]);
    }
    /// Adds a drawing and a gap.
    pub fn drawing(&mut self, table: Table) {
        self.0.extend([Block::Drawing(table), Block::Gap]);
    }
    /// Marks the place of a plot in HTML: the element [`PLOT`].
    pub fn plot(&mut self) {
        self.0.push(Block::Plot);
    }
    /// Adds an empty line.
    pub fn gap(&mut self) {
        self.0.push(Block::Gap);
    }
    /// Adds the content of another view.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Returns the view in lines that fit the terminal, with its styles.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for block in &self.0 {
            match block {
                Block::Heading(heading) => text += output::wrap(heading).trim_start(),
                Block::Line(mark, line) => text += &output::hang(mark, line),
                Block::Sentences(sentences) => text += &output::wrap_to(sentences, output::width()).join("\n"),
                Block::Table(table) | Block::Drawing(table) => text += table.render().trim_end_matches('\n'),
                Block::Parts(parts, _) => text += parts.trim_end_matches('\n'),
                Block::Plot => continue,
                Block::Gap => {}
            }
            text.push('\n');
        }
        text
    }

    /// Returns the view as an HTML element with its own styles. It has no scripts and loads nothing.
    pub fn html(&self) -> String {
        let mut html = format!("<div class=\"paceline\">{STYLE}");
        let mut list = false;
        for block in &self.0 {
            let item = matches!(block, Block::Line("· ", _));
            if item != list {
                html += if item { "<ul>" } else { "</ul>" };
                list = item;
            }
            match block {
                Block::Heading(text) => _ = write!(html, "<p class=\"heading\">{}</p>", styled(text)),
                Block::Line(_, text) if item => _ = write!(html, "<li>{}</li>", styled(text)),
                Block::Line(_, text) | Block::Sentences(text) => _ = write!(html, "<p>{}</p>", styled(text)),
                Block::Table(table) | Block::Parts(_, table) => html += &table_html(table),
                Block::Drawing(_) | Block::Plot => html += PLOT,
                Block::Gap => {}
            }
        }
        html += if list { "</ul></div>" } else { "</div>" };
        html
    }
}

/// The element for a plot.
pub const PLOT: &str = "<div class=\"plot\"></div>";

/// Colours are those of the page of a report; both suit light and dark notebooks.
const STYLE: &str = "<style>\
.paceline{font-size:13px;line-height:1.4;max-width:70em}\
.paceline p{margin:.3em 0}.paceline .heading{font-size:1.1em}\
.paceline ul{margin:.3em 0;padding-left:1.3em}\
.paceline .wide{overflow-x:auto;margin:.7em 0}\
.paceline table{font:inherit;border-collapse:collapse;font-variant-numeric:tabular-nums;margin:0;line-height:1.4}\
.paceline th,.paceline td{padding:2px 12px 2px 0;text-align:right;white-space:pre;border:0;background:none;\
vertical-align:bottom}\
.paceline th{font-weight:600}.paceline tbody th{font-weight:400}\
.paceline .text{text-align:left}\
.paceline thead th{border-bottom:1px solid currentColor;white-space:normal}\
.paceline .subject th{font-weight:600;text-align:left;padding-top:8px}\
.paceline .good{color:#2a8a3e}.paceline .bad{color:#d0463b}.paceline .middling{color:#a67a00}\
@media(max-width:600px){.paceline th,.paceline td{padding-right:8px}.paceline .wide{font-size:12px}}\
</style>";

fn table_html(table: &Table) -> String {
    let rows = table.shown_rows();
    let width = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut html = String::from("<div class=\"wide\"><table>");
    for (index, row) in rows.iter().enumerate() {
        match (index, row.as_slice()) {
            (0, _) => html += "<thead><tr>",
            (_, [subject]) if width > 1 => {
                let subject = styled(subject.text);
                _ = write!(
                    html,
                    "<tr class=\"subject\"><th scope=\"rowgroup\" colspan=\"{width}\">{subject}</th></tr>"
                );
                continue;
            }
            _ => html += "<tr>",
        }
        for (column, cell) in row.iter().enumerate() {
            let class = if cell.is_left { " class=\"text\"" } else { "" };
            let text = styled(&aligned(cell.text));
            _ = match (index, column) {
                (0, _) => write!(html, "<th scope=\"col\"{class}>{text}</th>"),
                (_, 0) => write!(html, "<th scope=\"row\"{class}>{text}</th>"),
                _ => write!(html, "<td{class}>{text}</td>"),
            };
        }
        html += if index == 0 { "</tr></thead><tbody>" } else { "</tr>" };
    }
    html + "</tbody></table></div>"
}

/// Returns the text of a cell. Blanks in place of a mark keep its width.
fn aligned(text: &str) -> String {
    const FIGURE_SPACE: char = '\u{2007}';
    let trimmed = text.trim_start();
    match trimmed.strip_suffix("  ").filter(|value| !value.is_empty()) {
        Some(value) => format!("{value} {FIGURE_SPACE}"),
        None => trimmed.to_owned(),
    }
}

/// Returns a text as HTML: bold type and colours become elements, and everything else is escaped.
fn styled(text: &str) -> String {
    let mut html = String::new();
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(len) = output::style_len(rest) {
            match &rest[2..len - 1] {
                "1" => {
                    html += "<b>";
                    open.push("</b>");
                }
                colour @ ("31" | "32" | "33") => {
                    let class = match colour {
                        "31" => "bad",
                        "32" => "good",
                        _ => "middling",
                    };
                    _ = write!(html, "<span class=\"{class}\">");
                    open.push("</span>");
                }
                _ => html.extend(open.drain(..).rev()),
            }
            rest = &rest[len..];
            continue;
        }
        match c {
            '<' => html += "&lt;",
            '>' => html += "&gt;",
            '&' => html += "&amp;",
            '"' => html += "&quot;",
            c if c.is_control() => html.push(' '),
            c => html.push(c),
        }
        rest = &rest[c.len_utf8()..];
    }
    html.extend(open.drain(..).rev());
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> View {
        let mut view = View::default();
        view.heading(format!("{}  a <title>", output::bold("x/y")));
        view.line("· ", "a note");
        view.line("· ", "another");
        let mut drawing = Table::new(["", "0 to 20 s"], 2);
        drawing.row(vec!["capacity".to_owned(), "▄▄".to_owned()]);
        view.drawing(drawing);
        let mut table = Table::new(["", "mean"], 1);
        table.row(vec![output::bold("call")]);
        table.row(vec!["  rate, Mbit/s".to_owned(), format!("1.250{}", output::good(" +"))]);
        view.table(table);
        view.sentences("All is well.");
        view
    }

    #[test]
    fn text_and_html_have_the_same_content() {
        let text = anstream::adapter::strip_str(&view().text()).to_string();
        let html = view().html();
        for part in ["a note", "another", "rate, Mbit/s", "1.250", "All is well."] {
            assert!(text.contains(part) && html.contains(part), "{part}\n{text}\n{html}");
        }
        assert!(text.contains("a <title>") && html.contains("<b>x/y</b>  a &lt;title&gt;"), "{html}");
        assert!(html.contains("<ul><li>a note</li><li>another</li></ul>"), "{html}");
        assert!(html.contains("1.250<span class=\"good\"> +</span>"), "{html}");
        assert!(html.contains("colspan=\"2\"><b>call</b></th>"), "{html}");
        assert!(text.contains("▄▄") && !html.contains("▄▄") && !html.contains('\u{1b}'));
        assert_eq!((html.matches(PLOT).count(), aligned("  1.0  ")), (1, "1.0 \u{2007}".to_owned()));
        assert_eq!(text.lines().filter(|line| line.is_empty()).count(), 2, "{text}");
    }

    #[test]
    fn every_element_is_closed() {
        let html = view().html();
        for element in ["div", "p", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "span", "b", "style"] {
            let opened = html.matches(&format!("<{element}>")).count() + html.matches(&format!("<{element} ")).count();
            assert_eq!(opened, html.matches(&format!("</{element}>")).count(), "{element} in {html}");
        }
        assert_eq!(styled("\u{1b}[1m\u{1b}[32ma"), "<b><span class=\"good\">a</span></b>");
    }
}
