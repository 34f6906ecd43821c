// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pages: every Markdown file at the root and in the book, with links, headings and blocks.

use crate::steps::{files_in, read, root};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use std::path::{Path, PathBuf};

pub struct Page {
    /// The path relative to the root. Pages of the book are below `docs`, also those that are generated.
    pub path: PathBuf,
    /// The targets of links and images, each with its line.
    pub links: Vec<(String, usize)>,
    /// The anchors of its headings.
    pub anchors: Vec<String>,
    /// Its fenced blocks, in order.
    pub blocks: Vec<Block>,
}

/// A fenced block.
pub struct Block {
    /// The text after the fence.
    pub language: String,
    /// The content.
    pub text: String,
    /// The line of its fence.
    pub line: usize,
}

impl Page {
    /// Returns all pages, sorted by path: of the root, and of the book in this folder.
    pub fn all(book: &Path) -> Result<Vec<Self>, String> {
        let mut paths = files(root(), "md", false)?;
        paths.extend(files(book, "md", true)?);
        let mut pages = paths.iter().map(|path| Self::read(path, book)).collect::<Result<Vec<_>, _>>()?;
        pages.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(pages)
    }

    fn read(path: &Path, book: &Path) -> Result<Self, String> {
        let text = read(path)?;
        let shown = match path.strip_prefix(book) {
            Ok(path) => Path::new("docs").join(path),
            Err(_) => path.strip_prefix(root()).expect("other pages are below the root").to_owned(),
        };
        Ok(Self::parse(shown, &text))
    }

    pub(super) fn parse(path: PathBuf, text: &str) -> Self {
        let mut page = Self { path, links: Vec::new(), anchors: Vec::new(), blocks: Vec::new() };
        let line = |offset: usize| text[..offset].matches('\n').count() + 1;
        let mut heading: Option<String> = None;
        let mut block: Option<Block> = None;
        let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_FOOTNOTES;
        for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push((dest_url.into_string(), line(range.start)));
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => page.anchor(&heading.take().unwrap_or_default()),
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                    let language = language.into_string();
                    block = Some(Block { language, text: String::new(), line: line(range.start) });
                }
                Event::End(TagEnd::CodeBlock) => page.blocks.extend(block.take()),
                Event::Text(text) | Event::Code(text) => {
                    let into = block.as_mut().map(|b| &mut b.text).or(heading.as_mut());
                    into.into_iter().for_each(|into| into.push_str(&text));
                }
                _ => {}
            }
        }
        page
    }

    /// A heading's anchor, as code hosts and mdBook make it.
    fn anchor(&mut self, heading: &str) {
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let plain: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase();
        let taken = |anchor: &str| self.anchors.iter().any(|a| a == anchor);
        let numbered = (1..).map(|n| format!("{plain}-{n}"));
        let anchor = [plain.clone()].into_iter().chain(numbered).find(|anchor| !taken(anchor));
        self.anchors.extend(anchor);
    }

    /// A place on the page, for people.
    pub fn place(&self, line: usize) -> String {
        format!("{}:{line}", self.path.display())
    }
}

/// Returns the files of a folder with this extension; if `below`, also those of the folders in it.
pub fn files(folder: &Path, extension: &str, below: bool) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for path in files_in(folder)? {
        if path.is_dir() && below {
            found.extend(files(&path, extension, true)?);
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read() {
        let text = "# A `b`: c, d_e\n\nSee [x](y.md#z)\nand ![i](i.svg).\n\n## Twice\n\n```sh\nls # [n](o.md)\n```\n\n## Twice\n";
        let page = Page::parse("p.md".into(), text);
        assert_eq!(page.links, [("y.md#z".to_owned(), 3), ("i.svg".to_owned(), 4)]);
        assert_eq!(page.anchors, ["a-b-c-d_e", "twice", "twice-1"]);
        let [block] = &page.blocks[..] else { panic!("{}", page.blocks.len()) };
        assert_eq!((&*block.language, &*block.text, block.line), ("sh", "ls # [n](o.md)\n", 8));
    }
}
