//! Filesystems to be sandboxed on, each freshly made and gone afterwards.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::{Outcome, finish, need};

/// A kind of filesystem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filesystem {
    /// The everyday one, without reflinks.
    Ext4,
    /// In memory.
    Tmpfs,
    /// With subvolumes and reflinks; an ordinary user may delete its subvolumes.
    Btrfs,
    /// With reflinks.
    Xfs,
}

/// A mounted filesystem. Unmounted, and its image removed, when dropped.
#[derive(Debug)]
pub struct Mounted {
    directory: tempfile::TempDir,
}

impl Filesystem {
    /// All four.
    pub const ALL: [Filesystem; 4] = [
        Filesystem::Ext4,
        Filesystem::Tmpfs,
        Filesystem::Btrfs,
        Filesystem::Xfs,
    ];

    /// Makes one with room for about `mebibytes` and mounts it. The image is sparse; xfs and btrfs
    /// have minimum sizes of their own.
    pub fn mount(self, mebibytes: u64) -> Mounted {
        let directory = tempfile::Builder::new()
            .prefix("sandbox-tests-image.")
            .tempdir_in("/srv")
            .expect("a place for an image");
        let point = directory.path().join("mounted");
        std::fs::create_dir(&point).expect("a mount point");
        let image = directory.path().join("image");
        let (program, arguments, least): (&str, &[&str], u64) = match self {
            Filesystem::Tmpfs => {
                let size = format!("size={mebibytes}m,mode=755");
                run(Command::new("mount")
                    .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
                    .arg(&point));
                return Mounted { directory };
            }
            Filesystem::Ext4 => ("mkfs.ext4", &["-q", "-F"], 8),
            Filesystem::Btrfs => ("mkfs.btrfs", &["-q"], 128),
            Filesystem::Xfs => ("mkfs.xfs", &["-q", "-m", "reflink=1"], 320),
        };
        let file = std::fs::File::create(&image).expect("an image file");
        file.set_len(mebibytes.max(least) << 20)
            .expect("a sparse image");
        run(Command::new(need(program)).args(arguments).arg(&image));
        let options = match self {
            Filesystem::Btrfs => "loop,user_subvol_rm_allowed",
            _ => "loop",
        };
        run(Command::new("mount")
            .args(["-o", options])
            .arg(&image)
            .arg(&point));
        Mounted { directory }
    }
}

impl Mounted {
    /// Where it is mounted.
    pub fn path(&self) -> PathBuf {
        self.directory.path().join("mounted")
    }

    /// Fills it until not one more byte fits; removing what is returned makes room again.
    pub fn fill(&self) -> PathBuf {
        let filler = self.path().join("filler");
        // dd ends with an error when the disk is full, which is what it is for.
        let _ = finish(
            Command::new("dd")
                .args(["if=/dev/zero", "bs=64k", "status=none"])
                .arg(format!("of={}", filler.display())),
        );
        let tail = self.path().join("filler.tail");
        let _ = finish(
            Command::new("dd")
                .args(["if=/dev/zero", "bs=512", "status=none"])
                .arg(format!("of={}", tail.display())),
        );
        filler
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let point = self.path();
        let outcome = unmount(&point);
        if outcome.code() != 0 {
            // Let the directory's own removal not reach into a filesystem still mounted.
            let _ = finish(Command::new("umount").arg("--lazy").arg(&point));
            assert!(
                std::thread::panicking(),
                "something still uses {}: {outcome}",
                point.display()
            );
        }
    }
}

/// Unmounts, giving what was killed a moment ago the time to be gone: the kernel takes the last
/// namespaces down after their processes were waited for.
#[allow(
    clippy::disallowed_methods,
    reason = "the end of a mount's use in another namespace is no event here"
)]
pub fn unmount(point: &Path) -> Outcome {
    const PATIENCE: Duration = Duration::from_secs(5);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let outcome = finish(Command::new("umount").arg(point));
        if outcome.code() == 0 || Instant::now() >= deadline {
            return outcome;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[track_caller]
fn run(command: &mut Command) {
    finish(command).succeeded();
}

/// A new, empty subvolume on a btrfs.
pub fn subvolume(path: &Path) {
    run(Command::new(need("btrfs"))
        .args(["-q", "subvolume", "create"])
        .arg(path));
}
