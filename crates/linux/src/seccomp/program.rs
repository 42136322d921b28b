//! Classic BPF, assembled.

use super::tables::Verdict;

/// One instruction, laid out as the kernel's `sock_filter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    code: u16,
    if_true: u8,
    if_false: u8,
    operand: u32,
}

const LOAD: u16 = 0x20;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_AT_LEAST: u16 = 0x35;
const JUMP_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

const ALLOW: u32 = 0x7fff_0000;
const KILL_PROCESS: u32 = 0x8000_0000;
const ERRNO: u32 = 0x0005_0000;

/// Offsets in `seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

const fn load(offset: u32) -> Instruction {
    Instruction {
        code: LOAD,
        if_true: 0,
        if_false: 0,
        operand: offset,
    }
}

/// The low half of an argument; both our architectures are little-endian.
const fn load_argument(index: u32) -> Instruction {
    load(ARGUMENTS + 8 * index)
}

const fn jump(code: u16, operand: u32, if_true: u8, if_false: u8) -> Instruction {
    Instruction {
        code,
        if_true,
        if_false,
        operand,
    }
}

const fn give(result: u32) -> Instruction {
    Instruction {
        code: RETURN,
        if_true: 0,
        if_false: 0,
        operand: result,
    }
}

const fn fail(errno: i32) -> Instruction {
    give(ERRNO | errno as u32)
}

/// A run of call numbers with one verdict, from its first number to the next run's.
struct Range {
    first: u32,
    verdict: Verdict,
}

/// The program for `architecture`. `verdicts` is sorted; its last one holds for all numbers above.
pub(super) fn assemble(architecture: u32, verdicts: &[(u32, Verdict)]) -> Vec<Instruction> {
    let mut program = start(architecture);
    program.extend(tree(&ranges(verdicts)));
    program
}

fn start(architecture: u32) -> Vec<Instruction> {
    vec![
        load(ARCHITECTURE),
        jump(JUMP_EQUAL, architecture, 1, 0),
        give(KILL_PROCESS),
        load(NUMBER),
    ]
}

/// The program for `architecture` by which every call fails that has no verdict of its own. `verdicts` is
/// sorted; its last one holds for all numbers above.
pub(super) fn assemble_only(architecture: u32, verdicts: &[(u32, Verdict)]) -> Vec<Instruction> {
    let mut all = Vec::new();
    let mut next = 0;
    let refused = Verdict::Fail(libc::EPERM);
    for (number, verdict) in verdicts {
        if *number > next {
            all.push((next, refused));
        }
        all.push((*number, *verdict));
        next = number + 1;
    }
    let mut ranges: Vec<Range> = Vec::new();
    for (first, verdict) in all {
        if ranges.last().is_none_or(|last| last.verdict != verdict) {
            ranges.push(Range { first, verdict });
        }
    }
    let mut program = start(architecture);
    program.extend(tree(&ranges));
    program
}

fn ranges(verdicts: &[(u32, Verdict)]) -> Vec<Range> {
    let mut ranges: Vec<Range> = vec![Range {
        first: 0,
        verdict: Verdict::Allow,
    }];
    let mut push = |first: u32, verdict: Verdict| match ranges.last_mut() {
        Some(last) if last.first == first => last.verdict = verdict,
        Some(last) if last.verdict == verdict => {}
        _ => ranges.push(Range { first, verdict }),
    };
    for (index, (number, verdict)) in verdicts.iter().enumerate() {
        push(*number, *verdict);
        if index + 1 < verdicts.len() {
            push(number + 1, Verdict::Allow);
        }
    }
    ranges
}

/// Balanced: each comparison halves what is left.
fn tree(ranges: &[Range]) -> Vec<Instruction> {
    if let [range] = ranges {
        return leaf(range.verdict);
    }
    let (low, high) = ranges.split_at(ranges.len() / 2);
    let (boundary, low, high) = (high[0].first, tree(low), tree(high));
    // A conditional jump reaches 255 instructions; a tree above that would need another way.
    let over = u8::try_from(low.len()).unwrap_or(u8::MAX);
    assert!(
        usize::from(over) == low.len(),
        "the filter's tree is too large for its jumps"
    );
    let mut program = vec![jump(JUMP_AT_LEAST, boundary, over, 0)];
    program.extend(low);
    program.extend(high);
    program
}

fn leaf(verdict: Verdict) -> Vec<Instruction> {
    match verdict {
        Verdict::Allow => vec![give(ALLOW)],
        Verdict::Fail(errno) => vec![fail(errno)],
        Verdict::FailOnBits(argument, bits) => vec![
            load_argument(u32::from(argument)),
            jump(JUMP_ANY_BIT, bits, 0, 1),
            fail(libc::EPERM),
            give(ALLOW),
        ],
        Verdict::FailUnless(argument, value) => vec![
            load_argument(u32::from(argument)),
            jump(JUMP_EQUAL, value, 1, 0),
            fail(libc::EPERM),
            give(ALLOW),
        ],
        Verdict::Ioctl => vec![
            load_argument(1),
            jump(JUMP_EQUAL, libc::TIOCSTI as u32, 2, 0),
            jump(JUMP_EQUAL, libc::TIOCLINUX as u32, 1, 0),
            give(ALLOW),
            fail(libc::EPERM),
        ],
        Verdict::Socket => vec![
            load_argument(0),
            jump(JUMP_EQUAL, libc::AF_UNIX as u32, 5, 0),
            jump(JUMP_EQUAL, libc::AF_INET as u32, 4, 0),
            jump(JUMP_EQUAL, libc::AF_INET6 as u32, 3, 0),
            jump(JUMP_EQUAL, libc::AF_NETLINK as u32, 0, 3),
            load_argument(2),
            jump(JUMP_EQUAL, libc::NETLINK_ROUTE as u32, 0, 1),
            give(ALLOW),
            fail(libc::EAFNOSUPPORT),
        ],
        Verdict::InternetSocket => vec![
            load_argument(0),
            jump(JUMP_EQUAL, libc::AF_INET as u32, 4, 0),
            jump(JUMP_EQUAL, libc::AF_INET6 as u32, 3, 0),
            jump(JUMP_EQUAL, libc::AF_NETLINK as u32, 0, 3),
            load_argument(2),
            jump(JUMP_EQUAL, libc::NETLINK_ROUTE as u32, 0, 1),
            give(ALLOW),
            fail(libc::EAFNOSUPPORT),
        ],
        Verdict::SocketPair => vec![
            load_argument(0),
            jump(JUMP_EQUAL, libc::AF_UNIX as u32, 0, 1),
            give(ALLOW),
            fail(libc::EAFNOSUPPORT),
        ],
    }
}

/// A call as the filter sees it.
#[cfg(test)]
pub(super) struct Call {
    pub number: u32,
    pub architecture: u32,
    pub arguments: [u64; 6],
}

/// What a program said, and how many instructions it took.
#[cfg(test)]
pub(super) struct Outcome {
    pub result: u32,
    pub steps: usize,
}

/// Interprets a program as the kernel would.
#[cfg(test)]
pub(super) fn run(program: &[Instruction], call: &Call) -> Outcome {
    let word = |offset: u32| match offset {
        NUMBER => call.number,
        ARCHITECTURE => call.architecture,
        _ => {
            let argument = call.arguments[((offset - ARGUMENTS) / 8) as usize];
            if offset.is_multiple_of(8) {
                argument as u32
            } else {
                (argument >> 32) as u32
            }
        }
    };
    let (mut accumulator, mut at, mut steps) = (0u32, 0usize, 0usize);
    loop {
        let Instruction {
            code,
            if_true,
            if_false,
            operand,
        } = program[at];
        steps += 1;
        at += 1;
        let holds = match code {
            LOAD => {
                accumulator = word(operand);
                continue;
            }
            RETURN => {
                return Outcome {
                    result: operand,
                    steps,
                };
            }
            JUMP_EQUAL => accumulator == operand,
            JUMP_AT_LEAST => accumulator >= operand,
            JUMP_ANY_BIT => accumulator & operand != 0,
            other => panic!("unknown instruction {other:#x}"),
        };
        at += usize::from(if holds { if_true } else { if_false });
    }
}
