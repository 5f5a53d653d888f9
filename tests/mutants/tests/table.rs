//! The table of mutants does not rot: every text that it changes is there, once, and every test that it names too.

use std::collections::BTreeSet;

use sluice_mutants::place;
use sluice_mutants::table::mutants;

#[test]
fn every_mutant_changes_what_stands_once_in_a_file_that_is_shipped() {
    let mut gone = vec![];
    for mutant in mutants() {
        assert!(!mutant.edits.is_empty(), "{}", mutant.name);
        let files: BTreeSet<&str> = mutant.edits.iter().map(|edit| edit.file).collect();
        for file in files {
            assert!(
                file.starts_with("sql/") || file.starts_with("src/"),
                "{}: {file} is not shipped",
                mutant.name
            );
            let content = place::read(file).expect("the file is there");
            match mutant.changed(file, &content) {
                Ok(changed) => assert_ne!(changed, content, "{}: {file}", mutant.name),
                Err(error) => gone.push(error.to_string()),
            }
        }
    }
    assert!(gone.is_empty(), "{}", gone.join("\n"));
}

#[test]
fn no_two_mutants_have_one_name_and_there_are_enough_of_them() {
    let all = mutants();
    let names: BTreeSet<&str> = all.iter().map(|mutant| mutant.name).collect();
    assert_eq!(names.len(), all.len());
    assert!(names.len() >= 40, "{} mutants", names.len());
}

#[test]
fn every_test_that_is_to_kill_a_mutant_is_in_the_matrix() {
    for mutant in mutants() {
        let killer = mutant.killer;
        let (module, test) = killer.test.split_once("::").expect("a test in a module");
        let file = format!("tests/scenarios/tests/{}/{module}.rs", killer.folder);
        let source = place::read(&file).unwrap_or_else(|error| panic!("{error}"));
        assert!(
            source.contains(&format!("#[test]\nfn {test}()")),
            "{}: {file} has no test {test}",
            mutant.name
        );
    }
}
