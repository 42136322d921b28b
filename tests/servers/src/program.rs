//! Finding what is installed.

use std::path::PathBuf;

/// The full path of a program on `PATH`. A missing one fails the test: it is not skipped.
#[track_caller]
pub fn need(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Where set-up puts what it builds; PATH has it only below make.
    let tools = std::env::var_os("CACHE")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache/sandbox-build")))
        .map(|cache| cache.join("tools/bin"));
    let found = std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .chain(tools)
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file());
    found.unwrap_or_else(|| missing(program))
}

/// A program of PostgreSQL's, of the newest version installed: Debian keeps them off `PATH`.
#[track_caller]
pub fn need_of_postgres(program: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    versions
        .flatten()
        .filter_map(|entry| {
            let version: u32 = entry.file_name().to_str()?.parse().ok()?;
            let path = entry.path().join("bin").join(program);
            path.is_file().then_some((version, path))
        })
        .max()
        .map_or_else(|| need(program), |(_, path)| path)
}

#[track_caller]
fn missing(program: &str) -> ! {
    panic!("this test needs `{program}`, which is not installed\nhint: run `scripts/set-up test`")
}
