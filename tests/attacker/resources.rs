//! Using things up: memory, processes, processors.

use std::time::{Duration, Instant};

use crate::files::println_now;
use crate::{Attempt, Refusal};

pub fn attempt(name: &str, arguments: &[&str]) -> Option<Attempt> {
    Some(match (name, arguments) {
        ("eat-memory", [mebibytes]) => eat_memory(number(mebibytes)),
        ("fork", [wanted]) => fork(number(wanted)),
        ("fork-bomb", []) => fork_bomb(),
        ("burn", [milliseconds]) => burn(number(milliseconds)),
        _ => return None,
    })
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

/// Touches that much memory, page by page, and keeps it.
fn eat_memory(mebibytes: u64) -> Attempt {
    let length = usize::try_from(mebibytes << 20).expect("fits");
    let mut eaten: Vec<u8> = Vec::new();
    if eaten.try_reserve_exact(length).is_err() {
        return Err(Refusal {
            errno: libc::ENOMEM,
            at: String::from("reserve"),
        });
    }
    eaten.resize(length, 1);
    Ok(format!(
        "ate {mebibytes} MiB, last byte {}",
        eaten[length - 1]
    ))
}

/// Children that stay until their parent is gone.
fn fork(wanted: u64) -> Attempt {
    for made in 0..wanted {
        // SAFETY: a single-threaded process forks; the child only waits to be killed.
        match unsafe { libc::fork() } {
            0 => idle(),
            -1 => {
                let mut refusal = crate::refused("fork");
                refusal.at = format!("fork after {made}");
                return Err(refusal);
            }
            _ => {}
        }
    }
    Ok(format!("forked {wanted}"))
}

fn idle() -> ! {
    // SAFETY: asks to be killed with the parent; integers only.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) };
    loop {
        // SAFETY: waits for a signal.
        unsafe { libc::pause() };
    }
}

/// Every process forks, again and again, whatever the kernel says: the real thing, but for a fuse
/// of ten seconds after which all of them end, should nothing else have ended them.
fn fork_bomb() -> Attempt {
    println_now("lit");
    let fuse = Instant::now() + Duration::from_secs(10);
    while Instant::now() < fuse {
        // SAFETY: a single-threaded process forks; both sides do the same again.
        if unsafe { libc::fork() } < 0 {
            std::thread::yield_now();
        }
    }
    Err(Refusal {
        errno: libc::ETIME,
        at: String::from("burnt out"),
    })
}

/// Spins for that long by the clock; tells how much processor time it got.
fn burn(milliseconds: u64) -> Attempt {
    let end = Instant::now() + Duration::from_millis(milliseconds);
    let mut turns = 0_u64;
    while Instant::now() < end {
        turns = std::hint::black_box(turns + 1);
    }
    let mut used = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the clock is written to a structure we own.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut used) };
    Ok(format!("{}", used.tv_sec * 1000 + used.tv_nsec / 1_000_000))
}
