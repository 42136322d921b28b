//! What a person should look at twice before it reaches their machine.
//!
//! Two tables, each name with the reason it is there. A name is matched without regard to case:
//! filesystems that fold case exist, and programs on them find `.Git/Config`.

use std::io;
use std::sync::LazyLock;

use rustix::process::geteuid;
use sandbox_model::{Change, ChangeKind, Entry, EntryKind, Flag, RelPath};

use crate::side::Xattrs;
use crate::view::{View, ViewError};

/// Below a git directory: what makes git run programs or look elsewhere.
const GIT_CONTROL: &[(&str, &str)] = &[
    (
        "config",
        "names programs git runs: editors, pagers, filters, fsmonitor",
    ),
    ("config.worktree", "the same, per worktree"),
    ("hooks", "programs git runs"),
    ("info/attributes", "chooses filters and merge drivers"),
    ("info/grafts", "rewrites history as git sees it"),
    ("commondir", "moves the repository's other half elsewhere"),
    ("gitdir", "moves a worktree elsewhere"),
    (
        "objects/info/alternates",
        "makes git read another repository",
    ),
];

/// Anywhere in the tree: what something on the host runs unasked. A trailing slash means everything
/// below, a leading star any name that ends so.
const RUNS_ON_HOST: &[(&str, &str)] = &[
    (".envrc", "direnv sources it on cd, once allowed"),
    (".env.fish", "shell plugins source it on cd"),
    (".autoenv", "shell plugins source it on cd"),
    (
        ".mise.toml",
        "mise runs its hooks and sets the environment on cd",
    ),
    ("mise.toml", "the same"),
    (".mise/", "the same"),
    (".config/mise/", "the same"),
    (".tool-versions", "chooses which tools run, on cd"),
    (".rtx.toml", "mise's older name"),
    (".vscode/tasks.json", "tasks may run when the folder opens"),
    (
        ".vscode/settings.json",
        "names programs that the editor runs",
    ),
    (".vscode/launch.json", "names programs that the editor runs"),
    (".vscode/mcp.json", "names servers that the editor starts"),
    ("*.code-workspace", "holds settings and tasks of an editor"),
    (".idea/", "run configurations, watchers, external tools"),
    (".fleet/", "run configurations"),
    (".zed/", "tasks and language servers"),
    (".cursor/", "an agent's rules, hooks and servers"),
    (".claude/", "an agent's hooks and commands"),
    (".mcp.json", "names servers that an agent starts"),
    (".devcontainer/", "commands run when the folder opens"),
    (".devcontainer.json", "the same"),
    (".nvim.lua", "the editor sources it, once trusted"),
    (".nvimrc", "the editor sources it, once trusted"),
    (".exrc", "the editor sources it"),
    (".vimrc", "the editor may source it"),
    (".dir-locals.el", "the editor evaluates it, once trusted"),
    (".gdbinit", "the debugger runs it"),
    (".lldbinit", "the debugger runs it"),
    (".husky/", "git hooks, kept in the tree"),
    (".githooks/", "git hooks, kept in the tree"),
    (
        ".pre-commit-config.yaml",
        "names programs that a git hook runs",
    ),
    ("lefthook.yml", "names programs that a git hook runs"),
    (".lefthook.yml", "names programs that a git hook runs"),
    (".gitmodules", "makes git fetch from elsewhere"),
    (".lfsconfig", "makes git fetch from elsewhere"),
    (
        ".cargo/config",
        "names wrappers and runners that cargo, and an editor's cargo, runs",
    ),
    (".cargo/config.toml", "the same"),
    ("rust-toolchain", "chooses the compiler that an editor runs"),
    ("rust-toolchain.toml", "the same"),
    (".npmrc", "chooses registries and scripts' shells"),
    (".yarnrc.yml", "names the program that yarn runs"),
    (".yarnrc", "the same"),
    (".yarn/releases/", "the program that yarn runs"),
    (".yarn/plugins/", "loaded by yarn"),
    (".pnpmfile.cjs", "run at every install"),
    (".github/workflows/", "run by CI with its secrets"),
    (".github/actions/", "run by CI with its secrets"),
    (".gitlab-ci.yml", "run by CI with its secrets"),
    (".circleci/", "run by CI with its secrets"),
    (".buildkite/", "run by CI with its secrets"),
    (".travis.yml", "run by CI with its secrets"),
    ("Jenkinsfile", "run by CI with its secrets"),
    ("azure-pipelines.yml", "run by CI with its secrets"),
];

/// At the root of the tree, which matters when the source is a home directory.
const RUNS_AT_LOGIN: &[(&str, &str)] = &[
    (".bashrc", "a shell sources it"),
    (".bash_profile", "a shell sources it"),
    (".bash_login", "a shell sources it"),
    (".bash_logout", "a shell sources it"),
    (".profile", "a shell sources it"),
    (".zshrc", "a shell sources it"),
    (".zshenv", "a shell sources it"),
    (".zprofile", "a shell sources it"),
    (".zlogin", "a shell sources it"),
    (".config/fish/", "a shell sources it"),
    (".config/autostart/", "the desktop starts it"),
    (".config/systemd/", "the user's service manager starts it"),
    (".config/git/", "git's configuration for every repository"),
    (".gitconfig", "git's configuration for every repository"),
    (".ssh/", "who may log in, and what ssh runs"),
    (".tmux.conf", "tmux runs it"),
    (".local/bin/", "programs found before the system's"),
    ("bin/", "programs found before the system's"),
];

/// The bytes that a table's names begin with: most names of a path, which may be thousands deep, are
/// told apart by the first.
struct Beginnings([bool; 256]);

impl Beginnings {
    fn of(table: &[(&str, &str)]) -> Beginnings {
        let mut known = [false; 256];
        for first in table.iter().filter_map(|(name, _)| name.bytes().next()) {
            known[usize::from(first.to_ascii_lowercase())] = true;
        }
        Beginnings(known)
    }

    fn may_be(&self, name: &[u8]) -> bool {
        name.first()
            .is_some_and(|first| self.0[usize::from(first.to_ascii_lowercase())])
    }
}

/// The flags of one change.
pub(super) fn flags(
    view: &View<'_>,
    change: &Change,
    xattrs: &Xattrs,
) -> Result<Vec<Flag>, ViewError> {
    let failed = || view.failed(&change.path);
    let mut flags = Vec::new();
    if steers_git(view, &change.path).map_err(failed())? {
        flags.push(Flag::GitControl);
    }
    if runs_on_host(&change.path) {
        flags.push(Flag::RunsOnHost);
    }
    let Some(after) = change.after else {
        return Ok(flags);
    };
    if became_executable(change, &after) {
        flags.push(Flag::Executable);
    }
    if is_privileged(&after, xattrs) {
        flags.push(Flag::Privilege);
    }
    if is_unpromotable(&after) {
        flags.push(Flag::Unpromotable);
    }
    if after.kind == EntryKind::Symlink && points_out(view, &change.path).map_err(failed())? {
        flags.push(Flag::OutwardSymlink);
    }
    Ok(flags)
}

/// A git directory is `.git`, `.git/modules/*`, `.git/worktrees/*`, or any directory that looks like
/// a bare repository: git uses one wherever it is run in it (CVE-2022-24765 and what followed).
fn steers_git(view: &View<'_>, path: &RelPath) -> io::Result<bool> {
    let names: Vec<&[u8]> = path.components().collect();
    for (at, name) in names.iter().enumerate() {
        if name.eq_ignore_ascii_case(b".git") {
            return Ok(is_git_control(&names[at + 1..]));
        }
    }
    static BEGINNINGS: LazyLock<Beginnings> = LazyLock::new(|| Beginnings::of(GIT_CONTROL));
    for at in 1..names.len() {
        if BEGINNINGS.may_be(names[at])
            && GIT_CONTROL
                .iter()
                .any(|(control, _)| begins_with(&names[at..], control))
        {
            let above = RelPath::new(&names[..at].join(&b'/')).unwrap_or_default();
            if looks_like_repository(view, &above)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// `below` is the path inside a `.git`. An empty one is `.git` itself: as a file it points elsewhere.
fn is_git_control(below: &[&[u8]]) -> bool {
    let inner = match below {
        [] => return true,
        [first, rest @ ..] if first.eq_ignore_ascii_case(b"modules") => {
            // A submodule's name may have slashes, so its git directory begins anywhere below.
            return (0..rest.len()).any(|at| is_git_control_name(&rest[at..]));
        }
        [first, _, rest @ ..] if first.eq_ignore_ascii_case(b"worktrees") => rest,
        other => other,
    };
    is_git_control_name(inner)
}

fn is_git_control_name(inner: &[&[u8]]) -> bool {
    GIT_CONTROL
        .iter()
        .any(|(control, _)| begins_with(inner, control))
}

/// Is `names` the path `wanted`, or below it?
fn begins_with(names: &[&[u8]], wanted: &str) -> bool {
    let mut wanted_names = wanted.split('/');
    let mut names = names.iter();
    wanted_names.all(|wanted| {
        names
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case(wanted.as_bytes()))
    })
}

fn looks_like_repository(view: &View<'_>, dir: &RelPath) -> io::Result<bool> {
    for name in [&b"HEAD"[..], b"objects"] {
        if view.workspace().stat(&dir.join(name))?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn runs_on_host(path: &RelPath) -> bool {
    let names: Vec<&[u8]> = path.components().collect();
    static BEGINNINGS: LazyLock<Beginnings> = LazyLock::new(|| Beginnings::of(RUNS_ON_HOST));
    let last = names.len().saturating_sub(1);
    let anywhere = (0..names.len()).any(|at| {
        // Only the last name can be one that is told by its ending.
        (at == last || BEGINNINGS.may_be(names[at]))
            && RUNS_ON_HOST
                .iter()
                .any(|(wanted, _)| is_listed(&names[at..], wanted))
    });
    anywhere
        || RUNS_AT_LOGIN
            .iter()
            .any(|(wanted, _)| is_listed(&names, wanted))
}

fn is_listed(names: &[&[u8]], wanted: &str) -> bool {
    if let Some(ending) = wanted.strip_prefix('*') {
        let ends = |name: &[u8]| {
            name.len() >= ending.len()
                && name[name.len() - ending.len()..].eq_ignore_ascii_case(ending.as_bytes())
        };
        return matches!(names, [name] if ends(name));
    }
    match wanted.strip_suffix('/') {
        Some(dir) => names.len() > dir.split('/').count() && begins_with(names, dir),
        None => names.len() == wanted.split('/').count() && begins_with(names, wanted),
    }
}

fn became_executable(change: &Change, after: &Entry) -> bool {
    let executable = |entry: &Entry| entry.kind == EntryKind::File && entry.mode & 0o111 != 0;
    let was_already = change.before.as_ref().is_some_and(executable)
        && !matches!(change.kind, ChangeKind::Created);
    executable(after) && !was_already
}

/// Set-id bits and file capabilities, which promote strips. A directory's set-group-id bit only
/// hands its group on.
fn is_privileged(after: &Entry, xattrs: &Xattrs) -> bool {
    let set_id = after.mode & 0o6000 != 0;
    after.kind == EntryKind::File && (set_id || xattrs.contains_key(&b"security.capability"[..]))
}

/// Devices and sockets mean nothing elsewhere; another's file is not ours to make.
fn is_unpromotable(after: &Entry) -> bool {
    let node = matches!(
        after.kind,
        EntryKind::CharDevice | EntryKind::BlockDevice | EntryKind::Socket
    );
    let euid = geteuid();
    node || (!euid.is_root() && after.uid != euid.as_raw())
}

/// Does the symlink at `path` lead out of the tree, by its words alone?
fn points_out(view: &View<'_>, path: &RelPath) -> io::Result<bool> {
    let target = match view.workspace().read_link(path) {
        Err(error) if crate::layer::vanished(&error) => return Ok(false),
        target => target?,
    };
    use std::os::unix::ffi::OsStrExt;
    let root = view.sandbox.source().as_os_str().as_bytes();
    Ok(leads_out(root, path, &target))
}

fn leads_out(root: &[u8], path: &RelPath, target: &[u8]) -> bool {
    let inside = match target.strip_prefix(root) {
        Some(rest) if root.first() == Some(&b'/') && matches!(rest.first(), None | Some(b'/')) => {
            Some(rest)
        }
        _ => None,
    };
    let (mut depth, rest) = match (inside, target.first()) {
        (Some(rest), _) => (0, rest),
        (None, Some(b'/')) => return true,
        (None, _) => (path.components().count().saturating_sub(1), target),
    };
    for name in rest.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." if depth == 0 => return true,
            b".." => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::new(text.as_bytes()).unwrap()
    }

    fn controls(text: &str) -> bool {
        let path = path(text);
        let names: Vec<&[u8]> = path.components().collect();
        let git = names
            .iter()
            .position(|name| name.eq_ignore_ascii_case(b".git"));
        git.is_some_and(|at| is_git_control(&names[at + 1..]))
    }

    #[test]
    fn what_steers_git_is_known_wherever_the_repository_is() {
        for steering in [
            ".git",
            ".git/config",
            ".git/hooks",
            ".git/hooks/pre-commit",
            "vendor/lib/.git/config",
            ".git/modules/a/b/hooks/post-checkout",
            ".git/worktrees/x/config.worktree",
            ".git/info/attributes",
            ".GIT/Config",
        ] {
            assert!(controls(steering), "{steering}");
        }
    }

    #[test]
    fn a_commit_changes_nothing_that_steers_git() {
        for ordinary in [
            ".git/HEAD",
            ".git/index",
            ".git/objects/ab/cd",
            ".git/refs/heads/main",
            ".git/logs/HEAD",
        ] {
            assert!(!controls(ordinary), "{ordinary}");
        }
    }

    #[test]
    fn what_runs_unasked_is_known_at_any_depth() {
        for listed in [
            ".envrc",
            "sub/.envrc",
            ".vscode/tasks.json",
            "a/.idea/runConfigurations/x.xml",
            "x.code-workspace",
            ".github/workflows/ci.yml",
            ".bashrc",
        ] {
            assert!(runs_on_host(&path(listed)), "{listed}");
        }
        for ordinary in [
            "Makefile",
            "package.json",
            "envrc",
            "src/.bashrc",
            ".vscode",
            "idea/x",
        ] {
            assert!(!runs_on_host(&path(ordinary)), "{ordinary}");
        }
    }

    #[test]
    fn a_symlink_is_outward_when_its_words_leave_the_tree() {
        let out =
            |at: &str, target: &str| leads_out(b"/home/ada/app", &path(at), target.as_bytes());
        assert!(out("link", "/etc/passwd"));
        assert!(out("link", "../other"));
        assert!(out("a/link", "../../other"));
        assert!(out("link", "/home/ada/app2/x"));
        assert!(out("link", "/home/ada/app/../secret"));
        assert!(!out("a/link", "../other"));
        assert!(!out("link", "/home/ada/app/x"));
        assert!(!out("link", "dir/file"));
    }
}
