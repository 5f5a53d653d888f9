//! The page `docs/failures.md` and the tests that it names: each is there, and no test of the failure matrix is left unsaid.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the failure matrix lies: each folder's every test is a row of the page.
const MATRIX: &str = "tests/scenarios/tests";

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What the page names, as `path/file.rs::test`.
fn named() -> BTreeSet<String> {
    read(&checkout().join("docs/failures.md"))
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|code| code.contains(".rs::"))
        .map(str::to_owned)
        .collect()
}

/// The names of the tests in a source file.
fn tests_in(source: &str) -> Vec<String> {
    let mut tests = vec![];
    let mut marked = false;
    for line in source.lines().map(str::trim) {
        if line == "#[test]" || line == "#[pg_test]" {
            marked = true;
        } else if let Some(rest) = line.strip_prefix("fn ")
            && marked
        {
            tests.extend(rest.split('(').next().map(str::to_owned));
            marked = false;
        }
    }
    tests
}

#[test]
fn every_test_that_the_page_names_is_there() {
    let named = named();
    assert!(named.len() > 50, "the page names {} tests", named.len());
    for name in named {
        let (file, test) = name.split_once("::").expect("it was found by the colons");
        let tests = tests_in(&read(&checkout().join(file)));
        assert!(
            tests.iter().any(|there| there == test),
            "{name}: no such test"
        );
    }
}

/// The source files in the folders of the matrix, as paths from the checkout's root.
fn files_of_the_matrix() -> Vec<String> {
    let entries = |path: &Path| -> Vec<PathBuf> {
        fs::read_dir(path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
            .map(|entry| entry.expect("a folder can be read").path())
            .collect()
    };
    entries(&checkout().join(MATRIX))
        .iter()
        .filter(|path| path.is_dir())
        .flat_map(|folder| entries(folder))
        .map(|file| {
            let file = file
                .strip_prefix(checkout())
                .expect("it lies in the checkout");
            file.to_string_lossy().into_owned()
        })
        .collect()
}

#[test]
fn every_test_of_the_matrix_is_named_by_the_page() {
    let named = named();
    let mut unsaid = vec![];
    for file in files_of_the_matrix() {
        for test in tests_in(&read(&checkout().join(&file))) {
            let name = format!("{file}::{test}");
            if !named.contains(&name) {
                unsaid.push(name);
            }
        }
    }
    unsaid.sort();
    assert_eq!(unsaid, [] as [String; 0]);
}
