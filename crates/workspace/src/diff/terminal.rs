//! Bytes of others on a terminal.
//!
//! What a sandboxed program wrote must not move the cursor, set the title, answer for the user or
//! reorder what is read (CVE-2021-42574). Tabs and printable text pass, all else is spelled out.

use std::io::{self, Write};

use sandbox_model::path::is_unprintable;

use super::Colour;

/// The parts of a diff that have a look of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    Header,
    Span,
    Added,
    Removed,
    Plain,
}

impl Look {
    const fn code(self) -> &'static str {
        match self {
            Look::Header => "\x1b[1m",
            Look::Span => "\x1b[36m",
            Look::Added => "\x1b[32m",
            Look::Removed => "\x1b[31m",
            Look::Plain => "",
        }
    }
}

/// Writes one line of the diff; `line` without its newline. Plain text goes out byte for byte.
pub(super) fn write_line(
    line: &[u8],
    look: Look,
    colour: Colour,
    out: &mut dyn Write,
) -> io::Result<()> {
    match (colour, look) {
        (Colour::Plain, _) => out.write_all(line)?,
        (Colour::Monochrome, _) | (Colour::Terminal, Look::Plain) => {
            out.write_all(printable(line).as_bytes())?
        }
        (Colour::Terminal, look) => {
            write!(out, "{}{}\x1b[m", look.code(), printable(line))?;
        }
    }
    out.write_all(b"\n")
}

/// `bytes` as text that a terminal shows and does not obey.
pub(super) fn printable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c != '\t' && is_unprintable(c) {
                let mut buffer = [0; 4];
                spell(&mut text, c.encode_utf8(&mut buffer).as_bytes());
            } else {
                text.push(c);
            }
        }
        spell(&mut text, chunk.invalid());
    }
    text
}

fn spell(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        text.push_str(&format!("\\x{byte:02x}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_a_terminal_obeys_passes() {
        let evil = b"a\x1b]0;title\x07b\rc\x9bd\xe2\x80\xaee\tf\\";
        assert_eq!(
            printable(evil),
            "a\\x1b]0;title\\x07b\\x0dc\\x9bd\\xe2\\x80\\xaee\tf\\"
        );
        // CSI as one character, U+009B.
        assert_eq!(printable("\u{9b}31m".as_bytes()), "\\xc2\\x9b31m");
    }
}
