//! Git's configuration of the user, less what opens doors: who commits is needed inside, credentials are not.
//!
//! Left out are credential helpers, extra headers, secrets by name, addresses with a password in them, and
//! files to include that are not there inside.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sandbox_model::secrecy::reveals_a_secret;

use super::IDENTITY;

/// Files in git's own language; the others of [`IDENTITY`] hold patterns.
const CONFIGURATIONS: [&str; 2] = [".config/git/config", ".gitconfig"];

/// One that is larger is nobody's configuration, and is not shown.
const MOST: u64 = 1 << 20;

/// A file that says who commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityFile {
    /// Its name in the home.
    pub name: PathBuf,
    /// What is shown there: the file itself, or a copy without secrets.
    pub source: PathBuf,
}

/// What to show of the file `name` in `home`; copies are kept in `copies`. `None` where it cannot be read.
pub(super) fn identity(
    home: &Path,
    name: PathBuf,
    copies: &Path,
) -> io::Result<Option<IdentityFile>> {
    let source = home.join(&name);
    if !CONFIGURATIONS
        .iter()
        .any(|configuration| name == Path::new(configuration))
    {
        return Ok(Some(IdentityFile { name, source }));
    }
    let mut text = Vec::new();
    let read =
        std::fs::File::open(&source).and_then(|file| file.take(MOST + 1).read_to_end(&mut text));
    if read.is_err() || text.len() as u64 > MOST {
        return Ok(None);
    }
    // Words of git are ASCII; whatever else there is stays as it is.
    let Ok(text) = String::from_utf8(text) else {
        return Ok(None);
    };
    let shown = without_secrets(&text, home);
    if shown == text {
        return Ok(Some(IdentityFile { name, source }));
    }
    let source = keep(copies, &name, &shown)?;
    Ok(Some(IdentityFile { name, source }))
}

/// Writes the copy, unless it is as it was. Whoever has the old one mounted keeps that.
fn keep(copies: &Path, name: &Path, text: &str) -> io::Result<PathBuf> {
    let flat = name.to_string_lossy().replace('/', "-");
    let copy = copies.join(&flat);
    if std::fs::read(&copy).is_ok_and(|before| before == text.as_bytes()) {
        return Ok(copy);
    }
    super::make_directories(copies, rustix::fs::Mode::RWXU)?;
    let unnamed = copies.join(format!("{flat}.{}", std::process::id()));
    let mut file = std::fs::File::create(&unnamed)?;
    file.write_all(text.as_bytes())?;
    std::fs::rename(&unnamed, &copy)?;
    Ok(copy)
}

/// Where in the file we are.
#[derive(Default)]
struct Section {
    name: String,
    sub: String,
}

fn without_secrets(text: &str, home: &Path) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut section = Some(Section::default());
    for line in lines(text) {
        let mut rest = line.trim_start().trim_start_matches('\u{feff}');
        if rest.starts_with('[') {
            let (header, after) = header(rest);
            section = header.filter(|section| !section.is_secret());
            if section.is_none() {
                continue;
            }
            rest = after;
        }
        let Some(section) = &section else { continue };
        if !section.has_secret(rest, home) {
            shown.push_str(line);
        } else if let Some(at) = line.find(rest).filter(|at| !line[..*at].trim().is_empty()) {
            // The section begins on the same line.
            shown.push_str(&line[..at]);
            shown.push('\n');
        }
    }
    shown
}

/// Lines as git has them: one that ends in a backslash goes on in the next.
fn lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let (mut start, mut end) = (0, 0);
    for line in text.split_inclusive('\n') {
        end += line.len();
        let bare = line.trim_end_matches(['\n', '\r']);
        let slashes = bare.len() - bare.trim_end_matches('\\').len();
        if slashes % 2 == 0 {
            lines.push(&text[start..end]);
            start = end;
        }
    }
    if start < end {
        lines.push(&text[start..end]);
    }
    lines
}

/// The section that begins here, and what follows on the line. None where it is not understood: what is in
/// it is left out.
fn header(line: &str) -> (Option<Section>, &str) {
    let inner = &line[1..];
    let Some(end) = inner.find(['"', ']']) else {
        return (None, "");
    };
    if inner[end..].starts_with(']') {
        let (name, sub) = inner[..end].split_once('.').unwrap_or((&inner[..end], ""));
        let (name, sub) = (name.trim().to_lowercase(), sub.to_owned());
        return (Some(Section { name, sub }), &inner[end + 1..]);
    }
    let name = inner[..end].trim().to_lowercase();
    let mut sub = String::new();
    let mut characters = inner[end + 1..].char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => sub.extend(characters.next().map(|(_, escaped)| escaped)),
            '"' => {
                let after = inner[end + 1 + at + 1..].trim_start();
                return match after.strip_prefix(']') {
                    Some(rest) => (Some(Section { name, sub }), rest),
                    None => (None, ""),
                };
            }
            other => sub.push(other),
        }
    }
    (None, "")
}

impl Section {
    fn is_secret(&self) -> bool {
        self.name == "credential" || reveals_a_secret(&self.sub)
    }

    /// Does this line of the section hold what is not for inside?
    fn has_secret(&self, line: &str, home: &Path) -> bool {
        const PARTS: [&str; 6] = [
            "apikey",
            "extraheader",
            "passphrase",
            "passw",
            "secret",
            "token",
        ];
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            // A comment may be a line that was taken out of use.
            return reveals_a_secret(line) || line.to_lowercase().contains("extraheader");
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let key = key.trim().to_lowercase();
        let value = value.replace("\\\n", "").replace('"', "");
        let value = value.trim();
        PARTS.iter().any(|part| key.contains(part))
            || key.ends_with("pass")
            || reveals_a_secret(value)
            || (self.is_include() && key == "path" && is_missing_inside(value, home))
    }

    fn is_include(&self) -> bool {
        ["include", "includeif"].contains(&self.name.as_str())
    }
}

/// Does `path`, as an included file is named, lie in the home without being shown there?
fn is_missing_inside(path: &str, home: &Path) -> bool {
    let in_home = match Path::new(path).strip_prefix(home) {
        Ok(name) => Some(name),
        Err(_) if path.starts_with('~') => Some(Path::new(path.trim_start_matches("~/"))),
        // Relative to the file that includes it, which is in the home.
        Err(_) if !path.starts_with('/') => return true,
        Err(_) => None,
    };
    let is_shown = |name: &Path| IDENTITY.iter().any(|shown| name == Path::new(shown));
    in_home.is_some_and(|name| !is_shown(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        without_secrets(text, Path::new("/home/ada"))
    }

    #[test]
    fn identity_and_habits_stay() {
        let text = "# mine\n[user]\n\tname = Ada\n\temail = ada@example.com\n[alias]\n  lg = log \\\n    \
            --oneline\n[core]\n\teditor = vi\n[url \"git@github.com:\"]\n\tinsteadOf = https://github.com/\n\
            [http]\n\tproxy = http://proxy:3128\n[include]\n\tpath = /etc/gitconfig.shared\n\
            [commit] gpgsign = true\n";
        assert_eq!(shown(text), text);
    }

    #[test]
    fn credentials_go() {
        let secrets = [
            "[credential]\n\thelper = store\n",
            "[credential \"https://github.com\"]\n\thelper = !gh auth\n\tusername = ada\n",
            "[Credential.https://x]\nhelper = x\n",
            "[url \"https://ada:lovelace@example.com/\"]\n\tinsteadOf = https://example.com/\n",
            "[url \"https://ghp_x@github.com/\"]\n\tinsteadOf = https://github.com/\n",
        ];
        for secret in secrets {
            let text = format!("[user]\nname = Ada\n{secret}[core]\neditor = vi\n");
            assert_eq!(
                shown(&text),
                "[user]\nname = Ada\n[core]\neditor = vi\n",
                "{secret}"
            );
        }
    }

    #[test]
    fn secret_lines_go_and_their_sections_stay() {
        let secrets = [
            "extraHeader = Authorization: Basic abc\n",
            "extraheader = \\\nAuthorization: Basic abc\n",
            "proxy = http://ada:lovelace@proxy:3128\n",
            "proxy = \"http://ada:love\\\nlace@proxy:3128\"\n",
            "smtpPass = abc\n",
            "oauthToken = abc\n",
            "; extraHeader = Authorization: Basic abc\n",
        ];
        for secret in secrets {
            for section in ["[http]\n", "[http \"https://example.com\"]\n"] {
                let text = format!("{section}{secret}sslVerify = true\n");
                assert_eq!(
                    shown(&text),
                    format!("{section}sslVerify = true\n"),
                    "{secret}"
                );
            }
        }
        assert_eq!(
            shown("[http] extraHeader = a: b\nx = y\n"),
            "[http]\nx = y\n"
        );
    }

    #[test]
    fn included_files_that_are_not_shown_go() {
        for path in ["~/.gitconfig-work", "work", "/home/ada/.secret"] {
            let text = format!("[includeIf \"gitdir:~/work/\"]\n\tpath = {path}\n");
            assert_eq!(shown(&text), "[includeIf \"gitdir:~/work/\"]\n", "{path}");
        }
        let text = "[include]\n\tpath = ~/.config/git/config\n";
        assert_eq!(shown(text), text);
    }

    #[test]
    fn a_section_that_is_not_understood_is_left_out() {
        for header in ["[http", "[http \"x]", "[http \"x\" y]"] {
            let text = format!("{header}\nextra = 1\n[user]\nname = Ada\n");
            assert_eq!(shown(&text), "[user]\nname = Ada\n", "{header}");
        }
    }
}
