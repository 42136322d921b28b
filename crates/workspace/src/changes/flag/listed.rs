//! Names that something on the host runs or obeys.
//!
//! Two tables, each name with the reason it is there. A name is matched without regard to case:
//! filesystems that fold case exist, and programs on them find `.Envrc`.

use std::sync::LazyLock;

use sandbox_model::RelPath;

/// Anywhere in the tree: what something on the host runs or obeys, unasked or by a daily command (a
/// build, a test, a commit). A trailing slash means everything below, a leading star any name that ends
/// so, a trailing star any name that begins so.
const RUNS_ON_HOST: &[(&str, &str)] = &[
    (".envrc", "direnv sources it on cd, once allowed"),
    (
        ".env",
        "shells and tools set its variables: PATH, LD_PRELOAD",
    ),
    (".env.*", "the same"),
    (
        "flake.nix",
        "direnv and nix evaluate it and run what it names",
    ),
    ("shell.nix", "the same"),
    ("default.nix", "the same"),
    ("devenv.nix", "the same"),
    ("devenv.yaml", "the same"),
    ("devbox.json", "runs its init hooks in every shell"),
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
    ("CLAUDE.md", "an agent obeys it"),
    ("CLAUDE.local.md", "an agent obeys it"),
    ("AGENTS.md", "an agent obeys it"),
    ("AGENTS.override.md", "an agent obeys it"),
    ("AGENT.md", "an agent obeys it"),
    ("GEMINI.md", "an agent obeys it"),
    (".gemini/", "an agent's settings, hooks and servers"),
    (".codex/", "the same"),
    (".opencode/", "the same"),
    ("opencode.json*", "the same"),
    (".aider*", "names commands that an agent runs"),
    (".continue/", "an agent's rules and servers"),
    (".cursorrules", "an agent obeys it"),
    (".windsurfrules", "an agent obeys it"),
    (".windsurf/", "an agent's rules and servers"),
    (".clinerules", "an agent obeys it"),
    (".clinerules/", "an agent obeys it"),
    (".roo/", "an agent's rules and servers"),
    (".roorules*", "an agent obeys it"),
    (".junie/", "an agent's rules and servers"),
    (".kiro/", "an agent's rules, hooks and servers"),
    (".amazonq/", "an agent's rules and servers"),
    (".github/copilot-instructions.md", "an agent obeys it"),
    (".github/instructions/", "an agent obeys it"),
    (".github/prompts/", "an agent obeys it"),
    (".github/agents/", "an agent obeys it"),
    (".mcp.json", "names servers that an agent starts"),
    (".devcontainer/", "commands run when the folder opens"),
    (".devcontainer.json", "the same"),
    (
        ".helix/",
        "names programs that the editor runs, once trusted",
    ),
    ("*.sublime-project", "names programs that the editor runs"),
    (".nvim.lua", "the editor sources it, once trusted"),
    (".lazy.lua", "the editor sources it, once trusted"),
    (".lvimrc", "the editor sources it, once trusted"),
    (".nvimrc", "the editor sources it, once trusted"),
    (".exrc", "the editor sources it"),
    (".vimrc", "the editor may source it"),
    (".dir-locals*", "the editor evaluates it, once trusted"),
    (".clangd", "names compilers that an editor runs"),
    (
        "compile_commands.json",
        "names compilers that an editor runs",
    ),
    ("rust-analyzer.toml", "names programs that an editor runs"),
    (".rust-analyzer.toml", "the same"),
    (".gdbinit", "the debugger runs it"),
    (".lldbinit", "the debugger runs it"),
    (".husky/", "git hooks, kept in the tree"),
    (".githooks/", "git hooks, kept in the tree"),
    (".git-hooks/", "git hooks, kept in the tree"),
    (".huskyrc*", "names programs that a git hook runs"),
    (
        ".pre-commit-config.*",
        "names programs that a git hook runs",
    ),
    (".pre-commit-hooks.*", "the same"),
    ("lefthook.*", "the same"),
    (".lefthook.*", "the same"),
    ("lefthook-local.*", "the same"),
    (".lefthook-local.*", "the same"),
    (".lefthook/", "the same"),
    (".lefthook-local/", "the same"),
    (".overcommit.yml", "the same"),
    (".local-overcommit.yml", "the same"),
    (".lintstagedrc*", "the same"),
    ("lint-staged.config.*", "the same"),
    ("simple-git-hooks.*", "the same"),
    (".simple-git-hooks.*", "the same"),
    ("captainhook.json", "the same"),
    ("commitlint.config.*", "run by a git hook"),
    (".commitlintrc*", "run by a git hook"),
    (
        ".gitattributes",
        "chooses filters, diff and merge drivers that git runs",
    ),
    (".gitmodules", "makes git fetch from elsewhere"),
    (".hg/hgrc*", "names programs that Mercurial runs"),
    (".hg/sharedpath", "makes Mercurial read another repository"),
    (".jj/repo/config.toml", "names programs that jj runs"),
    (".jj/workspace-config.toml", "names programs that jj runs"),
    (".lfsconfig", "makes git fetch from elsewhere"),
    (
        ".cargo/config",
        "names wrappers and runners that cargo, and an editor's cargo, runs",
    ),
    (".cargo/config.toml", "the same"),
    ("rust-toolchain", "chooses the compiler that an editor runs"),
    ("rust-toolchain.toml", "the same"),
    ("build.rs", "cargo, and an editor's cargo, runs it"),
    ("build.zig", "zig runs it"),
    ("Makefile", "make runs it"),
    ("GNUmakefile", "make runs it"),
    ("*.mk", "make runs it"),
    ("CMakeLists.txt", "cmake, and an editor's cmake, runs it"),
    ("CMakePresets.json", "the same"),
    ("*.cmake", "the same"),
    ("meson.build", "meson, and an editor's meson, runs it"),
    ("justfile", "just runs it"),
    (".justfile", "just runs it"),
    ("Taskfile.*", "task runs it"),
    ("Rakefile", "rake runs it"),
    ("Gemfile", "bundler evaluates it"),
    (".irbrc", "the interpreter runs it"),
    (".pryrc", "the interpreter runs it"),
    (".rspec", "names files that tests load"),
    (".rubocop.yml", "names files that a linter loads"),
    ("Vagrantfile", "vagrant evaluates it"),
    ("Tiltfile", "tilt evaluates it"),
    (".mvn/", "maven's options, extensions and wrapper"),
    ("mvnw", "maven's wrapper"),
    ("mvnw.cmd", "maven's wrapper"),
    ("pom.xml", "maven, and an editor's maven, runs its plugins"),
    ("gradlew", "gradle's wrapper"),
    ("gradlew.bat", "gradle's wrapper"),
    ("gradle/wrapper/", "gradle's wrapper"),
    ("gradle.properties", "gradle's options"),
    ("*.gradle", "gradle, and an editor's gradle, runs it"),
    ("*.gradle.kts", "the same"),
    ("build.sbt", "sbt, and an editor's sbt, runs it"),
    ("project/plugins.sbt", "the same"),
    ("mix.exs", "mix, and an editor's mix, runs it"),
    (
        "conftest.py",
        "pytest, and an editor's test discovery, runs it",
    ),
    ("setup.py", "an install runs it"),
    ("noxfile.py", "nox runs it"),
    ("tox.ini", "names commands that tox runs"),
    ("sitecustomize.py", "the interpreter runs it at every start"),
    ("usercustomize.py", "the same"),
    ("*.pth", "the same"),
    (".pdbrc", "the debugger runs it"),
    (".pylintrc", "names code that a linter runs"),
    ("pylintrc", "the same"),
    (".flake8", "the same"),
    ("mypy.ini", "the same"),
    ("eslint.config.*", "a linter, also in an editor, runs it"),
    (".eslintrc*", "the same"),
    ("prettier.config.*", "the same"),
    (".prettierrc*", "the same"),
    ("stylelint.config.*", "the same"),
    (".stylelintrc*", "the same"),
    ("biome.json*", "the same"),
    ("babel.config.*", "a build or an editor runs it"),
    (".babelrc*", "the same"),
    ("vite.config.*", "the same"),
    ("vitest.config.*", "the same"),
    ("vitest.workspace.*", "the same"),
    ("webpack.config.*", "the same"),
    ("rollup.config.*", "the same"),
    ("rspack.config.*", "the same"),
    ("rsbuild.config.*", "the same"),
    ("tsup.config.*", "the same"),
    ("postcss.config.*", "the same"),
    ("tailwind.config.*", "the same"),
    ("next.config.*", "the same"),
    ("nuxt.config.*", "the same"),
    ("astro.config.*", "the same"),
    ("svelte.config.*", "the same"),
    ("metro.config.*", "the same"),
    ("jest.config.*", "tests, also in an editor, run it"),
    ("karma.conf.*", "the same"),
    ("playwright.config.*", "the same"),
    ("cypress.config.*", "the same"),
    (".mocharc*", "the same"),
    ("gulpfile.*", "gulp runs it"),
    ("Gruntfile.*", "grunt runs it"),
    ("deno.json*", "names tasks that deno runs"),
    ("bunfig.toml", "names files that bun loads at every start"),
    ("composer.json", "names scripts that composer runs"),
    (".php-cs-fixer*", "a linter runs it"),
    ("phpstan.neon*", "names files that a linter loads"),
    (".pnp.*", "node loads it at every start"),
    ("pnpm-workspace.yaml", "chooses which packages' scripts run"),
    (".npmrc", "chooses registries and scripts' shells"),
    (".yarnrc.yml", "names the program that yarn runs"),
    (".yarnrc", "the same"),
    (".yarn/releases/", "the program that yarn runs"),
    (".yarn/plugins/", "loaded by yarn"),
    (".pnpmfile.cjs", "run at every install"),
    (".github/workflows/", "run by CI with its secrets"),
    (".github/actions/", "run by CI with its secrets"),
    (".gitea/", "run by CI with its secrets"),
    (".forgejo/", "run by CI with its secrets"),
    (".drone.*", "run by CI with its secrets"),
    (".woodpecker.*", "run by CI with its secrets"),
    (".woodpecker/", "run by CI with its secrets"),
    (".cirrus.*", "run by CI with its secrets"),
    (".semaphore/", "run by CI with its secrets"),
    (".teamcity/", "run by CI with its secrets"),
    ("bitbucket-pipelines.yml", "run by CI with its secrets"),
    ("appveyor.yml", "run by CI with its secrets"),
    (".appveyor.yml", "run by CI with its secrets"),
    ("cloudbuild.*", "run by CI with its secrets"),
    (".gitlab-ci.*", "run by CI with its secrets"),
    (".circleci/", "run by CI with its secrets"),
    (".buildkite/", "run by CI with its secrets"),
    (".travis.yml", "run by CI with its secrets"),
    ("Jenkinsfile", "run by CI with its secrets"),
    ("azure-pipelines.*", "run by CI with its secrets"),
];

/// At the root of the tree, which matters when the source is a home directory.
const RUNS_AT_LOGIN: &[(&str, &str)] = &[
    (".bashrc", "a shell sources it"),
    (".bash_profile", "a shell sources it"),
    (".bash_login", "a shell sources it"),
    (".bash_logout", "a shell sources it"),
    (".bash_aliases", "a shell sources it"),
    (".bashrc.d/", "a shell sources it"),
    (".inputrc", "a shell obeys it at every key"),
    (".profile", "a shell sources it"),
    (".zshrc", "a shell sources it"),
    (".zshenv", "a shell sources it"),
    (".zprofile", "a shell sources it"),
    (".zlogin", "a shell sources it"),
    (".zlogout", "a shell sources it"),
    (".kshrc", "a shell sources it"),
    (".cshrc", "a shell sources it"),
    (".tcshrc", "a shell sources it"),
    (".login", "a shell sources it"),
    (".logout", "a shell sources it"),
    (".oh-my-zsh/", "a shell sources it"),
    (".config/zsh/", "a shell sources it"),
    (".config/nushell/", "a shell sources it"),
    (".config/environment.d/", "variables of every program"),
    (".pam_environment", "variables of every program"),
    (".xinitrc", "the desktop starts it"),
    (".xprofile", "the desktop starts it"),
    (".xsession*", "the desktop starts it"),
    (".local/share/applications/", "the desktop starts it"),
    (
        ".local/share/systemd/",
        "the user's service manager starts it",
    ),
    (".emacs*", "the editor runs it"),
    (".vim/", "the editor runs it"),
    (".config/nvim/", "the editor runs it"),
    (".config/emacs/", "the editor runs it"),
    (".config/tmux/", "tmux runs it"),
    (".screenrc", "screen runs it"),
    (".kube/config", "names programs that clients run"),
    (".aws/config", "names programs that clients run"),
    (".docker/config.json", "names programs that clients run"),
    (".gnupg/", "names programs that gpg runs"),
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

/// A table's patterns by the byte that they begin with: most names of a path, which may be thousands
/// deep, are told apart by the first.
struct Patterns {
    by_first: Vec<Vec<&'static str>>,
    endings: Vec<&'static str>,
}

impl Patterns {
    fn of(table: &[(&'static str, &str)]) -> Patterns {
        let mut patterns = Patterns {
            by_first: vec![Vec::new(); 256],
            endings: Vec::new(),
        };
        for (pattern, _) in table {
            match pattern.bytes().next() {
                Some(b'*') | None => patterns.endings.push(pattern),
                Some(first) => {
                    patterns.by_first[usize::from(first.to_ascii_lowercase())].push(pattern);
                }
            }
        }
        patterns
    }

    /// Is `names`, from its first on, listed?
    fn list(&self, names: &[&[u8]]) -> bool {
        let mut wanted = self.like(names).iter();
        wanted.any(|wanted| is_listed(names, wanted))
            // Only the last name can be one that is told by its ending.
            || (names.len() == 1 && self.endings.iter().any(|wanted| is_listed(names, wanted)))
    }

    /// Is `names`, from its first on, a directory above what is listed?
    fn lead(&self, names: &[&[u8]]) -> bool {
        !names.is_empty()
            && self
                .like(names)
                .iter()
                .any(|wanted| is_above(names, wanted))
    }

    /// The patterns that begin as `names` does.
    fn like(&self, names: &[&[u8]]) -> &[&'static str] {
        let first = names.first().and_then(|name| name.first());
        &self.by_first[first.map_or(0, |byte| usize::from(byte.to_ascii_lowercase()))]
    }
}

static ANYWHERE: LazyLock<Patterns> = LazyLock::new(|| Patterns::of(RUNS_ON_HOST));
static AT_THE_ROOT: LazyLock<Patterns> = LazyLock::new(|| Patterns::of(RUNS_AT_LOGIN));

/// Is `path` run or obeyed by something on the host?
pub(in crate::changes) fn runs_on_host(path: &RelPath) -> bool {
    let names: Vec<&[u8]> = path.components().collect();
    (0..names.len()).any(|at| ANYWHERE.list(&names[at..])) || AT_THE_ROOT.list(&names)
}

/// Does something on the host look for `path`, or for something below it? So a link there gives what it
/// leads to a meaning.
pub(in crate::changes) fn is_looked_for(path: &RelPath) -> bool {
    let names: Vec<&[u8]> = path.components().collect();
    runs_on_host(path)
        || path
            .name()
            .is_some_and(|name| name.eq_ignore_ascii_case(b"package.json"))
        || (0..names.len()).any(|at| ANYWHERE.lead(&names[at..]))
        || AT_THE_ROOT.lead(&names)
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

fn is_listed(names: &[&[u8]], wanted: &str) -> bool {
    if let Some(ending) = wanted.strip_prefix('*') {
        let ends = |name: &[u8]| {
            name.len() >= ending.len()
                && name[name.len() - ending.len()..].eq_ignore_ascii_case(ending.as_bytes())
        };
        return matches!(names, [name] if ends(name));
    }
    if let Some(beginning) = wanted.strip_suffix('*') {
        let (above, beginning) = match beginning.rsplit_once('/') {
            Some((above, beginning)) => (above.split('/').count(), beginning.as_bytes()),
            None => (0, beginning.as_bytes()),
        };
        return names.len() == above + 1
            && (above == 0 || begins_with(names, &wanted[..wanted.rfind('/').unwrap_or(0)]))
            && names[above].len() >= beginning.len()
            && names[above][..beginning.len()].eq_ignore_ascii_case(beginning);
    }
    match wanted.strip_suffix('/') {
        Some(dir) => names.len() > dir.split('/').count() && begins_with(names, dir),
        None => names.len() == wanted.split('/').count() && begins_with(names, wanted),
    }
}

/// Is `names` a directory above what `wanted` lists?
fn is_above(names: &[&[u8]], wanted: &str) -> bool {
    let dirs = match wanted.rsplit_once('/') {
        Some((dirs, _)) => dirs,
        None => return false,
    };
    let mut dirs = dirs.split('/');
    names.iter().all(|name| {
        let dir = dirs.next();
        dir.is_some_and(|dir| name.eq_ignore_ascii_case(dir.as_bytes()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::new(text.as_bytes()).unwrap()
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
            ".env",
            ".env.local",
            ".gitattributes",
            "sub/.gitattributes",
            "CLAUDE.md",
            "sub/AGENTS.md",
            ".gemini/settings.json",
            "flake.nix",
            ".helix/languages.toml",
            ".lintstagedrc",
            ".lintstagedrc.json",
            "lint-staged.config.mjs",
            "lefthook.yaml",
            ".lefthook-local.toml",
            ".overcommit.yml",
            ".mvn/jvm.config",
            "gradlew",
            "gradle/wrapper/gradle-wrapper.jar",
            "app/build.gradle.kts",
            "crates/x/build.rs",
            "tests/conftest.py",
            "eslint.config.js",
            "web/eslint.config.mjs",
            "vite.config.ts",
            ".gitea/workflows/ci.yml",
            ".drone.yml",
            "Makefile",
            "makefile",
            "rules.mk",
            ".bash_aliases",
            ".hg/hgrc",
        ] {
            assert!(runs_on_host(&path(listed)), "{listed}");
        }
        for ordinary in [
            "environment",
            "src/main.rs",
            "README.md",
            "Cargo.toml",
            "envrc",
            "src/.bashrc",
            ".vscode",
            "idea/x",
        ] {
            assert!(!runs_on_host(&path(ordinary)), "{ordinary}");
        }
    }

    #[test]
    fn directories_above_listed_names_are_looked_for() {
        for wanted in [
            ".claude",
            "sub/.vscode",
            ".github",
            ".github/workflows",
            ".config",
            "gradle/wrapper",
            "CLAUDE.md",
            "package.json",
            ".claude/commands",
            "bin",
        ] {
            assert!(is_looked_for(&path(wanted)), "{wanted}");
        }
        for ordinary in ["src", "sub/bin", "claude", "docs/x.md", "workflows"] {
            assert!(!is_looked_for(&path(ordinary)), "{ordinary}");
        }
    }
}
