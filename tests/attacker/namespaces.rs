//! New namespaces and mounts, by every route this ABI has.

use std::ffi::CString;
use std::os::fd::AsRawFd as _;

use crate::{Attempt, checked, refused_by};

pub fn attempt(name: &str, arguments: &[&str]) -> Option<Attempt> {
    Some(match (name, arguments) {
        ("unshare", [kind]) => unshare(flag(kind)),
        ("clone", [kind]) => clone(flag(kind)),
        ("clone3", [kind]) => clone3(flag(kind)),
        ("setns", [path, kind]) => setns(path, flag(kind)),
        ("mount-tmpfs", [target]) => mount(None, target, Some("tmpfs"), 0),
        ("bind", [source, target]) => mount(Some(source), target, None, libc::MS_BIND),
        ("remount-writable", [target]) => {
            mount(None, target, None, libc::MS_BIND | libc::MS_REMOUNT)
        }
        ("mount-type", [kind, target]) => mount(Some(kind), target, Some(kind), 0),
        ("unmount", [target]) => unmount(target),
        ("open-tree", [path]) => open_tree(path),
        ("fsopen", [kind]) => fsopen(kind),
        ("chroot", [path]) => chroot(path),
        ("pivot", [new, old]) => pivot(new, old),
        _ => return None,
    })
}

fn flag(kind: &str) -> libc::c_int {
    match kind {
        "none" => 0,
        "user" => libc::CLONE_NEWUSER,
        "mount" => libc::CLONE_NEWNS,
        "pid" => libc::CLONE_NEWPID,
        "network" => libc::CLONE_NEWNET,
        "cgroup" => libc::CLONE_NEWCGROUP,
        "both" => libc::CLONE_NEWUSER | libc::CLONE_NEWNS,
        other => panic!("no namespace is called {other:?}"),
    }
}

fn c(text: &str) -> CString {
    CString::new(text).expect("arguments hold no zero byte")
}

fn unshare(flags: libc::c_int) -> Attempt {
    // SAFETY: one integer; this process has a single thread.
    checked("unshare", i64::from(unsafe { libc::unshare(flags) }))?;
    Ok(String::from("unshared"))
}

/// What the child of a successful clone does: nothing, at once.
fn reap(child: i64) -> Attempt {
    if child == 0 {
        // SAFETY: the child shares nothing it could leave in disorder; no destructor may run twice.
        unsafe { libc::_exit(0) };
    }
    let pid = i32::try_from(child).expect("a pid");
    // SAFETY: waiting for our own child without taking its status.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
    Ok(String::from("cloned"))
}

fn clone(flags: libc::c_int) -> Attempt {
    // SAFETY: without CLONE_VM and with no new stack this is fork; the child only exits.
    let child = unsafe {
        libc::syscall(
            libc::SYS_clone,
            flags | libc::SIGCHLD,
            0_u64,
            0_u64,
            0_u64,
            0_u64,
        )
    };
    reap(checked("clone", child)?)
}

fn clone3(flags: libc::c_int) -> Attempt {
    #[repr(C)]
    #[derive(Default)]
    struct Arguments {
        flags: u64,
        pidfd: u64,
        child_tid: u64,
        parent_tid: u64,
        exit_signal: u64,
        stack: u64,
        stack_size: u64,
        tls: u64,
    }
    let arguments = Arguments {
        flags: u64::try_from(flags).expect("flags are positive"),
        exit_signal: u64::try_from(libc::SIGCHLD).expect("a signal is positive"),
        ..Arguments::default()
    };
    // SAFETY: the structure is the kernel's first version, its size passed with it; as a fork.
    let child = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            &raw const arguments,
            std::mem::size_of::<Arguments>(),
        )
    };
    reap(checked("clone3", child)?)
}

fn setns(path: &str, kind: libc::c_int) -> Attempt {
    let namespace = std::fs::File::open(path).map_err(refused_by("open the namespace"))?;
    // SAFETY: an open descriptor and an integer.
    let result = unsafe { libc::setns(namespace.as_raw_fd(), kind) };
    checked("setns", i64::from(result))?;
    Ok(String::from("joined"))
}

fn mount(source: Option<&str>, target: &str, kind: Option<&str>, flags: libc::c_ulong) -> Attempt {
    let (source, target, kind) = (source.map(c), c(target), kind.map(c));
    let pointer = |text: &Option<CString>| text.as_ref().map_or(std::ptr::null(), |t| t.as_ptr());
    // SAFETY: every pointer is null or a zero-terminated string that outlives the call.
    let result = unsafe {
        libc::mount(
            pointer(&source),
            target.as_ptr(),
            pointer(&kind),
            flags,
            std::ptr::null(),
        )
    };
    checked("mount", i64::from(result))?;
    Ok(String::from("mounted"))
}

fn unmount(target: &str) -> Attempt {
    let target = c(target);
    // SAFETY: a zero-terminated string.
    let result = unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
    checked("umount2", i64::from(result))?;
    Ok(String::from("unmounted"))
}

fn open_tree(path: &str) -> Attempt {
    const OPEN_TREE_CLONE: libc::c_int = 1;
    let path = c(path);
    // SAFETY: a zero-terminated string and integers.
    let result = unsafe {
        libc::syscall(
            libc::SYS_open_tree,
            libc::AT_FDCWD,
            path.as_ptr(),
            OPEN_TREE_CLONE,
        )
    };
    checked("open_tree", result)?;
    Ok(String::from("cloned the mount"))
}

fn fsopen(kind: &str) -> Attempt {
    let kind = c(kind);
    // SAFETY: a zero-terminated string and an integer.
    checked("fsopen", unsafe {
        libc::syscall(libc::SYS_fsopen, kind.as_ptr(), 0)
    })?;
    Ok(String::from("opened"))
}

fn chroot(path: &str) -> Attempt {
    let path = c(path);
    // SAFETY: a zero-terminated string.
    checked("chroot", i64::from(unsafe { libc::chroot(path.as_ptr()) }))?;
    Ok(String::from("changed the root"))
}

fn pivot(new: &str, old: &str) -> Attempt {
    let (new, old) = (c(new), c(old));
    // SAFETY: two zero-terminated strings.
    let result = unsafe { libc::syscall(libc::SYS_pivot_root, new.as_ptr(), old.as_ptr()) };
    checked("pivot_root", result)?;
    Ok(String::from("pivoted"))
}
