//! Tests of each rule: on this source tree, and on files that violate the rule.

use super::repo::Repo;
use super::tokens::{tokens, without_tests};
use super::{Check, circles, docs, families, language, layout, modules, places, text, tidy};

/// Asserts that the rule finds exactly `expected` (`path:line: description`) in the given files.
fn assert_violations(check: &Check, files: &[(&str, &str)], expected: &[&str]) {
    let repo = Repo::with_files(files);
    let findings: Vec<String> =
        (check.find)(&repo).iter().map(|finding| finding.to_string().trim().to_string()).collect();
    assert_eq!(findings, expected);
}

#[test]
fn the_source_tree_meets_all_rules() {
    if let Err(violations) = tidy(&crate::workspace_root()) {
        panic!("\n{violations}\n");
    }
}

#[test]
fn planted_crate_directions_are_found() {
    let manifest = "[dependencies]\nfeedrate-spec = { workspace = true }\nfeedrate-run.workspace = true\n\
                    [dev-dependencies.feedrate-data]\npath = \"../data\"\n";
    assert_violations(
        &layout::CRATE_DIRECTIONS,
        &[
            ("crates/measure/Cargo.toml", manifest),
            ("crates/new/Cargo.toml", "[package]\nname = \"feedrate-new\"\n"),
        ],
        &[
            "crates/measure/Cargo.toml:3: `measure` uses `run`",
            "crates/measure/Cargo.toml:4: `measure` uses `data`",
            "crates/new/Cargo.toml:1: crate `new` has no row",
        ],
    );
}

#[test]
fn planted_module_order_is_found() {
    assert_violations(
        &modules::MODULE_ORDER,
        &[
            ("crates/x/Cargo.toml", ""),
            ("crates/x/src/lib.rs", "//! X.\npub mod a;\npub mod b;\npub mod c;\n"),
            (
                "crates/x/src/a.rs",
                "//! [`crate::b`]\nuse crate::{a::x, b::{y, z}, c};\n#[cfg(test)]\nuse crate::c;\n",
            ),
            ("crates/x/src/b/mod.rs", "use crate::a;\nfn f() { super::c::g() }\n"),
            ("crates/x/src/b/d.rs", "use super::c;\nuse super::super::c;\n"),
            ("crates/x/src/a/tests.rs", "use crate::c;\n"),
            (
                "crates/x/src/c.rs",
                "use crate::a;\nuse crate::b;\n#[cfg(test)]\nmod tests {\n use super::*;\n}\n",
            ),
        ],
        &[
            "crates/x/src/a.rs:2: `a` uses `b`, which comes after it",
            "crates/x/src/a.rs:2: `a` uses `c`, which comes after it",
            "crates/x/src/b/mod.rs:2: `b` uses `c`, which comes after it",
            "crates/x/src/b/d.rs:2: `b` uses `c`, which comes after it",
        ],
    );
}

#[test]
fn planted_dead_files_are_found() {
    assert_violations(
        &modules::NO_DEAD_FILE,
        &[
            ("crates/x/Cargo.toml", "[[test]]\npath = \"tests/it/main.rs\"\n"),
            ("crates/x/src/lib.rs", "mod a;\n// mod dead;\n"),
            ("crates/x/src/a/mod.rs", "mod b;\n"),
            ("crates/x/src/a/b.rs", "mod c;\n"),
            ("crates/x/src/a/b/c.rs", ""),
            ("crates/x/src/dead.rs", ""),
            ("crates/x/src/a/c.rs", ""),
            ("crates/x/src/bin/tool.rs", ""),
            ("crates/x/tests/it/main.rs", "mod plan;"),
            ("crates/x/tests/it/plan.rs", ""),
            ("crates/x/tests/it/gone.rs", ""),
        ],
        &[
            "crates/x/src/dead.rs:1: no `mod` line declares it",
            "crates/x/src/a/c.rs:1: no `mod` line declares it",
            "crates/x/tests/it/gone.rs:1: no `mod` line declares it",
        ],
    );
}

#[test]
fn planted_member_imports_are_found() {
    let format = "crates/data/src/format";
    let row = "static ROW: Member = Member { name: \"x\" };\n";
    assert_violations(
        &families::MEMBERS_APART,
        &[
            (&format!("{format}/mod.rs"), "mod npy;\nmod npz;\npub use npy::Npy;\n"),
            (
                &format!("{format}/npy.rs"),
                &format!(
                    "{row}use super::{{Format, npz::Zip}};\n// super::npz is only spoken of\n"
                ),
            ),
            (
                &format!("{format}/npz.rs"),
                &format!("{row}use crate::format::npy;\nuse super::{{Format, packed}};\n"),
            ),
            (&format!("{format}/hdf5/mod.rs"), &format!("{row}mod npy;\nuse super::npz;\n")),
            (&format!("{format}/hdf5/chunk.rs"), "use super::npz;\nuse super::super::npy;\n"),
            (&format!("{format}/tests.rs"), "use super::npz;\n"),
            (&format!("{format}/packed.rs"), "#[cfg(test)]\nstatic A: B = B { name: \"x\" };\n"),
            ("crates/data/src/storage/file.rs", &format!("{row}use super::engine;\n")),
            ("crates/data/src/storage/engine/psync.rs", row),
            ("crates/run/src/layers/delay.rs", "use super::{slots, throttle};\n"),
            ("crates/run/src/layers/throttle.rs", "const TEXT: &str = \"use super::delay\";\n"),
            ("crates/run/src/layers/slots.rs", ""),
        ],
        &[
            "crates/data/src/format/npy.rs:2: `npy` imports `npz`",
            "crates/data/src/format/npz.rs:2: `npz` imports `npy`",
            "crates/data/src/format/hdf5/mod.rs:3: `hdf5` imports `npz`",
            "crates/data/src/format/hdf5/chunk.rs:2: `hdf5` imports `npy`",
            "crates/run/src/layers/delay.rs:1: `delay` imports `throttle`",
        ],
    );
}

#[test]
fn planted_comparisons_of_names_are_found() {
    let source = "fn f(x: &str) -> bool {\n  let y = \"npz\";\n  x == \"npz\"\n    || \"npz\" != x\n    \
                    || matches!(x, \"raw\" | \"npz\")\n}\nfn g(x: &str) {\n  match x {\n    \"npz\" => {}\n  }\n}\n\
                    #[cfg(test)]\nfn t() { x == \"npz\" }\n";
    assert_violations(
        &families::NAMES_NOT_COMPARED,
        &[
            ("crates/data/src/format/npz.rs", "static X: Row = Row { name: \"npz\" };"),
            ("crates/data/src/format/mod.rs", "fn f(x: &str) -> bool { x == \"npz\" }"),
            ("crates/run/src/x.rs", source),
        ],
        &[
            "crates/run/src/x.rs:3: compares \"npz\"",
            "crates/run/src/x.rs:4: compares \"npz\"",
            "crates/run/src/x.rs:5: compares \"npz\"",
            "crates/run/src/x.rs:9: compares \"npz\"",
        ],
    );
}

#[test]
fn planted_constants_of_names_are_found() {
    let constants = "const A: &str = \"npz\";\nconst B: [&str; 2] = [\"npz\", \"x\"];\nconst C: &str = \"npz\";\n\
                     fn f(x: &str) -> bool { x == A || B.contains(&x) || x != format!(\"a={C}\") }\n";
    assert_violations(
        &families::NAMES_NOT_COMPARED,
        &[
            ("crates/data/src/format/npz.rs", "static X: Row = Row { name: \"npz\" };"),
            ("crates/run/src/x.rs", constants),
        ],
        &["crates/run/src/x.rs:1: compares \"npz\"", "crates/run/src/x.rs:2: compares \"npz\""],
    );
}

#[test]
fn planted_imports_of_later_siblings_are_found() {
    let uses = "use super::b;\nuse crate::c::d::x;\nuse super::c::d;\nuse super::b::y;\nuse super::c;\nuse super::d::w;\n";
    assert_violations(
        &modules::SIBLING_ORDER,
        &[
            ("crates/feedrate/Cargo.toml", ""),
            ("crates/feedrate/src/lib.rs", "mod c;\n"),
            ("crates/feedrate/src/c/mod.rs", "mod a;\nmod b;\nmod d;\nuse a::z;\nuse b::z;\n"),
            ("crates/feedrate/src/c/a.rs", uses),
            ("crates/feedrate/src/c/b.rs", "use super::a;\nuse super::d::{e, f};\n"),
            ("crates/feedrate/src/c/d.rs", "use super::a;\n"),
        ],
        &[
            "crates/feedrate/src/c/a.rs:1: `a` imports `b`, which is declared after it",
            "crates/feedrate/src/c/a.rs:2: `a` imports `d`, which is declared after it",
            "crates/feedrate/src/c/a.rs:4: `a` imports `b`, which is declared after it",
            "crates/feedrate/src/c/a.rs:6: `a` imports `d`, which is declared after it",
            "crates/feedrate/src/c/b.rs:2: `b` imports `d`, which is declared after it",
        ],
    );
}

#[test]
fn planted_circles_are_found() {
    assert_violations(
        &circles::NO_FILE_CIRCLES,
        &[
            ("crates/x/Cargo.toml", ""),
            ("crates/x/src/lib.rs", "mod a;\nmod f;\npub use f::C;\n"),
            // A parent and its children are not a circle, but children that use each other through the parent are.
            ("crates/x/src/a.rs", "use crate::f::Trait;\n"),
            (
                "crates/x/src/f/mod.rs",
                "mod b;\nmod c;\nmod d;\npub use c::C;\npub trait Trait {}\n",
            ),
            ("crates/x/src/f/b.rs", "use super::{C, Trait};\n"),
            ("crates/x/src/f/c.rs", "fn f() { super::d::g() }\n#[cfg(test)]\nuse super::b::B;\n"),
            ("crates/x/src/f/d.rs", "use crate::f::{Trait, b::{self, B}};\nuse std::fmt;\n"),
        ],
        &[
            "crates/x/src/f/b.rs:1: in a circle with `f::c`, `f::d`",
            "crates/x/src/f/c.rs:1: in a circle with `f::b`, `f::d`",
            "crates/x/src/f/d.rs:1: in a circle with `f::b`, `f::c`",
        ],
    );
}

#[test]
fn planted_meetings_of_format_and_storage_are_found() {
    assert_violations(
        &families::FORMAT_AND_STORAGE_APART,
        &[
            ("crates/data/src/format/npy.rs", "//! No storage.\nuse crate::storage::Handle;\n"),
            (
                "crates/data/src/storage/file.rs",
                "use super::super::format::Need;\nuse crate::content;\n",
            ),
        ],
        &[
            "crates/data/src/format/npy.rs:2: names `storage`",
            "crates/data/src/storage/file.rs:1: names `format`",
        ],
    );
}

#[test]
fn reserved_access_in_other_files_is_found() {
    for (path, source, expected) in [
        ("crates/run/src/clock.rs", "fn f() { Instant::now(); }\n", None),
        ("crates/data/src/x.rs", "fn f() { Instant::now(); }\n", Some("reads the time")),
        ("crates/data/src/x.rs", "fn f() { jiff::Zoned::now(); }\n", Some("reads the time")),
        ("crates/feedrate/src/messages.rs", "fn f() { println!(); }\n", None),
        ("crates/run/src/x.rs", "fn f() { println!(); }\n", Some("uses stdout or stderr")),
        ("crates/run/src/x.rs", "fn f() { io::stderr(); }\n", Some("uses stdout or stderr")),
        ("crates/run/src/x.rs", "fn f() { command.stdout(x); }\n", None),
        ("crates/feedrate/src/x.rs", "fn f() { env::var(\"A\"); }\n", None),
        (
            "crates/run/src/x.rs",
            "fn f() { env::var_os(\"A\"); }\n",
            Some("reads arguments or the environment"),
        ),
        ("crates/run/src/x.rs", "static A: AtomicU64 = B;\n", Some("keeps global state")),
        ("crates/run/src/x.rs", "static A: [u64; 2] = B;\n", None),
        ("crates/run/src/x.rs", "static mut A: u64 = 1;\n", Some("keeps global state")),
        ("crates/run/src/x.rs", "thread_local! {}\n", Some("keeps global state")),
        ("crates/data/src/x.rs", "fn f() { clock.now_ns(); }\n", None),
        ("crates/data/src/x.rs", "fn f() { SystemTime::now(); }\n", Some("reads the time")),
        ("crates/engine/src/x.rs", "use std::thread;\n", Some("accesses the machine")),
        ("crates/spec/src/x.rs", "use std::process::Command;\n", Some("accesses the machine")),
        ("crates/engine/src/x.rs", "use std::fs::File;\n", Some("accesses the machine")),
        ("crates/engine/src/x.rs", "use std::fmt;\n", None),
    ] {
        let repo = Repo::with_files(&[(path, source)]);
        let violations = (places::RESERVED_ACCESS.find)(&repo);
        let found: Vec<_> = violations
            .iter()
            .map(|violation| {
                let description = violation.description.split(':').next();
                (violation.path.as_str(), violation.line, description)
            })
            .collect();
        let expected: Vec<_> =
            expected.into_iter().map(|description| (path, 1, Some(description))).collect();
        assert_eq!(found, expected, "{source}");
    }
}

#[test]
fn planted_files_without_headers_are_found() {
    assert_violations(
        &text::FILES_HAVE_HEADERS,
        &[
            ("crates/x/src/lib.rs", "//! Says.\n"),
            ("crates/x/src/a.rs", "// Does not.\n"),
            ("bench/a.rs", ""),
        ],
        &["crates/x/src/a.rs:1: does not begin with `//! `"],
    );
}

#[test]
fn planted_long_files_are_found() {
    let long = "\n".repeat(500);
    assert_violations(
        &text::SHORT_FILES,
        &[
            ("crates/x/src/a.rs", &format!("//! A.\n{long}")),
            ("crates/x/src/b.rs", &format!("//! B.\n//! Long because it is a table.\n{long}")),
            ("crates/x/src/c.rs", &long),
        ],
        &["crates/x/src/a.rs:1: 501 lines"],
    );
}

#[test]
fn planted_loose_ends_are_found() {
    assert_violations(
        &text::NO_LOOSE_ENDS,
        &[
            (
                "crates/x/src/a.rs",
                &["// TO", "DO: later\n// TODO(#12): fine\n// no `TODO` here\nlet s = \"TODO\";\n"]
                    .concat(),
            ),
            ("bench/run.py", "x = 1  # FIXME\n"),
            ("README.md", "TODO lists are for others\n"),
        ],
        &[
            "crates/x/src/a.rs:1: `TODO` without `#` and a number",
            "bench/run.py:1: `FIXME` without `#` and a number",
        ],
    );
}

#[test]
fn planted_machine_paths_are_found() {
    let text = [
        "see ",
        "/ro",
        "ot/x, a/ro",
        "ot/b, https://x/",
        "home/y, \"",
        "/ho",
        "me/me/z\", /workspace/",
    ]
    .concat();
    assert_violations(
        &text::NO_MACHINE_PATHS,
        &[("README.md", &text)],
        &[&["README.md:1: `/ro", "ot/`"].concat(), &["README.md:1: `/ho", "me/`"].concat()],
    );
}

#[test]
fn planted_vague_words_and_names_are_found() {
    let source = "//! Told to whoever: so many lies.\nfn of_x(one: u8, what: u8) {\n    let own = one.many + so();\n    \
                  x.map(|near| near + whole)\n}\n// untold, a_lay, `told_at`\n#[cfg(test)]\nmod tests {\n    // Asked.\n    \
                  fn of(near: u8) -> u8 {\n        near\n    }\n}\n";
    assert_violations(
        &language::PLAIN_LANGUAGE,
        &[
            ("crates/x/Cargo.toml", ""),
            ("crates/x/src/lib.rs", source),
            ("crates/x/src/a.rs", &"let one = near;\n".repeat(3)),
            ("crates/y/Cargo.toml", ""),
            ("crates/y/src/lib.rs", "// No word.\nlet one = 1;\n"),
        ],
        &[
            "crates/x:1: 4 words in 2 comment lines, more than 6 in 1000",
            "crates/x/src/lib.rs:1: `told` in a comment",
            "crates/x/src/lib.rs:1: `whoever` in a comment",
            "crates/x/src/lib.rs:1: `so many` in a comment",
            "crates/x/src/lib.rs:1: `lies` in a comment",
            "crates/x:1: 11 names, more than 8",
            "crates/x/src/lib.rs:3: the name `own`",
            "crates/x/src/lib.rs:3: the name `one`",
            "crates/x/src/lib.rs:4: the name `near`",
            "crates/x/src/lib.rs:4: the name `near`",
            "crates/x/src/lib.rs:4: the name `whole`",
            "crates/x/src/a.rs:1: the name `one`",
            "crates/x/src/a.rs:1: the name `near`",
            "crates/x/src/a.rs:2: the name `one`",
            "crates/x/src/a.rs:2: the name `near`",
            "crates/x/src/a.rs:3: the name `one`",
            "crates/x/src/a.rs:3: the name `near`",
            "crates/x:1: 1 functions called `of…`, more than 0",
            "crates/x/src/lib.rs:2: the function `of_x`",
        ],
    );
}

#[test]
fn planted_dead_links_are_found() {
    assert_violations(
        &docs::LINKS_HAVE_TARGETS,
        &[
            ("README.md", "[a](docs/a.md#one-two) [b](docs/c.md) [c](docs) [d](https://x/y)\n"),
            ("docs/a.md", "# One *two*\n[b](../README.md)\n\n[c](#one) ![p](p.svg) [d](b/b.md)\n"),
            ("docs/b/b.md", "[a](../a.md#one-two)\n```text\n[x](y.md)\n```\n[a](../a.md#x)\n"),
        ],
        &[
            "README.md:1: `docs/c.md` does not exist",
            "docs/a.md:2: `../README.md` leads out of the book",
            "docs/a.md:4: `#one` is not a heading",
            "docs/a.md:4: `p.svg` does not exist",
            "docs/b/b.md:5: `../a.md#x` is not a heading",
        ],
    );
}

#[test]
fn planted_pages_outside_the_book_are_found() {
    let long = "\n".repeat(111);
    assert_violations(
        &docs::THE_BOOK_IS_COMPLETE,
        &[
            ("README.md", &long),
            ("docs/SUMMARY.md", "[A](a.md)\n\n- [B](b/b.md)\n- [B again](b/b.md)\n"),
            ("docs/a.md", ""),
            ("docs/b/b.md", ""),
            ("docs/b/c.md", ""),
        ],
        &[
            "README.md:1: 111 lines",
            "docs/b/b.md:1: is listed 2 times in docs/SUMMARY.md",
            "docs/b/c.md:1: is listed 0 times in docs/SUMMARY.md",
        ],
    );
}

#[test]
fn literals_and_comments_are_not_tokens_of_code() {
    let check = |source: &str, expected: &str| {
        let words: Vec<String> = tokens(source).into_iter().map(|token| token.text).collect();
        assert_eq!(words.join(" "), expected, "{source}");
    };
    check("let a = \"}\\\"//\"; // b", "let a = \" ;");
    check("f('{', '\\'', b'\"', 'x')", "f ( \" , \" , \" , \" )");
    check("fn f<'a>(x: &'a str)", "fn f < ' a > ( x : & ' a str )");
    check("r#\"a \" b\"# r\"\\\" br##\"\"#\"## 1.5", "\" \" \" 1.5");
    check("a /* b /* c */ d */ e::f", "a e :: f");
}

#[test]
fn tests_are_removed_from_the_tokens() {
    let source = "a; #[cfg(test)] use b::{c}; #[cfg(all(test, unix))] mod d { e } #[test] fn f() {} \
                  #[cfg(not(test))] g; #[cfg(test)] mod h; i";
    let words: Vec<String> =
        without_tests(&tokens(source)).into_iter().map(|token| token.text).collect();
    assert_eq!(words.join(" "), "a ; # [ cfg ( not ( test ) ) ] g ; i");
}
