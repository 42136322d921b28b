//! Where a download ends up.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::output::Output;
use crate::report::{Problem, Refusal};

/// Something that a download is written to. A file is there under its name when it is whole, and not at
/// all when this is dropped before.
pub(super) struct Landing {
    place: Place,
}

enum Place {
    Stdout(Output),
    /// Something that is there and is no plain file: a device, a pipe.
    Direct {
        file: File,
        path: PathBuf,
    },
    /// A file under another name until it is whole.
    Aside(Aside),
}

struct Aside {
    file: File,
    path: PathBuf,
    aside: Option<PathBuf>,
}

impl Landing {
    /// Written to stdout as it comes.
    pub(super) fn stdout() -> Landing {
        Landing {
            place: Place::Stdout(Output::open()),
        }
    }

    /// Written to a file.
    pub(super) fn file(path: &Path) -> Result<Landing, Problem> {
        let cannot = |error| Refusal::io(format!("cannot write {}", path.display()), error);
        let is_special = fs::metadata(path).is_ok_and(|found| !found.is_file());
        if is_special {
            let file = File::options().write(true).open(path).map_err(cannot)?;
            let path = path.to_owned();
            return Ok(Landing {
                place: Place::Direct { file, path },
            });
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let aside = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
        let file = File::create_new(&aside).map_err(cannot)?;
        Ok(Landing {
            place: Place::Aside(Aside {
                file,
                path: path.to_owned(),
                aside: Some(aside),
            }),
        })
    }

    /// One more piece.
    pub(super) fn write(&mut self, piece: &[u8]) -> Result<(), Problem> {
        let (written, path) = match &mut self.place {
            Place::Stdout(out) => {
                return out
                    .write_all(piece)
                    .map_err(|error| out.blame(error, "cannot write the output"));
            }
            Place::Direct { file, path } => (file.write_all(piece), path),
            Place::Aside(Aside { file, path, .. }) => (file.write_all(piece), path),
        };
        let cannot = |error| Refusal::io(format!("cannot write {}", path.display()), error);
        Ok(written.map_err(cannot)?)
    }

    /// It is whole.
    pub(super) fn finish(self) -> Result<(), Problem> {
        match self.place {
            Place::Stdout(out) => Ok(out.finish()?),
            Place::Direct { .. } => Ok(()),
            Place::Aside(mut aside) => Ok(aside.put_in_place()?),
        }
    }
}

impl Aside {
    fn put_in_place(&mut self) -> Result<(), Refusal> {
        let Some(aside) = &self.aside else {
            return Ok(());
        };
        fs::rename(aside, &self.path)
            .map_err(|error| Refusal::io(format!("cannot write {}", self.path.display()), error))?;
        self.aside = None;
        Ok(())
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if let Some(aside) = &self.aside {
            let _ = fs::remove_file(aside);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
        entries.map(|entry| name(entry.unwrap())).collect()
    }

    #[test]
    fn a_file_is_there_when_it_is_whole_and_not_before() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "old").unwrap();
        let mut landing = Landing::file(&path).unwrap();
        landing.write(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        landing.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(directory.path()), ["file"]);
    }

    #[test]
    fn one_that_breaks_off_leaves_what_was_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let mut landing = Landing::file(&path).unwrap();
        landing.write(b"half").unwrap();
        drop(landing);
        assert!(names(directory.path()).is_empty());
        let nowhere = directory.path().join("none/file");
        assert!(Landing::file(&nowhere).is_err());
    }

    #[test]
    fn a_device_is_written_to_and_stays_one() {
        let mut landing = Landing::file(Path::new("/dev/null")).unwrap();
        landing.write(b"x").unwrap();
        landing.finish().unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
