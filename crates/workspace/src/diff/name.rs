//! Names in a patch, quoted as git does.

use sandbox_model::RelPath;

use super::Colour;

/// `prefix` and `path`, quoted in C's manner when it holds anything but printable ASCII without
/// quotes and backslashes. git, and patch since 2.7, read it back. A space is quoted too: git would
/// not, but patch cuts the name of an empty file there.
pub(super) fn quoted(prefix: &str, path: &RelPath, colour: Colour) -> String {
    match colour {
        Colour::Plain => quote(prefix, path.as_bytes()),
        Colour::Terminal | Colour::Monochrome => format!("{prefix}{}", path.to_escaped()),
    }
}

fn quote(prefix: &str, bytes: &[u8]) -> String {
    let plain = |byte: &u8| matches!(byte, b'!'..=b'~') && !matches!(byte, b'"' | b'\\');
    if bytes.iter().all(plain) {
        return format!("{prefix}{}", String::from_utf8_lossy(bytes));
    }
    let mut text = format!("\"{prefix}");
    for byte in bytes {
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            0x07 => text.push_str("\\a"),
            0x08 => text.push_str("\\b"),
            b'\t' => text.push_str("\\t"),
            b'\n' => text.push_str("\\n"),
            0x0b => text.push_str("\\v"),
            0x0c => text.push_str("\\f"),
            b'\r' => text.push_str("\\r"),
            b' '..=b'~' => text.push(char::from(*byte)),
            other => text.push_str(&format!("\\{other:03o}")),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_are_quoted_as_git_reads_them() {
        let name = |bytes: &[u8]| quoted("a/", &RelPath::new(bytes).unwrap(), Colour::Plain);
        assert_eq!(name(b"plain-name.txt"), "a/plain-name.txt");
        assert_eq!(name(b"spaced name"), "\"a/spaced name\"");
        assert_eq!(name(b"new\nline"), "\"a/new\\nline\"");
        assert_eq!(name("ä\"\\".as_bytes()), "\"a/\\303\\244\\\"\\\\\"");
        assert_eq!(name(b"\x1b[31m\xff"), "\"a/\\033[31m\\377\"");
    }
}
