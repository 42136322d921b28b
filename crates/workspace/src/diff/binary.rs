//! git's own form of a binary change.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use sha1::{Digest, Sha1};

/// Bytes of compressed data on one line.
const LINE: usize = 52;

const DIGITS: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/// The name git gives contents. `git apply` refuses a binary patch to a file of another name.
pub(super) fn object_name(contents: &[u8]) -> String {
    let mut hasher = Sha1::new();
    hasher.update(format!("blob {}\0", contents.len()));
    hasher.update(contents);
    hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The name git gives to nothing at all.
pub(super) const NO_OBJECT: &str = "0000000000000000000000000000000000000000";

/// The patch from `before` to `after`, and back.
pub(super) fn write(before: &[u8], after: &[u8], out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"GIT binary patch\n")?;
    literal(after, out)?;
    literal(before, out)
}

fn literal(contents: &[u8], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "literal {}", contents.len())?;
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(contents)?;
    for line in encoder.finish()?.chunks(LINE) {
        out.write_all(&encoded(line))?;
    }
    out.write_all(b"\n")
}

/// One line: a letter for the length, then five digits of base 85 for each four bytes.
fn encoded(line: &[u8]) -> Vec<u8> {
    let length = line.len() as u8;
    let mut text = vec![if length <= 26 {
        b'A' + length - 1
    } else {
        b'a' + length - 27
    }];
    for chunk in line.chunks(4) {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        let mut value = u32::from_be_bytes(word);
        let mut digits = [0; 5];
        for digit in digits.iter_mut().rev() {
            *digit = DIGITS[(value % 85) as usize];
            value /= 85;
        }
        text.extend_from_slice(&digits);
    }
    text.push(b'\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_named_as_git_names_them() {
        assert_eq!(object_name(b""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(
            object_name(b"hello\n"),
            "ce013625030ba8dba906f756967f9e9ca394464a"
        );
    }
}
