//! Inputs that fuzzing kept, in every run of the tests (TEST-F). New inputs are found by
//! `make fuzz`.

use std::{
    collections::BTreeSet,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use portolan_replay::TARGETS;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// The names of the files of a folder, without extensions.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let stem = |entry: fs::DirEntry| Some(entry.path().file_stem()?.to_str()?.to_owned());
    entries.filter_map(|entry| stem(entry.ok()?)).collect()
}

#[test]
fn every_target_of_fuzzing_is_here_and_has_a_corpus() {
    let here: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(here, names(&fuzz().join("targets")));
    assert_eq!(here, names(&fuzz().join("corpus")));
}

#[test]
fn what_fuzzing_kept_still_holds() {
    let mut all = 0;
    for (name, target) in TARGETS {
        let folder = fuzz().join("corpus").join(name);
        let before = all;
        for entry in fs::read_dir(&folder).expect("a corpus").flatten() {
            let path = entry.path();
            let data = fs::read(&path).expect("an input");
            let held = catch_unwind(AssertUnwindSafe(|| target(&data)));
            assert!(held.is_ok(), "{}", path.display());
            all += 1;
        }
        assert!(all >= before + 2, "{name}: {} inputs", all - before);
    }
    println!("{} targets, {all} inputs", TARGETS.len());
}
