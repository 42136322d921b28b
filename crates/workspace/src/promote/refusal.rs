//! What cannot be promoted, and why, in words.
//!
//! Everything that the caller may not do to the source, or the source's filesystem cannot keep, is
//! found before anything is touched: a transaction that fails half-way because of it could not be
//! put back either.

use std::io;

use rustix::io::Errno;
use sandbox_model::{EntryKind, Fingerprint};

use super::examine::{Examiner, mount_of};
use super::plan::{Action, Step};
use crate::view::View;

/// Why `step` cannot be done, if it cannot.
pub(super) fn refusal(
    view: &View<'_>,
    examiner: &mut Examiner<'_>,
    step: &Step,
) -> io::Result<Option<String>> {
    if matches!(step.action, Action::AlreadyThere | Action::KeepSource) {
        return Ok(None);
    }
    if let Some(reason) = mounted(view, examiner, step)? {
        return Ok(Some(reason));
    }
    let (ours, theirs) = (step.frozen.ours.as_ref(), step.frozen.theirs.as_ref());
    if let Some(device) = ours.filter(|ours| is_device(ours)) {
        return Ok(Some(format!("it is a {}", device.entry.kind.as_str())));
    }
    let reason = ownership(ours, theirs).or_else(|| {
        let parent = examiner.directories.get(&step.path.parent()?);
        directory_of_another(step, parent?)
    });
    match reason {
        Some(reason) => Ok(Some(reason)),
        None => list_that_is_not_kept(view, step),
    }
}

fn mounted(
    view: &View<'_>,
    examiner: &mut Examiner<'_>,
    step: &Step,
) -> io::Result<Option<String>> {
    if examiner.way(&step.path)?.mount != examiner.root_mount {
        return Ok(Some(
            "it is on another filesystem, mounted inside the source".into(),
        ));
    }
    let is_directory = step
        .before
        .is_some_and(|entry| entry.kind == EntryKind::Directory);
    if is_directory && mount_of(&view.source.dir(&step.path)?)? != examiner.root_mount {
        return Ok(Some("another filesystem is mounted there".into()));
    }
    Ok(None)
}

fn is_device(found: &Fingerprint) -> bool {
    matches!(
        found.entry.kind,
        EntryKind::CharDevice | EntryKind::BlockDevice
    )
}

/// What an ordinary user cannot give away, or take.
fn ownership(ours: Option<&Fingerprint>, theirs: Option<&Fingerprint>) -> Option<String> {
    if let Some(ours) = ours {
        if !may_give(ours.entry.uid) {
            let owner = ours.entry.uid;
            return Some(format!("it belongs to user {owner} in the sandbox"));
        }
        if !is_our_group(ours.entry.gid) {
            let group = ours.entry.gid;
            return Some(format!("it belongs to group {group}, which is not yours"));
        }
    }
    let theirs = theirs?;
    let taken = ours.is_some() || theirs.entry.kind == EntryKind::Directory;
    if taken && !may_give(theirs.entry.uid) {
        let owner = theirs.entry.uid;
        return Some(format!("it belongs to user {owner} in the source"));
    }
    // A copy that could not keep the group would change it.
    (ours.is_some() && !is_our_group(theirs.entry.gid)).then(|| {
        let group = theirs.entry.gid;
        format!("it belongs to group {group} in the source, which is not yours")
    })
}

/// Names may be changed in a directory of another's that is open to all; but its time could not be
/// put back.
fn directory_of_another(step: &Step, parent: &Fingerprint) -> Option<String> {
    let owner = parent.entry.uid;
    (step.action != Action::Attributes && !may_give(owner))
        .then(|| format!("its directory belongs to user {owner} in the source"))
}

fn may_give(uid: u32) -> bool {
    let me = rustix::process::geteuid();
    me.is_root() || me.as_raw() == uid
}

fn is_our_group(gid: u32) -> bool {
    rustix::process::geteuid().is_root()
        || rustix::process::getegid().as_raw() == gid
        || rustix::process::getgroups()
            .is_ok_and(|groups| groups.iter().any(|group| group.as_raw() == gid))
}

fn list_that_is_not_kept(view: &View<'_>, step: &Step) -> io::Result<Option<String>> {
    let arrives = step
        .after
        .is_some_and(|entry| entry.kind != EntryKind::Symlink);
    if !arrives || keeps_access_lists(view) {
        return Ok(None);
    }
    let xattrs = view.workspace().xattrs(&step.path)?;
    let listed = xattrs
        .keys()
        .any(|name| name.starts_with(b"system.posix_acl_"));
    let reason = "it has an access control list, which the source's filesystem does not keep";
    Ok(listed.then(|| reason.to_owned()))
}

fn keeps_access_lists(view: &View<'_>) -> bool {
    let name = "system.posix_acl_access";
    let asked = rustix::fs::fgetxattr(view.source.fd(), name, &mut [] as &mut [u8]);
    asked != Err(Errno::OPNOTSUPP)
}
