//! Forgetting how the server was started.
//!
//! A process's arguments are read by everybody who sees it, and code sees the first process of its own
//! sandbox, which is a fork of the nursery and has never run another program. The server's arguments may
//! name a database with its password, and its environment holds its keys: nobody here needs either.

use std::fs::{self, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// What is told of the arguments instead.
const NAME: &[u8] = b"sandbox session";

/// Overwrites the arguments and the environment that this process was started with. While its memory can
/// still be opened: that is, before it becomes somebody else.
pub(super) fn forget() -> io::Result<()> {
    let places = places(&fs::read_to_string("/proc/self/stat")?);
    let [arguments, environment] = places.ok_or_else(|| io::Error::other("/proc/self/stat"))?;
    let memory = OpenOptions::new().write(true).open("/proc/self/mem")?;
    for place in [&arguments, &environment] {
        let length = usize::try_from(place.end - place.start).map_err(io::Error::other)?;
        memory.write_all_at(&vec![0; length], place.start)?;
    }
    if arguments.end - arguments.start > NAME.len() as u64 {
        memory.write_all_at(NAME, arguments.start)?;
    }
    Ok(())
}

/// Where a process's arguments and its environment are in its memory.
fn places(stat: &str) -> Option<[Range<u64>; 2]> {
    // The name, which comes second, may have anything in it. The addresses are fields 48 to 51.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(45);
    let mut next = || fields.next()?.parse::<u64>().ok();
    let (arguments, environment) = (next()?..next()?, next()?..next()?);
    Some([arguments, environment])
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandbox_linux::clone::{Namespaces, Parent, clone};

    #[test]
    fn what_it_was_started_with_is_told_to_nobody() {
        let (child, ()) = clone(Namespaces::empty(), Parent::Caller, (), || {
            forget().unwrap();
            let told = |file: &str| fs::read(format!("/proc/self/{file}")).unwrap();
            assert!(told("cmdline").starts_with(NAME));
            assert!(told("cmdline")[NAME.len()..].iter().all(|byte| *byte == 0));
            assert!(told("environ").iter().all(|byte| *byte == 0));
            0
        })
        .unwrap();
        assert_eq!(child.wait().unwrap().exit_status(), Some(0));
    }

    #[test]
    fn a_name_with_anything_in_it_is_passed_over() {
        let numbers: Vec<String> = (4..53).map(|number| number.to_string()).collect();
        let stat = format!("7 (a) b (c) R {}", numbers.join(" "));
        assert_eq!(places(&stat), Some([48..49, 50..51]));
        assert_eq!(places("7 (a) R 4 5"), None);
    }
}
