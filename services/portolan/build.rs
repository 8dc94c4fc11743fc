//! The console's built files are embedded; a new build of them must be a new build of the binary.
//!
//! A fresh clone has none: they are built here, while the dependencies of the binary compile.

use std::{error::Error, fs, path::Path, process::Command, time::SystemTime};

const CONSOLE: &str = "../../web/dist";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={CONSOLE}");
    let console = Path::new(CONSOLE);
    if console.join("index.html").exists() {
        return Ok(());
    }
    let status = Command::new("../../scripts/web.sh").status()?;
    if !status.success() {
        return Err("scripts/web.sh failed: the console is not built".into());
    }
    // Files that are newer than the beginning of this script would make the next build run it again.
    let lockfile = fs::metadata("../../web/package-lock.json")?;
    set_times(console, lockfile.modified()?)
}

/// Sets the time of the last change of all files below `path`.
fn set_times(path: &Path, time: SystemTime) -> Result<(), Box<dyn Error>> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            set_times(&entry?.path(), time)?;
        }
    }
    fs::File::open(path)?.set_modified(time)?;
    Ok(())
}
