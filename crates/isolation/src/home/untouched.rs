//! Is a home's layer as a run finds it, so that it may serve another sandbox?
//!
//! Whatever a command could have left there is looked for: names, kinds, sizes, modes, owners and
//! extended attributes. Times are not: they tell nothing and steer nothing.

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use super::{ALLOWED, COPIES, CREDENTIALS, IDENTITY, PRIVATE_CACHES, ROOT, UPPER, WORK};
use crate::policy::Home;

/// Has no command left anything in `home`'s layer? What cannot be looked at counts as touched.
pub fn is_untouched(home: &Home) -> bool {
    look(home).unwrap_or(false)
}

fn look(home: &Home) -> io::Result<bool> {
    let layer = &home.layer;
    if !layer.try_exists()? {
        return Ok(true);
    }
    for entry in std::fs::read_dir(layer)? {
        let name = entry?.file_name();
        // The scratch of overlays and the copies are out of a command's reach.
        if ![ROOT, UPPER, WORK, COPIES]
            .iter()
            .any(|known| name == *known)
        {
            return Ok(false);
        }
    }
    let (root, upper) = (layer.join(ROOT), layer.join(UPPER));
    let homes = super::present(home);
    let Some(real) = homes.first() else {
        return Ok(false);
    };
    Ok(is_private(&root)?
        && is_private(&upper)?
        && holds(&root, Path::new(""), &mount_point)?
        && holds(&upper, Path::new(""), &|name, found| {
            Ok(cover(real, name, found))
        })?)
}

/// Is the directory as it is made?
fn is_private(directory: &Path) -> io::Result<bool> {
    let found = std::fs::symlink_metadata(directory)?;
    Ok(found.mode() & 0o7777 == 0o700 && is_plain(directory, &found)?)
}

/// Is it ours, with no attributes but the overlay's own?
fn is_plain(path: &Path, found: &std::fs::Metadata) -> io::Result<bool> {
    let mut names = [0; 1024];
    let length = match rustix::fs::llistxattr(path, &mut names[..]) {
        Err(rustix::io::Errno::NOTSUP) => 0,
        // More names than an overlay leaves.
        Err(rustix::io::Errno::RANGE) => return Ok(false),
        listed => listed?,
    };
    let mut names = names[..length]
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    let marks = [b"trusted.overlay.".as_slice(), b"user.overlay."];
    Ok(found.uid() == rustix::process::geteuid().as_raw()
        && names.all(|name| marks.iter().any(|mark| name.starts_with(mark))))
}

/// Is everything below `directory` as `expected` wants it?
fn holds(
    directory: &Path,
    below: &Path,
    expected: &dyn Fn(&Path, &std::fs::Metadata) -> io::Result<bool>,
) -> io::Result<bool> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let (path, name) = (entry.path(), below.join(entry.file_name()));
        let found = entry.metadata()?;
        if !(expected(&name, &found)? && is_plain(&path, &found)?) {
            return Ok(false);
        }
        if found.is_dir() && !holds(&path, &name, expected)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// In the private home lie only empty places for what is let through.
fn mount_point(name: &Path, found: &std::fs::Metadata) -> io::Result<bool> {
    let leads_to = |allowed: &&str| Path::new(allowed).starts_with(name);
    let mode = found.mode() & 0o7777;
    Ok(match found.is_dir() {
        true => mode == 0o755 && ALLOWED.iter().chain(IDENTITY).any(leads_to),
        false => {
            let is_place = IDENTITY.iter().any(|place| Path::new(place) == name);
            found.is_file() && found.len() == 0 && mode == 0o644 && is_place
        }
    })
}

/// Above the real home lie only whiteouts, in directories like the real ones.
fn cover(home: &Path, name: &Path, found: &std::fs::Metadata) -> bool {
    let hidden = || CREDENTIALS.iter().chain(PRIVATE_CACHES).map(Path::new);
    if found.is_dir() {
        let real = std::fs::symlink_metadata(home.join(name));
        let alike = real.is_ok_and(|real| real.is_dir() && real.mode() == found.mode());
        return alike && hidden().any(|hidden| hidden.starts_with(name));
    }
    found.file_type().is_char_device() && found.rdev() == 0 && hidden().any(|hidden| hidden == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    struct Place {
        _directory: tempfile::TempDir,
        home: Home,
    }

    /// A home with a layer that a run was in.
    fn used() -> Place {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("home");
        std::fs::create_dir_all(path.join(".cargo")).unwrap();
        std::fs::create_dir_all(path.join(".local/bin")).unwrap();
        std::fs::write(path.join(".gitconfig"), "[user]").unwrap();
        let layer = directory.path().join("layer");
        let home = Home {
            paths: vec![path],
            layer,
            credentials: Vec::new(),
        };
        super::super::look(&home).unwrap();
        let root = home.layer.join("root");
        for place in [".cargo", ".local", ".local/bin"] {
            std::fs::create_dir(root.join(place)).unwrap();
            mode(&root.join(place), 0o755);
        }
        std::fs::write(root.join(".gitconfig"), "").unwrap();
        mode(&root.join(".gitconfig"), 0o644);
        Place {
            _directory: directory,
            home,
        }
    }

    fn mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_layer_that_was_only_mounted_is_untouched() {
        assert!(is_untouched(&used().home));
        let fresh = used().home;
        let layer = PathBuf::from("/nonexistent/layer");
        assert!(is_untouched(&Home { layer, ..fresh }));
    }

    #[test]
    fn every_trace_is_seen() {
        type Touch = fn(&Path);
        let touches: [(&str, Touch); 10] = [
            ("a file", |layer| {
                std::fs::write(layer.join("root/x"), "").unwrap()
            }),
            ("an empty directory", |layer| {
                std::fs::create_dir(layer.join("root/.ssh")).unwrap()
            }),
            ("text in a place", |layer| {
                std::fs::write(layer.join("root/.gitconfig"), "[alias]").unwrap();
            }),
            ("a mode", |layer| mode(&layer.join("root/.cargo"), 0o777)),
            ("the home's mode", |layer| mode(&layer.join("root"), 0o755)),
            ("a cached file", |layer| {
                std::fs::write(layer.join("upper/.cargo/env"), "").unwrap()
            }),
            ("a link", |layer| {
                std::os::unix::fs::symlink("/", layer.join("upper/.cargo/bin")).unwrap();
            }),
            ("a credential", |layer| {
                std::fs::remove_file(layer.join("upper/.cargo/credentials")).unwrap();
                std::fs::write(layer.join("upper/.cargo/credentials"), "").unwrap();
            }),
            ("a mode above the real home", |layer| {
                mode(&layer.join("upper/.cargo"), 0o777)
            }),
            ("an attribute", |layer| {
                let (path, flags) = (layer.join("root/.cargo"), rustix::fs::XattrFlags::empty());
                rustix::fs::lsetxattr(path, "user.note", b"x", flags).unwrap();
            }),
        ];
        for (what, touch) in touches {
            let place = used();
            touch(&place.home.layer);
            assert!(!is_untouched(&place.home), "{what}");
        }
    }
}
