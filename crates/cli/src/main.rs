//! The `sandbox` binary. All of it is in the library beside it.

use std::process::ExitCode;

/// musl's own asks the kernel for every few pages and gives them back as soon: a hundred system
/// calls in a command that lasts milliseconds.
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> ExitCode {
    sandbox_cli::main()
}
