//! Secrets that the server makes for itself: made once, kept for its owner's eyes only.

use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use sandbox_control::random;

use crate::body::hexadecimal;
use crate::settings::Secret;

/// The secret in `file` of the directory `data`, made by `make` where there is none.
pub(crate) fn kept(data: &Path, file: &str, make: impl FnOnce() -> String) -> io::Result<Secret> {
    let path = data.join(file);
    match std::fs::read_to_string(&path) {
        Ok(text) if !text.trim().is_empty() => {
            close_to_others(&path)?;
            return Ok(Secret(text.trim().to_owned()));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let secret = make();
    let hidden = data.join(format!(".{file}.{}", hexadecimal(&random::bytes::<8>())));
    let mut options = std::fs::OpenOptions::new();
    let mut made = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&hidden)?;
    made.write_all(format!("{secret}\n").as_bytes())?;
    made.sync_all()?;
    std::fs::rename(&hidden, &path)?;
    Ok(Secret(secret))
}

fn close_to_others(path: &Path) -> io::Result<()> {
    let mode = std::fs::metadata(path)?.permissions().mode();
    if mode & 0o077 != 0 {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o600))?;
    }
    Ok(())
}

/// 32 random bytes, as text.
pub(crate) fn token() -> String {
    hexadecimal(&random::bytes::<32>())
}
