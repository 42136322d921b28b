//! Words for a shell that somebody may paste: it takes them as they are, and a terminal obeys nothing in them.

use std::fmt::Write as _;

use sandbox_model::path::is_unprintable;

/// The text as one word, within double quotes too. What cannot be printed is written `$'\x1b'`, which bash,
/// zsh, ksh and POSIX of 2024 understand; everything else, any shell does.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+:@".contains(c);
    if text.chars().any(is_unprintable) {
        return escaped(text);
    }
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

fn escaped(text: &str) -> String {
    let mut word = String::from("$'");
    for c in text.chars() {
        match c {
            '\\' | '\'' => word.extend(['\\', c]),
            c if is_unprintable(c) => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(word, "\\x{byte:02x}");
                }
            }
            c => word.push(c),
        }
    }
    word.push('\'');
    word
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_word_is_quoted_where_it_must_be() {
        assert_eq!(quoted("/srv/data-1/admin.key"), "/srv/data-1/admin.key");
        assert_eq!(quoted("/srv/my data/it's"), "'/srv/my data/it'\\''s'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("a\u{1b}[2Jb\\'c"), "$'a\\x1b[2Jb\\\\\\'c'");
        assert_eq!(quoted("\u{9b}2J\u{202e}"), "$'\\xc2\\x9b2J\\xe2\\x80\\xae'");
    }

    #[test]
    fn a_shell_takes_it_for_what_it_was() {
        for text in [
            "plain",
            "-rf",
            "two words",
            "$(reboot) `reboot` $HOME ~ * !!",
            "it's \"quoted\" \\ twice",
            "a\u{1b}]0;title\u{7}b",
            "line\nline\ttab\r",
            "\u{9b}31m'\\\u{7f}\u{e9}",
            "\u{1b}1'; reboot; '",
        ] {
            let script = format!("printf %s {}", quoted(text));
            let mut bash = Command::new("bash");
            let output = bash.args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), text, "{script:?}");
            assert!(!script.chars().any(is_unprintable), "{script:?}");
        }
    }
}
