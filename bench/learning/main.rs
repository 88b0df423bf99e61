//! How well the governor learns what an upstream allows, in virtual time.
//! What is simulated, and what isn't: `README.md` beside this file.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a bench that panics fails, and its numbers are small"
)]

mod aimd;
mod bars;
mod chance;
mod figures;
mod flavour;
mod governed;
mod gradient2;
mod limited;
mod options;
mod oracle;
mod plot;
mod policy;
mod report;
mod runs;
mod scenario;
mod trace;
mod upstream;
mod vegas;
mod world;

use std::env;
use std::process::ExitCode;
use std::time::Instant;

use options::{Options, USAGE};

#[allow(clippy::disallowed_methods, reason = "how long the runs take")]
fn main() -> ExitCode {
    let options = match Options::parse(env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("{problem}\n{USAGE}");
            return ExitCode::FAILURE;
        }
    };
    if let Some(case) = options.trace {
        trace::print(&options, case);
        return ExitCode::SUCCESS;
    }
    let began = Instant::now();
    let results = runs::run(&options);
    println!("{}", report::text(&options, &results));
    println!("{:.1} s", began.elapsed().as_secs_f64());
    if options.write
        && let Err(problem) = report::write(&options, &results)
    {
        eprintln!("{problem}");
        return ExitCode::FAILURE;
    }
    if !options.check {
        return ExitCode::SUCCESS;
    }
    let missed = bars::missed(&options, &results);
    for sentence in &missed {
        eprintln!("missed: {sentence}");
    }
    if missed.is_empty() {
        println!("every bar is cleared");
        return ExitCode::SUCCESS;
    }
    ExitCode::FAILURE
}
