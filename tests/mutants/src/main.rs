//! `sluice-mutants MESSAGES [--matrix] [NAME…]`: runs the mutants of these names, or all. MESSAGES is a file with what
//! `cargo test --no-run --message-format=json` wrote; `scripts/mutants` makes it.

use std::process::ExitCode;
use std::time::Instant;
use std::{env, fs};

use sluice_mutants::Mutant;
use sluice_mutants::matrix::Matrix;
use sluice_mutants::run::{each_against_its_killer, matrix_against_each};
use sluice_mutants::table::mutants;

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let Some(messages) = arguments.next() else {
        return complain("no file with cargo's messages is named: run scripts/mutants");
    };
    let (flags, names): (Vec<String>, Vec<String>) =
        arguments.partition(|argument| argument.starts_with("--"));
    if let Some(flag) = flags.iter().find(|flag| *flag != "--matrix") {
        return complain(&format!("{flag} is unknown: there is --matrix"));
    }
    let messages = match fs::read_to_string(&messages) {
        Ok(messages) => messages,
        Err(error) => return complain(&format!("{messages}: {error}")),
    };
    let chosen = match chosen(&names) {
        Ok(chosen) => chosen,
        Err(complaint) => return complain(&complaint),
    };

    let matrix = Matrix::from_messages(&messages);
    let start = Instant::now();
    let ran = if flags.is_empty() {
        each_against_its_killer(&matrix, &chosen)
    } else {
        matrix_against_each(&matrix, &chosen)
    };
    match ran {
        Err(error) => complain(&error.to_string()),
        Ok(tally) => {
            // As a test harness says it: whoever adds tests up need not know this one.
            println!(
                "test result: {}. {} passed; {} failed; mutants killed, of {}, in {:.0} s",
                if tally.failed == 0 { "ok" } else { "FAILED" },
                tally.killed,
                tally.failed,
                chosen.len(),
                start.elapsed().as_secs_f32()
            );
            ExitCode::from(u8::from(tally.failed != 0))
        }
    }
}

fn chosen(names: &[String]) -> Result<Vec<Mutant>, String> {
    let all = mutants();
    if names.is_empty() {
        return Ok(all);
    }
    names
        .iter()
        .map(|name| {
            all.iter()
                .find(|mutant| mutant.name == name)
                .copied()
                .ok_or_else(|| format!("no mutant is called {name}"))
        })
        .collect()
}

fn complain(complaint: &str) -> ExitCode {
    eprintln!("sluice-mutants: {complaint}");
    ExitCode::from(2)
}
