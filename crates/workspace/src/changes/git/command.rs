//! Which words of a command could be files of the tree.

/// The words of the shell command `text` that could name a file: not a program that is found on the path,
/// and not what is handed to git. Quotes are removed; what a variable stands for is not known, so what
/// follows it is a word of its own.
pub(super) fn words(text: &[u8]) -> Vec<Vec<u8>> {
    let text = text.trim_ascii_start();
    let text = text.strip_prefix(b"!").unwrap_or(text);
    let text = text.strip_prefix(b"ext::").unwrap_or(text);
    let mut found = Vec::new();
    for command in commands(text) {
        // Variables may be set before it.
        let mut command = command.into_iter().skip_while(|word| is_assignment(word));
        let Some(program) = command.next() else {
            continue;
        };
        if program == b"git" {
            continue;
        }
        if program.contains(&b'/') {
            found.push(program.clone());
        }
        found.extend(quoted(&program));
        for word in command {
            found.extend(quoted(&word));
            if let Some(at) = word.iter().position(|byte| *byte == b'=') {
                found.push(word[at + 1..].to_vec());
            }
            if !word.starts_with(b"-") {
                found.push(word);
            }
        }
    }
    found.retain(|word| !word.is_empty());
    found
}

/// The words of `word`, if it may be a command itself, as in `sh -c '...'`.
fn quoted(word: &[u8]) -> Vec<Vec<u8>> {
    match word.iter().any(u8::is_ascii_whitespace) {
        true => words(word),
        false => Vec::new(),
    }
}

fn is_assignment(word: &[u8]) -> bool {
    let name = word.split(|byte| *byte == b'=').next().unwrap_or_default();
    name.len() < word.len()
        && !name.is_empty()
        && name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// The simple commands of `text`, each in words.
fn commands(text: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut all = vec![Vec::new()];
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match (byte, quote) {
            (b'\'', None) | (b'"', None) => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            (byte, Some(open)) if byte == open => quote = None,
            (b'\\', None | Some(b'"')) => {
                word.get_or_insert_default().extend(bytes.next());
            }
            (b' ' | b'\t', None) => end(&mut word, &mut all),
            (b'\n' | b';' | b'|' | b'&' | b'{' | b'}' | b'<' | b'>', None)
            | (b'(' | b')' | b'`', None | Some(b'"')) => {
                end(&mut word, &mut all);
                all.push(Vec::new());
            }
            (b'$', None | Some(b'"')) => {
                if bytes.next_if_eq(&b'{').is_some() {
                    while bytes.next().is_some_and(|byte| byte != b'}') {}
                } else {
                    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
                    while bytes.next_if(is_name).is_some() {}
                }
            }
            (byte, _) => word.get_or_insert_default().push(byte),
        }
    }
    end(&mut word, &mut all);
    all
}

fn end(word: &mut Option<Vec<u8>>, all: &mut [Vec<Vec<u8>>]) {
    if let (Some(word), Some(command)) = (word.take(), all.last_mut()) {
        command.push(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_could_be_files_are_found() {
        for (text, wanted) in [
            ("true", &[][..]),
            ("tools/x", &["tools/x"]),
            ("less -R", &[]),
            ("sh tools/x", &["tools/x"]),
            (
                "python3 'a b.py' -o --file=out/x",
                &["b.py", "a b.py", "out/x"],
            ),
            ("!LANG=C ./x; cd y && z/w", &["./x", "y", "z/w"]),
            ("!git log -- src/main.rs", &[]),
            (
                "\"$(git rev-parse --show-toplevel)/tools/x\" %f",
                &["/tools/x", "%f"],
            ),
            ("$PWD/tools/x", &["/tools/x"]),
            ("${HOME}/x \"$y/z\"", &["/x", "/z"]),
            ("sh -c 'exec tools/x'", &["tools/x", "exec tools/x"]),
            ("to\\ ols/\"x\"", &["to ols/x", "ols/x"]),
        ] {
            let found = words(text.as_bytes());
            let found: Vec<_> = found
                .iter()
                .map(|word| String::from_utf8_lossy(word))
                .collect();
            assert_eq!(found, wanted, "{text}");
        }
    }
}
