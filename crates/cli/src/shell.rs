//! The shell of `enter`, and how it is given its prompt.
//!
//! Which shells exist inside is only known inside, and a file written from outside into the
//! sandbox's home could be led elsewhere by a link left there. So `enter` starts a small script inside,
//! which finds the shell, writes an rc file of its own to the sandbox's private /tmp where the shell
//! needs one, and becomes the shell. The rc file sources the user's own first, because that sets the
//! prompt anew, then puts `[sandbox:NAME]` before it, each time it is shown.

use std::ffi::OsString;
use std::path::PathBuf;

/// Carries the script; it unsets the variable.
const SCRIPT_VARIABLE: &str = "SANDBOX_ENTER";

/// Whether the prompt tells where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prompt {
    /// `[sandbox:NAME]` before the shell's own.
    Marked,
    /// The shell's own.
    Untouched,
}

/// What to run inside for a shell: the command and the variables it needs.
pub(crate) struct Entrance {
    /// The command.
    pub(crate) command: Vec<OsString>,
    /// Its variables.
    pub(crate) variables: Vec<(&'static str, OsString)>,
}

/// A shell out of `candidates`, the first that exists inside; with `line`, only that is run in it.
pub(crate) fn entrance(
    candidates: &[PathBuf],
    prompt: Prompt,
    line: Option<&OsString>,
) -> Entrance {
    let mode = match (line, prompt) {
        (Some(_), _) => "line",
        (None, Prompt::Marked) => "marked",
        (None, Prompt::Untouched) => "plain",
    };
    let eval = format!("eval \"${SCRIPT_VARIABLE}\"");
    let mut command: Vec<OsString> = vec!["sh".into(), "-c".into(), eval.into()];
    command.push(mode.into());
    command.push(line.cloned().unwrap_or_default());
    command.extend(candidates.iter().map(Into::into));
    let script = SCRIPT
        .replace("@bash@", BASH)
        .replace("@zsh@", ZSH)
        .replace("@fish@", FISH);
    Entrance {
        command,
        variables: vec![(SCRIPT_VARIABLE, script.into())],
    }
}

/// `$0` is the mode, `$1` the line, the rest are candidates.
const SCRIPT: &str = r#"unset SANDBOX_ENTER
mode=$0 line=$1; shift
wanted=$1
for shell; do
    if shell=$(command -v "$shell") && [ -x "$shell" ]; then break; fi
    shell=/bin/sh
done
case $wanted in
    "$shell"|"${shell##*/}") ;;
    *) echo "sandbox: there is no $wanted inside; this is $shell" >&2 ;;
esac
SHELL=$shell; export SHELL
rc=/tmp/.sandbox-enter-$$
unset wanted
case $mode in
    line) exec "$shell" -c "$line" ;;
    plain) exec "$shell" ;;
esac
case ${shell##*/} in
    bash)
        if (umask 077; mkdir "$rc") 2>/dev/null; then
            cat > "$rc/bashrc" <<'END'
@bash@
END
            exec "$shell" --rcfile "$rc/bashrc" -i
        fi ;;
    zsh)
        if (umask 077; mkdir "$rc") 2>/dev/null; then
            cat > "$rc/.zshrc" <<'END'
@zsh@
END
            SANDBOX_ZDOTDIR=${ZDOTDIR-$HOME} ZDOTDIR=$rc exec "$shell" -i
        fi ;;
    fish)
        exec "$shell" -i -C '@fish@' ;;
esac
PS1="[sandbox:$SANDBOX_NAME] \$ "; export PS1
exec "$shell" -i
"#;

const BASH: &str = r#"command rm -rf "/tmp/.sandbox-enter-$$"
if [ -r ~/.bashrc ]; then . ~/.bashrc; fi
__sandbox_prompt() {
    case $PS1 in *"[sandbox:"*) ;; *) PS1="[sandbox:$SANDBOX_NAME] $PS1" ;; esac
}
__sandbox_prompt
PROMPT_COMMAND="${PROMPT_COMMAND:+$PROMPT_COMMAND; }__sandbox_prompt""#;

const ZSH: &str = r#"command rm -rf "/tmp/.sandbox-enter-$$"
ZDOTDIR=$SANDBOX_ZDOTDIR; unset SANDBOX_ZDOTDIR
if [[ $ZDOTDIR == "$HOME" ]]; then unset ZDOTDIR; fi
if [[ -r ${ZDOTDIR-$HOME}/.zshrc ]]; then . "${ZDOTDIR-$HOME}/.zshrc"; fi
__sandbox_prompt() {
    case $PS1 in *"[sandbox:"*) ;; *) PS1="[sandbox:$SANDBOX_NAME] $PS1" ;; esac
}
__sandbox_prompt
typeset -ga precmd_functions
precmd_functions+=(__sandbox_prompt)"#;

const FISH: &str = r#"functions -q fish_prompt; and functions -c fish_prompt __sandbox_own_prompt
function fish_prompt
    printf "[sandbox:%s] " $SANDBOX_NAME
    functions -q __sandbox_own_prompt; and __sandbox_own_prompt
end"#;
