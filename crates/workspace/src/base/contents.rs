//! Saved contents, a file each.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::BaseContent;
use super::store::make_private_dir;
use crate::content;
use crate::tree::{Dir, unlinking};

/// The largest file that is copied where it cannot be reflinked.
const COPY_LIMIT: u64 = 1 << 20;

/// Where contents are saved; names are numbers.
pub(super) struct ContentStore {
    dir: PathBuf,
    next: u64,
    reflink: Reflink,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reflink {
    Untried,
    Impossible,
}

impl ContentStore {
    pub(super) fn new(dir: PathBuf) -> ContentStore {
        ContentStore {
            dir,
            next: 0,
            reflink: Reflink::Untried,
        }
    }

    /// Keeps the contents of `file`: a reflink, else a copy, else a digest.
    pub(super) fn keep(&mut self, file: &File, size: u64) -> io::Result<BaseContent> {
        if self.reflink == Reflink::Impossible && size > COPY_LIMIT {
            return content::digest(file).map(BaseContent::Hash);
        }
        let (name, mut saved) = self.create()?;
        if self.reflink != Reflink::Impossible {
            match rustix::fs::ioctl_ficlone(&saved, file) {
                Ok(()) => return Ok(BaseContent::Saved(name)),
                Err(_) => self.reflink = Reflink::Impossible,
            }
        }
        if size > COPY_LIMIT {
            std::fs::remove_file(self.dir.join(&name))?;
            return content::digest(file).map(BaseContent::Hash);
        }
        let mut bytes = Vec::new();
        file.take(COPY_LIMIT + 1).read_to_end(&mut bytes)?;
        saved.write_all(&bytes)?;
        Ok(BaseContent::Saved(name))
    }

    /// Removes what was saved of these.
    pub(super) fn remove(&self, contents: impl Iterator<Item = BaseContent>) -> io::Result<()> {
        let saved = contents.filter_map(|content| match content {
            BaseContent::Saved(name) => Some(name.into_bytes()),
            _ => None,
        });
        let names: Vec<_> = saved.collect();
        if names.is_empty() {
            return Ok(());
        }
        match Dir::open(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            dir => {
                let dir = dir?;
                unlinking(|unlinker| unlinker.unlink(dir, names))
            }
        }
    }

    fn create(&mut self) -> io::Result<(String, File)> {
        if self.next == 0 {
            make_private_dir(&self.dir)?;
            self.next = 1 + highest(&self.dir)?;
        }
        let name = self.next.to_string();
        self.next += 1;
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(self.dir.join(&name))?;
        Ok((name, file))
    }
}

/// The highest number among a directory's names.
fn highest(dir: &Path) -> io::Result<u64> {
    let mut highest = 0;
    for entry in std::fs::read_dir(dir)? {
        let number = entry?
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        highest = highest.max(number.unwrap_or(0));
    }
    Ok(highest)
}
