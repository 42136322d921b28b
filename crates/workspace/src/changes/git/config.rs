//! The syntax of git's configuration files.

/// One assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    /// In lower case.
    pub(super) section: Vec<u8>,
    pub(super) subsection: Option<Vec<u8>>,
    /// In lower case.
    pub(super) key: Vec<u8>,
    /// Empty where there is none, which git takes for "true".
    pub(super) value: Vec<u8>,
}

/// Every assignment of `text`, in order. Git refuses a file with a line that it does not understand; here
/// the rest of such a line is skipped.
pub(super) fn parse(text: &[u8]) -> Vec<Setting> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut parser = Parser { text, at: 0 };
    let mut settings = Vec::new();
    let mut header = (Vec::new(), None);
    while let Some(byte) = parser.next() {
        match byte {
            b'#' | b';' => parser.skip_line(),
            b'[' => match parser.header() {
                Some(found) => header = found,
                None => parser.skip_line(),
            },
            byte if byte.is_ascii_whitespace() => {}
            byte if byte.is_ascii_alphabetic() => {
                let Some((key, value)) = parser.assignment(byte) else {
                    parser.skip_line();
                    continue;
                };
                settings.push(Setting {
                    section: header.0.clone(),
                    subsection: header.1.clone(),
                    key,
                    value,
                });
            }
            _ => parser.skip_line(),
        }
    }
    settings
}

struct Parser<'t> {
    text: &'t [u8],
    at: usize,
}

impl Parser<'_> {
    /// The next byte; the end of a line is a line feed, however it is written.
    fn next(&mut self) -> Option<u8> {
        let byte = *self.text.get(self.at)?;
        self.at += 1;
        if byte == b'\r' && self.text.get(self.at) == Some(&b'\n') {
            self.at += 1;
            return Some(b'\n');
        }
        Some(byte)
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_line(&mut self) {
        // The line feed may have been read already.
        if self.at > 0 && self.text[self.at - 1] == b'\n' {
            return;
        }
        while self.next().is_some_and(|byte| byte != b'\n') {}
    }

    /// The names of a section, after its bracket.
    fn header(&mut self) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        let mut section = Vec::new();
        loop {
            match self.next()? {
                // The older form, `[section.subsection]`.
                b']' => {
                    let dot = section.iter().position(|byte| *byte == b'.');
                    let subsection = dot.map(|dot| section.split_off(dot)[1..].to_vec());
                    return Some((section, subsection));
                }
                b'\n' => return None,
                byte if byte.is_ascii_whitespace() => break,
                byte => section.push(byte.to_ascii_lowercase()),
            }
        }
        loop {
            match self.next()? {
                b'"' => break,
                b'\n' => return None,
                byte if byte.is_ascii_whitespace() => {}
                _ => return None,
            }
        }
        let mut subsection = Vec::new();
        loop {
            match self.next()? {
                b'"' => break,
                b'\n' => return None,
                b'\\' => match self.next()? {
                    b'\n' => return None,
                    byte => subsection.push(byte),
                },
                byte => subsection.push(byte),
            }
        }
        (self.next()? == b']').then_some((section, Some(subsection)))
    }

    /// A key, of which `first` was read, and its value.
    fn assignment(&mut self, first: u8) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut key = vec![first.to_ascii_lowercase()];
        while let Some(byte) = self.peek() {
            if !byte.is_ascii_alphanumeric() && byte != b'-' {
                break;
            }
            key.push(byte.to_ascii_lowercase());
            self.at += 1;
        }
        loop {
            match self.next() {
                Some(b' ' | b'\t') => {}
                Some(b'=') => return Some((key, self.value()?)),
                None | Some(b'\n') => return Some((key, Vec::new())),
                Some(_) => return None,
            }
        }
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        let mut quoted = false;
        // White space that belongs to the value if more of it follows.
        let mut space = Vec::new();
        loop {
            let byte = match self.next() {
                None | Some(b'\n') => return Some(value),
                Some(byte) => byte,
            };
            let byte = match byte {
                byte if !quoted && byte.is_ascii_whitespace() => {
                    if !value.is_empty() {
                        space.push(byte);
                    }
                    continue;
                }
                b'#' | b';' if !quoted => {
                    self.skip_line();
                    return Some(value);
                }
                b'"' => {
                    quoted = !quoted;
                    value.append(&mut space);
                    continue;
                }
                b'\\' => match self.next()? {
                    b'\n' => continue,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'b' => 8,
                    byte => byte,
                },
                byte => byte,
            };
            value.append(&mut space);
            value.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `git config --list` shows them.
    fn shown(text: &str) -> Vec<String> {
        let line = |setting: &Setting| {
            let names = [
                Some(&setting.section),
                setting.subsection.as_ref(),
                Some(&setting.key),
            ];
            let names: Vec<_> = names.into_iter().flatten().collect();
            let names: Vec<_> = names.iter().map(|n| String::from_utf8_lossy(n)).collect();
            let value = String::from_utf8_lossy(&setting.value);
            format!("{}={}", names.join("."), value.replace('\n', "\\n"))
        };
        parse(text.as_bytes()).iter().map(line).collect()
    }

    const TEXT: &str = "\u{feff}# comment\r\n; another\n[core] bare = false\n\tHooksPath = tools/hooks # comment\n\
        [Include]\npath = \"../a b;c\" ; x\n[includeIf \"gitdir:/x\\\"]y/\"]\r\n\tpath = one\\\n  two\r\n\
        [a.B.c]\nkey\n other = \"x\"y\" z\"  \n[d]x=\\\"q\\\\ \\t\\n\nempty =\nlast= 1  2";

    #[test]
    fn every_form_of_a_setting_is_read() {
        assert_eq!(
            shown(TEXT),
            [
                "core.bare=false",
                "core.hookspath=tools/hooks",
                "include.path=../a b;c",
                "includeif.gitdir:/x\"]y/.path=one  two",
                "a.b.c.key=",
                "a.b.c.other=xy z",
                "d.x=\"q\\ \t\\n",
                "d.empty=",
                "d.last=1  2",
            ]
        );
    }

    #[test]
    fn settings_are_those_that_git_reads() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config");
        std::fs::write(&file, TEXT).unwrap();
        let mut git = std::process::Command::new("git");
        let listed = git
            .args(["config", "--list", "-z", "--file"])
            .arg(&file)
            .output()
            .unwrap();
        assert!(listed.status.success(), "{listed:?}");
        let listed = String::from_utf8(listed.stdout).unwrap();
        let listed: Vec<String> = listed
            .split_terminator('\0')
            .map(|entry| match entry.split_once('\n') {
                Some((key, value)) => format!("{key}={}", value.replace('\n', "\\n")),
                None => format!("{entry}="),
            })
            .collect();
        assert_eq!(shown(TEXT), listed);
    }

    #[test]
    fn broken_lines_do_not_hide_the_rest() {
        let text =
            "[core\nx = 1\n[a \"b\" c]\n[core]\n= 3\n$y\nx y = 2\nx = \"open\n[core] hooksPath = h";
        assert_eq!(
            shown(text).last().map(String::as_str),
            Some("core.hookspath=h")
        );
    }
}
