//! Reaching files: by path, by descriptor, by handle, by magic link.

use std::ffi::CString;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;

use crate::{Attempt, checked, refused, refused_by};

pub fn attempt(name: &str, arguments: &[&str]) -> Option<Attempt> {
    Some(match (name, arguments) {
        ("read", [path]) => read(path),
        ("write", [path]) => write(path),
        ("create", [path]) => create(path),
        ("list", [path]) => list(path),
        ("descriptors", []) => descriptors(),
        ("write-through-descriptor", [descriptor]) => write(&format!("/proc/self/fd/{descriptor}")),
        ("climb", [start, path]) => climb(start, path),
        ("open-by-handle", [path]) => open_by_handle(path),
        ("make-node", [path, major, minor]) => make_node(path, major, minor),
        ("set-attribute", [path, attribute, hex]) => set_attribute(path, attribute, hex),
        ("dig", [path, depth]) => dig(path, depth),
        ("flip", [a, b]) => flip(a, b),
        _ => return None,
    })
}

fn c(text: &str) -> CString {
    CString::new(text).expect("arguments hold no zero byte")
}

fn read(path: &str) -> Attempt {
    let mut file = fs::File::open(path).map_err(refused_by("open"))?;
    let mut buffer = [0; 4096];
    let length = file.read(&mut buffer).map_err(refused_by("read"))?;
    Ok(String::from_utf8_lossy(&buffer[..length])
        .escape_debug()
        .to_string())
}

fn write(path: &str) -> Attempt {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .open(path)
        .map_err(refused_by("open"))?;
    file.write_all(b"0wned").map_err(refused_by("write"))?;
    Ok(format!("wrote {path}"))
}

fn create(path: &str) -> Attempt {
    fs::write(path, "0wned").map_err(refused_by("create"))?;
    Ok(format!("created {path}"))
}

fn list(path: &str) -> Attempt {
    let mut names: Vec<String> = fs::read_dir(path)
        .map_err(refused_by("open"))?
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .collect();
    names.sort();
    Ok(names.join(" "))
}

/// Every descriptor beyond the standard three, with what it leads to.
fn descriptors() -> Attempt {
    let mut found = Vec::new();
    for descriptor in 3..1024 {
        let link = format!("/proc/self/fd/{descriptor}");
        if let Ok(target) = fs::read_link(&link) {
            found.push(format!("{descriptor}={}", target.display()));
        }
    }
    Ok(found.join(" "))
}

/// From the directory `start` (a path, or a descriptor's number) up to its root, then down `path`.
fn climb(start: &str, path: &str) -> Attempt {
    let up = "../".repeat(40);
    let relative = c(&format!("{up}{}", path.trim_start_matches('/')));
    let opened;
    let directory = match start.parse::<i32>() {
        Ok(descriptor) => descriptor,
        Err(_) => {
            opened = fs::File::open(start).map_err(refused_by("open the start"))?;
            opened.as_raw_fd()
        }
    };
    // SAFETY: `relative` is a zero-terminated string that outlives the call.
    let file = unsafe { libc::openat(directory, relative.as_ptr(), libc::O_RDONLY) };
    let file = checked("climb", i64::from(file))?;
    read(&format!("/proc/self/fd/{file}"))
}

/// The "shocker" attack: a handle names a file without any path being walked.
fn open_by_handle(path: &str) -> Attempt {
    #[repr(C)]
    struct Handle {
        bytes: u32,
        kind: i32,
        data: [u8; 128],
    }
    let mut handle = Handle {
        bytes: 128,
        kind: 0,
        data: [0; 128],
    };
    let mut mount = 0_i32;
    let named = c(path);
    // SAFETY: the handle announces 128 bytes and has them; the path is zero-terminated.
    let result = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            libc::AT_FDCWD,
            named.as_ptr(),
            &raw mut handle,
            &raw mut mount,
            0,
        )
    };
    checked("name_to_handle_at", result)?;
    let root = fs::File::open("/").map_err(refused_by("open the root"))?;
    // SAFETY: the handle was filled in by the kernel just now.
    let file = unsafe {
        libc::syscall(
            libc::SYS_open_by_handle_at,
            root.as_raw_fd(),
            &raw mut handle,
            libc::O_RDONLY,
        )
    };
    let file = checked("open_by_handle_at", file)?;
    read(&format!("/proc/self/fd/{file}"))
}

fn make_node(path: &str, major: &str, minor: &str) -> Attempt {
    let device = libc::makedev(
        major.parse().expect("major is a number"),
        minor.parse().expect("minor is a number"),
    );
    let named = c(path);
    // SAFETY: the path is a zero-terminated string.
    if unsafe { libc::mknod(named.as_ptr(), libc::S_IFCHR | 0o666, device) } != 0 {
        return Err(refused("mknod"));
    }
    Ok(format!("made {path}"))
}

fn set_attribute(path: &str, attribute: &str, hex: &str) -> Attempt {
    let value: Vec<u8> = (0..hex.len() / 2)
        .map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).expect("hexadecimal"))
        .collect();
    let (path, attribute) = (c(path), c(attribute));
    // SAFETY: both strings are zero-terminated, and the value's length is passed with it.
    let result = unsafe {
        libc::setxattr(
            path.as_ptr(),
            attribute.as_ptr(),
            value.as_ptr().cast(),
            value.len(),
            0,
        )
    };
    if result != 0 {
        return Err(refused("setxattr"));
    }
    Ok(String::from("set"))
}

/// Directories in directories, deeper than any path can say.
fn dig(path: &str, depth: &str) -> Attempt {
    fs::create_dir(path).map_err(refused_by("mkdir"))?;
    std::env::set_current_dir(path).map_err(refused_by("chdir"))?;
    let depth: u32 = depth.parse().expect("depth is a number");
    let name = "deep".repeat(16);
    for _ in 0..depth {
        fs::create_dir(&name).map_err(refused_by("mkdir"))?;
        std::env::set_current_dir(&name).map_err(refused_by("chdir"))?;
    }
    fs::write("bottom", "bottom\n").map_err(refused_by("write"))?;
    Ok(format!("{depth} deep"))
}

/// Exchanges two names as fast as it can until it is killed: the other side of a race.
fn flip(a: &str, b: &str) -> Attempt {
    let (a, b) = (c(a), c(b));
    let mut first = true;
    loop {
        // SAFETY: both paths are zero-terminated strings.
        let result = unsafe {
            libc::renameat2(
                libc::AT_FDCWD,
                a.as_ptr(),
                libc::AT_FDCWD,
                b.as_ptr(),
                libc::RENAME_EXCHANGE,
            )
        };
        // A victim may move either name away for a moment; only the first exchange must work.
        if result != 0 && first {
            return Err(refused("exchange"));
        }
        if first {
            println_now("flipping");
            first = false;
        }
    }
}

/// Tells the test, at once, that something stands ready.
pub fn println_now(line: &str) {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}
