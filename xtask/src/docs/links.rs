// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks links, and that the table of contents lists every page.

use super::pages::{Page, files};
use crate::steps::{read, root};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// The table of contents of the book.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Returns all errors. The pages of the book are in the folder `book`.
pub fn find_errors(pages: &[Page], book: &Path) -> Result<Vec<String>, String> {
    let exists = |path: &Path| match path.strip_prefix("docs") {
        Ok(path) => book.join(path).exists(),
        Err(_) => root().join(path).exists(),
    };
    let mut wrong: Vec<String> = pages.iter().flat_map(|page| of_page(page, pages, &exists)).collect();
    wrong.extend(not_in_the_book(pages));
    wrong.extend(of_sources(&exists)?);
    Ok(wrong)
}

fn of_page(page: &Page, pages: &[Page], exists: &dyn Fn(&Path) -> bool) -> Vec<String> {
    let outside = |link: &str| ["http://", "https://", "mailto:"].iter().any(|scheme| link.starts_with(scheme));
    let relative = page.links.iter().filter(|(link, _)| !outside(link));
    let error = |(link, line): &(String, usize)| {
        let why = error(page, link, pages, exists)?;
        Some(format!("{}: the link to {link} {why}", page.place(*line)))
    };
    relative.filter_map(error).collect()
}

fn error(page: &Page, link: &str, pages: &[Page], exists: &dyn Fn(&Path) -> bool) -> Option<String> {
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let path = match file {
        "" => page.path.clone(),
        file => plain(&page.path.with_file_name("").join(file))?,
    };
    if !exists(&path) {
        return Some(format!("points to {}, which does not exist", path.display()));
    }
    if page.path.starts_with("docs") && !path.starts_with("docs") {
        return Some("points outside docs/, which is not part of the book".to_owned());
    }
    let anchor = anchor?;
    let target = pages.iter().find(|page| page.path == path);
    let found = target.is_some_and(|page| page.anchors.iter().any(|a| a == anchor));
    (!found).then(|| format!("points to a heading that {} does not have", path.display()))
}

/// Returns the path without `.` and `..`; `None` above the root.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => plain.push(part),
            Component::ParentDir => plain.pop().then_some(())?,
            _ => {}
        }
    }
    Some(plain)
}

fn not_in_the_book(pages: &[Page]) -> Vec<String> {
    let summary = pages.iter().find(|page| page.path == Path::new(SUMMARY));
    let listed: BTreeSet<PathBuf> = summary
        .iter()
        .flat_map(|page| &page.links)
        .filter_map(|(link, _)| plain(&Path::new("docs").join(link)))
        .collect();
    let in_docs = pages.iter().filter(|page| page.path.starts_with("docs") && page.path != Path::new(SUMMARY));
    let missing = in_docs.filter(|page| !listed.contains(&page.path));
    missing.map(|page| format!("{}: {SUMMARY} does not list it", page.path.display())).collect()
}

/// Returns missing pages that source comments mention.
fn of_sources(exists: &dyn Fn(&Path) -> bool) -> Result<Vec<String>, String> {
    let mut wrong = Vec::new();
    for (folder, extension) in [("crates", "rs"), ("benches", "rs"), ("examples", "rs"), ("scenarios", "toml")] {
        for path in files(&root().join(folder), extension, true)? {
            let text = read(&path)?;
            let missing = named(&text).filter(|page| !exists(page));
            let shown = path.strip_prefix(root()).unwrap_or(&path).display();
            wrong.extend(missing.map(|page| format!("{shown}: mentions {}, which does not exist", page.display())));
        }
    }
    Ok(wrong)
}

/// Returns every `docs/….md` in a text.
fn named(text: &str) -> impl Iterator<Item = &Path> {
    let within = |c: char| c.is_alphanumeric() || matches!(c, '/' | '-' | '_' | '.');
    text.split(move |c| !within(c)).filter(|word| word.starts_with("docs/") && word.ends_with(".md")).map(Path::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(link: &str) -> Vec<String> {
        let parse = |path: &str, text: &str| Page::parse(path.into(), text);
        let pages = [
            parse("docs/a/one.md", &format!("[x]({link})")),
            parse("docs/two.md", "# Here it is"),
            parse("README.md", "# Top"),
        ];
        let paths: Vec<PathBuf> = pages.iter().map(|p| p.path.clone()).collect();
        of_page(&pages[0], &pages, &|path| paths.iter().any(|p| p == path))
    }

    #[test]
    fn valid_links_are_accepted() {
        for link in ["../two.md", "../two.md#here-it-is", "one.md", "https://example.org/none.md#x"] {
            assert_eq!(errors(link), Vec::<String>::new(), "{link}");
        }
    }

    #[test]
    fn broken_links_are_reported_with_their_place() {
        for (link, why) in [
            ("two.md", "docs/a/two.md, which does not exist"),
            ("../two.md#there", "a heading that docs/two.md does not have"),
            ("#here-it-is", "a heading that docs/a/one.md does not have"),
            ("../../README.md", "outside docs/"),
        ] {
            let [error] = &errors(link)[..] else { panic!("{link}: {:?}", errors(link)) };
            assert!(error.starts_with("docs/a/one.md:1: ") && error.contains(why), "{error}");
        }
    }

    #[test]
    fn page_outside_the_table_of_contents_is_reported() {
        let parse = |path: &str, text: &str| Page::parse(path.into(), text);
        let pages = [parse(SUMMARY, "[one](one.md)"), parse("docs/one.md", ""), parse("docs/two.md", "")];
        assert_eq!(not_in_the_book(&pages), ["docs/two.md: docs/SUMMARY.md does not list it"]);
    }

    #[test]
    fn pages_named_in_comments_are_found() {
        let text = "//! see `docs/explanation/tcp.md`, or (docs/a/b-c.md): not mydocs/x.md, docs/x.rs";
        assert_eq!(named(text).collect::<Vec<_>>(), [Path::new("docs/explanation/tcp.md"), Path::new("docs/a/b-c.md")]);
    }

    #[test]
    fn guides_show_the_files_that_they_name() {
        for (guide, file) in [
            ("metric", "lab/src/metrics/pacer_drops.rs"),
            ("queue", "netsim/src/link/queue/expiry.rs"),
            ("source", "netsim/src/flow/source/screen.rs"),
        ] {
            let text = read(&root().join(format!("crates/paceline-{file}"))).unwrap();
            let (_, after_licence) = text.split_once('\n').unwrap();
            let example = after_licence.split("\n#[cfg(test)]").next().unwrap();
            let guide = root().join(format!("docs/how-to/{guide}.md"));
            assert!(
                example.len() > 500 && read(&guide).unwrap().contains(example),
                "{} is out of date",
                guide.display()
            );
        }
    }
}
