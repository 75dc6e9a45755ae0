//! Rules about documents: links have targets, the summary of the book lists every page, and the README is short.

use super::repo::{Repo, SourceFile};
use super::{Check, Violation};
use pulldown_cmark::{Event, Parser, Tag, TagEnd};

const README_LINES_MAX: usize = 110;
const BOOK: &str = "docs/";
const SUMMARY: &str = "docs/SUMMARY.md";

pub(super) static LINKS_HAVE_TARGETS: Check = Check {
    rule: "every link has an existing file and heading as its target, and links in the book stay in the book",
    advice: "write the path from the folder of the document, and a heading in lower case with `-` for blanks",
    find: |repo| documents(repo).flat_map(|document| dead_links(repo, document)).collect(),
};

pub(super) static THE_BOOK_IS_COMPLETE: Check = Check {
    rule: "each page of the book is listed once in its summary, and the README has at most 110 lines",
    advice: "list the page in docs/SUMMARY.md; move parts of the README to docs/",
    find: |repo| {
        let listed = repo.file(SUMMARY).map_or_else(Vec::new, |summary| {
            links(summary).into_iter().map(|(_, to)| format!("{BOOK}{to}")).collect()
        });
        let mut findings = Vec::new();
        for document in documents(repo) {
            let lines = document.text.lines().count();
            if document.path == "README.md" && lines > README_LINES_MAX {
                findings.push(Violation::new(&document.path, 1, format!("{lines} lines")));
            }
            let times = listed.iter().filter(|path| **path == document.path).count();
            if document.path.starts_with(BOOK) && document.path != SUMMARY && times != 1 {
                let message = format!("is listed {times} times in {SUMMARY}");
                findings.push(Violation::new(&document.path, 1, message));
            }
        }
        findings
    },
};

fn documents(repo: &Repo) -> impl Iterator<Item = &SourceFile> {
    repo.files().iter().filter(|file| file.path.ends_with(".md"))
}

fn dead_links(repo: &Repo, document: &SourceFile) -> Vec<Violation> {
    let local = links(document).into_iter().filter(|(_, to)| !to.contains("://"));
    let dead = local.filter_map(|(line, to)| {
        let fault = link_fault(repo, document, &to)?;
        Some(Violation::new(&document.path, line, format!("`{to}` {fault}")))
    });
    dead.collect()
}

/// Returns the fault of a link; `None` if its target exists.
fn link_fault(repo: &Repo, document: &SourceFile, to: &str) -> Option<&'static str> {
    let (path, heading) = to.split_once('#').unwrap_or((to, ""));
    let target =
        if path.is_empty() { document.path.clone() } else { resolve_path(&document.path, path) };
    if document.path.starts_with(BOOK) && !target.starts_with(BOOK) {
        return Some("leads out of the book");
    }
    let Some(file) = repo.file(&target) else {
        let inside = format!("{target}/");
        let is_folder = repo.files().iter().any(|file| file.path.starts_with(&inside));
        return (!is_folder).then_some("does not exist");
    };
    let is_heading = heading.is_empty() || headings(file).iter().any(|id| id == heading);
    (!is_heading).then_some("is not a heading")
}

/// Returns the targets of links and pictures, with their lines.
fn links(document: &SourceFile) -> Vec<(usize, String)> {
    let events = Parser::new(&document.text).into_offset_iter();
    events
        .filter_map(|(event, range)| match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                let line = document.text[..range.start].matches('\n').count() + 1;
                Some((line, dest_url.to_string()))
            }
            _ => None,
        })
        .collect()
}

/// Returns the identifiers of headings, as mdBook and GitHub derive them.
fn headings(document: &SourceFile) -> Vec<String> {
    let mut headings = Vec::new();
    let mut heading: Option<String> = None;
    for event in Parser::new(&document.text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                headings.extend(heading.take().map(|text| heading_id(&text)))
            }
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            _ => {}
        }
    }
    headings
}

fn heading_id(heading: &str) -> String {
    let allowed_chars = heading.chars().filter(|c| c.is_alphanumeric() || " _-".contains(*c));
    allowed_chars.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase()
}

/// Converts a path relative to `document` to a path from the root.
fn resolve_path(document: &str, path: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}
