//! Becoming another program.

use std::convert::Infallible;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;

/// A command made ready for exec: everything is allocated before the fork.
#[derive(Debug)]
pub struct Command {
    /// The paths to try, in order.
    candidates: Vec<CString>,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

/// Where commands without a slash are looked for when the environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

impl Command {
    /// Prepares `command`, whose first word is looked up in the `PATH` of `environment`.
    pub fn new(command: &[OsString], environment: &[(OsString, OsString)]) -> io::Result<Command> {
        let name = command
            .first()
            .ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))?;
        let arguments = command
            .iter()
            .map(|word| text(word.as_bytes()))
            .collect::<io::Result<_>>()?;
        let variables = environment
            .iter()
            .map(|(name, value)| text(&[name.as_bytes(), b"=", value.as_bytes()].concat()));
        let environment_text = variables.collect::<io::Result<_>>()?;
        let candidates = candidates(name, environment)?;
        Ok(Command {
            candidates,
            arguments,
            environment: environment_text,
        })
    }

    /// Replaces this process. Returns only when no candidate could be executed; the error is that
    /// of the most telling one, as a shell reports it.
    pub fn exec(&self) -> io::Result<Infallible> {
        let mut telling = io::Error::from_raw_os_error(libc::ENOENT);
        for path in &self.candidates {
            let error = execute(path, &self.arguments, &self.environment);
            match error.raw_os_error() {
                Some(libc::ENOENT | libc::ENOTDIR) => {}
                // A script without `#!`: shells run it themselves, and so does everyone since.
                Some(libc::ENOEXEC) => return Err(self.as_script(path)),
                Some(libc::EACCES) => telling = error,
                _ => return Err(error),
            }
        }
        Err(telling)
    }

    fn as_script(&self, path: &CString) -> io::Error {
        let mut arguments = vec![c"sh".to_owned(), path.clone()];
        arguments.extend(self.arguments.iter().skip(1).cloned());
        execute(&c"/bin/sh".to_owned(), &arguments, &self.environment)
    }
}

fn candidates(name: &OsStr, environment: &[(OsString, OsString)]) -> io::Result<Vec<CString>> {
    if name.is_empty() {
        return Ok(Vec::new());
    }
    if name.as_bytes().contains(&b'/') {
        return Ok(vec![text(name.as_bytes())?]);
    }
    let path = environment
        .iter()
        .rev()
        .find(|(variable, _)| variable == "PATH");
    let path = path.map_or(OsStr::new(DEFAULT_PATH), |(_, value)| value.as_os_str());
    let directories = path.as_bytes().split(|byte| *byte == b':');
    directories
        .map(|directory| match directory {
            b"" => text(name.as_bytes()),
            directory => text(&[directory, b"/", name.as_bytes()].concat()),
        })
        .collect()
}

fn text(bytes: &(impl AsRef<[u8]> + ?Sized)) -> io::Result<CString> {
    CString::new(bytes.as_ref()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

fn execute(path: &CString, arguments: &[CString], environment: &[CString]) -> io::Error {
    let pointers = |texts: &[CString]| {
        let ends = std::iter::once(std::ptr::null());
        texts
            .iter()
            .map(|text| text.as_ptr())
            .chain(ends)
            .collect::<Vec<_>>()
    };
    let (arguments, environment) = (pointers(arguments), pointers(environment));
    // SAFETY: all three point to NUL-terminated strings and NULL-terminated lists of them, which
    // live until the call returns, if it does.
    unsafe { libc::execve(path.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error()
}

/// Marks every descriptor from `first` on to be closed by exec (CVE-2024-21626: one that stays
/// open is a way out).
pub fn close_on_exec_from(first: u32) -> io::Result<()> {
    range(first, libc::CLOSE_RANGE_CLOEXEC as libc::c_uint)
}

/// Lets the program that is executed have `descriptor`, under its number.
pub fn keep_at_exec(descriptor: BorrowedFd<'_>) -> io::Result<()> {
    Ok(rustix::io::fcntl_setfd(
        descriptor,
        rustix::io::FdFlags::empty(),
    )?)
}

fn range(first: u32, flags: libc::c_uint) -> io::Result<()> {
    // SAFETY: with CLOSE_RANGE_CLOEXEC no descriptor is closed, so none is pulled from under its owner.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, flags) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(name: &str, path: Option<&str>) -> Vec<String> {
        let environment: Vec<(OsString, OsString)> = path
            .map(|path| ("PATH".into(), path.into()))
            .into_iter()
            .collect();
        let found = candidates(OsStr::new(name), &environment).unwrap();
        found
            .into_iter()
            .map(|path| path.into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_plain_word_is_looked_up_in_path_and_a_path_is_taken_as_it_is() {
        assert_eq!(paths("ls", Some("/a:/b")), ["/a/ls", "/b/ls"]);
        assert_eq!(paths("./ls", Some("/a:/b")), ["./ls"]);
        assert_eq!(paths("ls", Some(":/b")), ["ls", "/b/ls"]);
        assert_eq!(
            paths("ls", None),
            ["/usr/local/bin/ls", "/usr/bin/ls", "/bin/ls"]
        );
        assert!(paths("", Some("/a")).is_empty());
    }

    #[test]
    fn a_missing_command_is_not_found_and_a_directory_is_denied() {
        let exec = |name: &str| {
            Command::new(&[name.into()], &[])
                .unwrap()
                .exec()
                .unwrap_err()
                .raw_os_error()
        };
        assert_eq!(exec("/nowhere/at/all"), Some(libc::ENOENT));
        assert_eq!(exec("surely-no-such-command"), Some(libc::ENOENT));
        assert_eq!(exec("/tmp"), Some(libc::EACCES));
    }
}
