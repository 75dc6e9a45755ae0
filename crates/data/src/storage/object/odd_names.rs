//! Names of objects for which `object_store` has no path, such as `a//b`. A page of a listing with one of them would be refused, so they are
//! taken out of it.

use super::failure::element;
use object_store::path::Path;
use quick_xml::escape::unescape;

/// Elements of objects and folders in a page with the elements of their names: those of S3 and Google Cloud Storage, then those of Azure.
const ENTRIES: [(&str, &str); 4] =
    [("Contents", "Key"), ("CommonPrefixes", "Prefix"), ("Blob", "Name"), ("BlobPrefix", "Name")];
/// Elements of the length of an object.
const LENGTHS: [&str; 2] = ["Size", "Content-Length"];
/// Parameters of requests for a page.
const LISTINGS: [&str; 2] = ["list-type=2", "comp=list"];

/// The names that were taken out of a page, as an extension of its response.
#[derive(Clone, Debug, Default)]
pub(super) struct OddNames(pub(super) Vec<String>);

/// Takes odd names with their entries out of the response to a request with this `query`, if that is a page.
pub(super) fn take(query: Option<&str>, response: &mut Vec<u8>) -> OddNames {
    let mut names = OddNames::default();
    let mut parameters = query.into_iter().flat_map(|query| query.split('&'));
    let is_page = parameters.any(|parameter| LISTINGS.contains(&parameter));
    let text = if is_page { std::str::from_utf8(response).ok() } else { None };
    let Some(mut page) = text.map(str::to_string) else { return names };
    for (entry, name_element) in ENTRIES {
        let (start, end) = (format!("<{entry}>"), format!("</{entry}>"));
        let mut pieces = page.split(&start);
        let mut kept = pieces.next().unwrap_or_default().to_string();
        for piece in pieces {
            let (content, rest) = piece.split_once(&end).unwrap_or((piece, ""));
            if let Some(name) = odd_name(content, name_element) {
                names.0.push(name);
                kept.push_str(rest);
            } else {
                kept.push_str(&start);
                kept.push_str(piece);
            }
        }
        page = kept;
    }
    *response = page.into_bytes();
    names
}

/// The name of an entry; `None` if it has a path.
fn odd_name(content: &str, name_element: &str) -> Option<String> {
    let escaped = element(content, name_element)?;
    let name = unescape(escaped).map_or_else(|_| escaped.to_string(), |name| name.into_owned());
    let mut lengths = LENGTHS.iter().filter_map(|length| element(content, length));
    // Folders, and empty objects that mark them, have a slash at the end.
    let has_content = lengths.any(|bytes| bytes != "0");
    let path = name.strip_suffix('/').filter(|_| !has_content).unwrap_or(&name);
    let has_path = Path::parse(path).is_ok_and(|parsed| parsed.as_ref() == path);
    (!has_path).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(entry: &str, expected: Option<&str>) {
        let before = "<Prefix>a//</Prefix><Contents><Key>a</Key><Size>1</Size></Contents>";
        let after = "<Blob><Name>b</Name></Blob><NextMarker>c//</NextMarker>";
        let page = format!("{before}{entry}{after}");
        for query in ["prefix=a&list-type=2", "comp=list&restype=container"] {
            let mut response = page.clone().into_bytes();
            let names = take(Some(query), &mut response);
            assert_eq!(names.0, Vec::from_iter(expected.map(str::to_string)), "{entry}");
            let kept = if expected.is_some() { format!("{before}{after}") } else { page.clone() };
            assert_eq!(String::from_utf8(response).unwrap(), kept);
        }
        for query in [None, Some("uploads=&prefix=a")] {
            let mut response = page.clone().into_bytes();
            assert_eq!(take(query, &mut response).0, [""; 0]);
            assert_eq!(response, page.as_bytes());
        }
    }

    #[test]
    fn only_names_without_a_path_are_taken_out_of_a_page() {
        for (key, bytes, expected) in [
            ("a/b", 1, None),
            ("ä &amp; b%2F+c?/.d", 1, None),
            ("a/", 0, None),
            ("a/", 1, Some("a/")),
            ("a//b", 1, Some("a//b")),
            ("a//", 0, Some("a//")),
            ("/a", 1, Some("/a")),
            ("a/../b", 1, Some("a/../b")),
            ("./a", 1, Some("./a")),
            ("&lt;a&#10;b&gt;", 1, Some("<a\nb>")),
        ] {
            let s3 = format!("<Contents><Key>{key}</Key><Size>{bytes}</Size></Contents>");
            let length = format!("<Content-Length>{bytes}</Content-Length>");
            let azure = format!("<Blob><Name>{key}</Name><Properties>{length}</Properties></Blob>");
            check(&s3, expected);
            check(&azure, expected);
        }
        for (prefix, expected) in [("a/", None), ("a//", Some("a//")), ("a/../", Some("a/../"))] {
            let s3 = format!("<CommonPrefixes><Prefix>{prefix}</Prefix></CommonPrefixes>");
            check(&s3, expected);
            check(&format!("<BlobPrefix><Name>{prefix}</Name></BlobPrefix>"), expected);
        }
    }
}
