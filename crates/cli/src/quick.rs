//! The common forms of `run` and `try`, parsed by hand.
//!
//! Building the whole argument parser costs more than a system call or ten, and these two commands
//! are the ones whose latency is felt. Anything not understood here at once, `--help` and every
//! mistake included, is `None`: the whole parser decides. Where this one answers, the whole
//! one would answer the same (a test runs both).

use std::ffi::{OsStr, OsString};

use crate::arguments::names_session;
use crate::command::{Command, run, try_};
use crate::isolation_options::{IsolationOptions, exposure, hidden, port, wall};

/// The command, when it is plain enough.
pub(crate) fn parse(arguments: &[OsString]) -> Option<Command> {
    let (command, rest) = arguments.split_first()?;
    match command.to_str()? {
        "run" => run(rest),
        "exec" => run(rest).filter(|command| !is_for_a_session(command)),
        "try" => try_(rest),
        _ => None,
    }
}

fn run(arguments: &[OsString]) -> Option<Command> {
    let mut isolation = IsolationOptions::default();
    let words = flags(arguments, &mut |flag, value| {
        isolation_flag(&mut isolation, flag, value)
    })?;
    Some(Command::Run(run::Args {
        words: words.to_vec(),
        isolation,
    }))
}

/// A session is a server's affair, and the whole parser's.
fn is_for_a_session(command: &Command) -> bool {
    match command {
        Command::Run(args) => args.words.first().is_some_and(|word| names_session(word)),
        _ => false,
    }
}

fn try_(arguments: &[OsString]) -> Option<Command> {
    let mut args = try_::Args {
        command: Vec::new(),
        promote: false,
        keep: false,
        discard: false,
        backend: None,
        yes: false,
        isolation: IsolationOptions::default(),
    };
    let command = flags(arguments, &mut |flag, value| {
        let decided = args.promote || args.keep || args.discard;
        match flag {
            "promote" if !decided => args.promote = true,
            "keep" if !decided => args.keep = true,
            "discard" if !decided => args.discard = true,
            "backend" | "copy" => return once(&mut args.backend, value()?.parse().ok()?),
            _ => return isolation_flag(&mut args.isolation, flag, value),
        }
        Some(())
    })?;
    args.command = command.to_vec();
    Some(Command::Try(args))
}

/// Gives the value of the flag at hand: attached by `=`, or the next word.
type Value<'v, 'a> = &'v mut dyn FnMut() -> Option<&'a str>;

/// Feeds every flag before the first other word to `take` and gives the rest, which is not empty.
/// `take` asks for the flag's value if it has one.
fn flags<'a>(
    mut rest: &'a [OsString],
    take: &mut dyn FnMut(&str, Value<'_, 'a>) -> Option<()>,
) -> Option<&'a [OsString]> {
    loop {
        let (first, after) = rest.split_first()?;
        let Some(flag) = long_flag(first)? else {
            return Some(rest);
        };
        rest = after;
        if flag.is_empty() {
            return (!rest.is_empty()).then_some(rest);
        }
        let (name, mut attached) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (flag, None),
        };
        let mut taken = false;
        let mut value = || {
            taken = true;
            attached.take().or_else(|| {
                let (value, after) = rest.split_first()?;
                rest = after;
                value.to_str().filter(|value| !value.starts_with('-'))
            })
        };
        take(name, &mut value)?;
        // A value given to a switch.
        if !taken && flag.contains('=') {
            return None;
        }
    }
}

/// `--name` gives `name`, `--` the empty name, a word nothing; short flags are not for us.
fn long_flag(word: &OsStr) -> Option<Option<&str>> {
    match word.as_encoded_bytes() {
        [b'-', b'-', ..] => word.to_str().map(|text| Some(&text[2..])),
        [b'-', _, ..] => None,
        _ => Some(None),
    }
}

/// Takes one isolation flag; a second one of the same is the whole parser's to refuse.
fn isolation_flag<'a>(
    options: &mut IsolationOptions,
    flag: &str,
    value: Value<'_, 'a>,
) -> Option<()> {
    match flag {
        "isolated-network" => switch(&mut options.isolated_network),
        "clean-env" => switch(&mut options.clean_env),
        "with-ports" => list(&mut options.with_ports, value()?, |text| port(text).ok()),
        "allow-host" => list(&mut options.allow_host, value()?, |text| text.parse().ok()),
        "publish" => list(&mut options.publish, value()?, |text| text.parse().ok()),
        "memory" => once(&mut options.memory, value()?.parse().ok()?),
        "cpus" => once(&mut options.cpus, value()?.parse().ok()?),
        "pids" => once(&mut options.pids, value()?.parse().ok()?),
        "size" => once(&mut options.size, value()?.parse().ok()?),
        "isolation" => once(&mut options.isolation, wall(value()?).ok()?),
        "expose" => push(&mut options.expose, exposure(value()?).ok()?),
        "hide" => push(&mut options.hide, hidden(value()?).ok()?),
        "env" => push(&mut options.env, value()?.parse().ok()?),
        _ => None,
    }
}

fn switch(place: &mut bool) -> Option<()> {
    (!std::mem::replace(place, true)).then_some(())
}

fn once<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

fn push<T>(place: &mut Vec<T>, value: T) -> Option<()> {
    place.push(value);
    Some(())
}

fn list<T>(place: &mut Vec<T>, text: &str, parse: fn(&str) -> Option<T>) -> Option<()> {
    for item in text.split(',') {
        place.push(parse(item)?);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ')
            .filter(|word| !word.is_empty())
            .map(OsString::from)
            .collect()
    }

    /// Where the quick parser answers, the whole parser must answer the same.
    fn agree(arguments: &[OsString]) -> bool {
        let Some(quick) = parse(arguments) else {
            return false;
        };
        let whole = arguments::parse(arguments.to_vec());
        let whole = whole.unwrap_or_else(|problem| panic!("{arguments:?}: {}", problem.line()));
        assert_eq!(quick, whole, "{arguments:?}");
        true
    }

    #[test]
    fn the_common_forms_are_answered_and_agreed_on() {
        for line in [
            "run n true",
            "exec n true",
            "exec -- n sess_0123456789abcdef",
            "exec sess_0123456789abcde true",
            "run sess_0123456789abcdef true",
            "run n -- true",
            "run n ls -l --help",
            "run n --isolated-network",
            "run n -x",
            "run n",
            "run -- n true",
            "run -- n -- true -- x",
            "run --isolated-network n /bin/true",
            "run --memory 1G --cpus 1.5 --pids 10 --size=2G n x y",
            "run --memory none n x",
            "run --with-ports 1,2 --with-ports=3 n x",
            "run --allow-host a.com:443,*.b.com --publish 8080:3000 n x",
            "run --expose /a:rw --expose rel --hide /b --env A=1 --env B=x=y --clean-env n x",
            "run --env=-x=1 n x",
            "run --isolation landlock n x",
            "run - x",
            "try true",
            "try -- true",
            "try --discard -- /bin/true",
            "try --keep --isolated-network -- make -j",
            "try --promote make --promote",
            "try --backend copy x",
            "try --copy rsync x",
        ] {
            assert!(agree(&words(line)), "{line} is not answered quickly");
        }
        let odd = [
            OsString::from("run"),
            "n".into(),
            "echo a  b; exit 3".into(),
        ];
        assert!(agree(&odd));
    }

    #[test]
    fn everything_else_is_left_to_the_whole_parser() {
        for line in [
            "",
            "run",
            "run --",
            "try",
            "try --",
            "list",
            "run --help",
            "run -h",
            "run --memory",
            "run --memory 0 n x",
            "run --memory -1 n x",
            "run --memory 1G --memory 2G n x",
            "run --isolated-network=yes n x",
            "run --isolated-network --isolated-network n x",
            "run --unknown n x",
            "run -e A=1 n x",
            "try --keep --discard x",
            "try --yes x",
            "run --with-ports 0 n x",
            "run --with-ports 1,,2 n x",
            "try -y x",
            "exec sess_0123456789abcdef true",
            "exec --memory 1G sess_0123456789abcdef true",
            "exec -- sess_0123456789abcdef true",
            "exec --json n true",
        ] {
            assert!(parse(&words(line)).is_none(), "{line}");
        }
    }

    #[test]
    fn any_mix_of_words_is_agreed_on() {
        let vocabulary = [
            "run",
            "try",
            "exec",
            "n",
            "x",
            "sess_0123456789abcdef",
            "--json",
            "--",
            "-",
            "-x",
            "--keep",
            "--discard",
            "--promote",
            "--isolated-network",
            "--memory",
            "1G",
            "--memory=1M",
            "--env",
            "A=1",
            "--clean-env",
            "--with-ports",
            "80,443",
            "--with-ports=",
            "--help",
            "--yes",
            "--backend",
            "overlay",
            "--pids=5",
            "--hide",
            "/etc",
            "--host-network",
            "",
        ];
        // A small generator of its own: the vocabulary is tiny and a failure names its arguments.
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        let mut answered = 0;
        for _ in 0..3000 {
            let first = ["run", "try", "exec"][random(3)];
            let mut arguments = vec![OsString::from(first)];
            for _ in 0..random(7) {
                arguments.push(vocabulary[random(vocabulary.len())].into());
            }
            answered += usize::from(agree(&arguments));
        }
        assert!(answered > 300, "{answered}");
    }
}
