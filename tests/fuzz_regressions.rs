//! Every seed of the fuzz targets and every input that once broke one
//! (`fuzz/README.md`), through the same functions, on the stable compiler.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that panics fails"
)]

mod support;
#[path = "../fuzz/src/targets.rs"]
mod targets;

use std::fs;
use std::path::{Path, PathBuf};

/// The files of a target under `fuzz/seeds` or `fuzz/regressions`.
fn inputs(of: &str, target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz")
        .join(of)
        .join(target);
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn every_target_has_seeds_and_none_of_them_breaks_it() {
    for (name, target) in targets::ALL {
        let seeds = inputs("seeds", name);
        assert!(!seeds.is_empty(), "{name} has no seeds");
        println!("{name}: {} seeds", seeds.len());
        for seed in seeds {
            target(&fs::read(seed).unwrap());
        }
    }
}

#[test]
fn what_once_broke_a_target_breaks_it_no_more() {
    for (name, target) in targets::ALL {
        for input in inputs("regressions", name) {
            println!("{}", input.display());
            target(&fs::read(input).unwrap());
        }
    }
}

#[test]
fn a_target_bears_what_is_empty_endless_or_no_text() {
    let endless = [
        b"[".repeat(70_000),
        b"9".repeat(70_000),
        b"a=1&".repeat(9_000),
    ];
    let odd = [Vec::new(), vec![0], vec![0xff; 64], b"\n\n\n\n".to_vec()];
    for (name, target) in targets::ALL {
        println!("{name}");
        for data in odd.iter().chain(&endless) {
            target(data);
        }
    }
}
