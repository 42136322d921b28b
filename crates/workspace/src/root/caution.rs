//! Sources that are probably not what was meant.

use std::fmt;
use std::path::Path;

/// Why a source deserves a question before it is sandboxed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caution {
    /// It is `/`.
    WholeSystem,
    /// It is the home directory.
    Home,
    /// The home directory lies in it.
    HoldsHome,
    /// It is a sandbox's own directory, or the sandbox root, or lies in it.
    InsideSandboxRoot,
}

impl fmt::Display for Caution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Caution::WholeSystem => "the source is the whole system",
            Caution::Home => "the source is the whole home directory",
            Caution::HoldsHome => "the source holds the whole home directory",
            Caution::InsideSandboxRoot => "the source lies where sandboxes keep their own files",
        })
    }
}

/// What is odd about `source`, if anything. All three paths are canonical.
pub fn caution(source: &Path, home: Option<&Path>, root: &Path) -> Option<Caution> {
    if source == Path::new("/") {
        Some(Caution::WholeSystem)
    } else if source.starts_with(root) {
        Some(Caution::InsideSandboxRoot)
    } else if home == Some(source) {
        Some(Caution::Home)
    } else if home.is_some_and(|home| home.starts_with(source)) {
        Some(Caution::HoldsHome)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_sources_are_noticed() {
        let look = |source: &str| {
            let root = Path::new("/home/ada/.local/share/daedalos/sandbox");
            caution(Path::new(source), Some(Path::new("/home/ada")), root)
        };
        assert_eq!(look("/"), Some(Caution::WholeSystem));
        assert_eq!(look("/home/ada"), Some(Caution::Home));
        assert_eq!(look("/home"), Some(Caution::HoldsHome));
        let own = "/home/ada/.local/share/daedalos/sandbox/calm-otter-42/upper";
        assert_eq!(look(own), Some(Caution::InsideSandboxRoot));
        assert_eq!(look("/home/ada/project"), None);
        assert_eq!(look("/home/adam"), None);
    }
}
