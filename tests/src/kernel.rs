//! What this machine's kernel can do that an older one cannot.
//!
//! A promise that holds from some kernel on says so in SECURITY.md; before it, its test holds the kernel
//! to what that page says then.

use std::path::Path;

use rustix::fs::XattrFlags;

/// Does Landlock keep signals and abstract sockets inside? From Linux 6.12 on.
pub fn scopes() -> bool {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy();
    let mut numbers = release.split(['.', '-', '+']).map(str::parse::<u32>);
    let mut next = || numbers.next().and_then(Result::ok).unwrap_or(0);
    (next(), next()) >= (6, 12)
}

/// Does the filesystem of `file` keep a user's attributes? tmpfs does from Linux 6.6 on.
pub fn keeps_attributes(file: &Path) -> bool {
    let name = "user.sandbox-trial";
    let kept = rustix::fs::lsetxattr(file, name, b"x", XattrFlags::empty()).is_ok();
    if kept {
        rustix::fs::lremovexattr(file, name).expect("take the attribute away again");
    }
    kept
}
