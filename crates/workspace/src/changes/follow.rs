//! Following symlinks in one version of a tree, as the kernel would in a directory, without opening
//! anything through them.

use std::collections::VecDeque;
use std::io;

use sandbox_model::{EntryKind, RelPath};

use crate::side::Side;

/// The most links that are followed on a way, as in the kernel.
const MOST_LINKS: usize = 40;

/// Where a way ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// In the tree; something may stand there or not.
    Inside(RelPath),
    /// Outside of the tree.
    Outside,
    /// Nowhere: no program can follow it either.
    Nowhere,
}

/// Follows `target` from the directory `from` in `side`, which stands at `root`. Calls `passed` for each
/// link on the way, with the names that are left to go behind it.
pub(super) fn follow(
    root: &[u8],
    from: RelPath,
    target: &[u8],
    side: &dyn Side,
    passed: &mut dyn FnMut(&RelPath, &VecDeque<Vec<u8>>),
) -> io::Result<End> {
    let mut at = from;
    let mut left = VecDeque::new();
    let Some(mut jumped) = prepend(root, target, &mut left) else {
        return Ok(End::Outside);
    };
    let mut links = 0;
    loop {
        if jumped {
            at = RelPath::root();
        }
        jumped = false;
        let Some(name) = left.pop_front() else {
            return Ok(End::Inside(at));
        };
        match &name[..] {
            b"" | b"." => continue,
            b".." => match at.parent() {
                Some(parent) => at = parent,
                None => return Ok(End::Outside),
            },
            name if name.contains(&0) => return Ok(End::Outside),
            name => {
                let next = at.join(name);
                let kind = match side.stat(&next) {
                    Ok(found) => found.map(|found| found.entry.kind),
                    // Too long a name leads nowhere.
                    Err(error) if error.kind() == io::ErrorKind::InvalidFilename => {
                        return Ok(End::Nowhere);
                    }
                    Err(_) => return Ok(End::Outside),
                };
                if kind != Some(EntryKind::Symlink) {
                    at = next;
                    continue;
                }
                links += 1;
                passed(&next, &left);
                let target = match side.read_link(&next) {
                    Err(error) if crate::layer::vanished(&error) => return Ok(End::Nowhere),
                    target => target?,
                };
                match prepend(root, &target, &mut left) {
                    Some(to_the_root) if links <= MOST_LINKS => jumped = to_the_root,
                    Some(_) => return Ok(End::Nowhere),
                    None => return Ok(End::Outside),
                }
            }
        }
    }
}

/// Does `target`, as that of a link at `path`, lead out of `side`, which stands at `root`?
pub(super) fn leads_out(
    root: &[u8],
    path: &RelPath,
    target: &[u8],
    side: &dyn Side,
) -> io::Result<bool> {
    let from = path.parent().unwrap_or_default();
    Ok(follow(root, from, target, side, &mut |_, _| {})? == End::Outside)
}

/// Puts the names of `target` before those that are `left` to go. True if it goes on from the root,
/// `None` if it leads out at once.
fn prepend(root: &[u8], target: &[u8], left: &mut VecDeque<Vec<u8>>) -> Option<bool> {
    let (rest, from_root) = match target.first() {
        Some(b'/') => match target.strip_prefix(root) {
            Some(rest) if matches!(rest.first(), None | Some(b'/')) => (rest, true),
            _ => return None,
        },
        _ => (target, false),
    };
    for name in rest.split(|byte| *byte == b'/').rev() {
        left.push_front(name.to_vec());
    }
    Some(from_root)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_symlink_is_outward_when_its_way_leaves_the_tree() {
        let dir = tempfile::tempdir().unwrap();
        let link = |target: &str, at: &str| {
            std::os::unix::fs::symlink(target, dir.path().join(at)).unwrap();
        };
        std::fs::create_dir_all(dir.path().join("a/b/c")).unwrap();
        link("/etc", "etc");
        link("..", "a/up");
        link("../..", "a/above");
        link("a/b/c", "deep");
        link("/home/ada/app/a", "whole");
        link("loop", "loop");
        let tree = crate::tree::Tree::open(dir.path()).unwrap();
        let out = |at: &str, target: &str| {
            leads_out(b"/home/ada/app", &path(at), target.as_bytes(), &tree).unwrap()
        };
        for (at, target) in [
            ("link", "/etc/passwd"),
            ("link", "../other"),
            ("a/link", "../../other"),
            ("link", "/home/ada/app2/x"),
            ("link", "/home/ada/app/../secret"),
            ("link", "etc/passwd"),
            ("a/link", "../etc/passwd"),
            ("link", "a/above/x"),
            ("link", "a/up/../x"),
            ("link", "deep/../../../../x"),
            ("link", "whole/up/../x"),
        ] {
            assert!(out(at, target), "{at} -> {target}");
        }
        for (at, target) in [
            ("a/link", "../other"),
            ("link", "/home/ada/app/x"),
            ("link", "dir/file"),
            ("link", "a/up/a/b"),
            ("link", "deep/../../../x"),
            ("link", "whole/../x"),
            ("link", "loop/x"),
        ] {
            assert!(!out(at, target), "{at} -> {target}");
        }
    }
}
