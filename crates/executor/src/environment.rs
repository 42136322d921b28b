//! What code finds in its environment before anything is asked for.
//!
//! Package managers install below the workspace, in `.local`: that is the only place that outlives an execution, and
//! code may write nowhere else. It does not depend on `HOME`, which a session may set.

use std::ffi::OsString;
use std::path::Path;

/// The variables of a session whose workspace is at `workspace` inside. Those that the session sets itself go over them.
pub fn environment(workspace: &Path) -> Vec<(OsString, OsString)> {
    let packages = workspace.join(".local");
    let mut path = packages.join("bin").into_os_string();
    path.push(":/usr/local/bin:/usr/bin:/bin");
    let variables = [
        ("PATH", path),
        ("HOME", workspace.into()),
        ("LANG", "C.UTF-8".into()),
        ("USER", "sandbox".into()),
        ("PYTHONUSERBASE", packages.clone().into()),
        // Who cannot write to the system cannot break it: so pip need not be told to install for the user
        // (PIP_USER would forbid it to install into a virtual environment).
        ("PIP_BREAK_SYSTEM_PACKAGES", "1".into()),
        // Compiled modules are told from newer source by whole seconds and its size: a module that is edited twice
        // within a second would be the old one. Those of packages are compiled when they are installed.
        ("PYTHONDONTWRITEBYTECODE", "1".into()),
        ("NODE_PATH", packages.join("lib/node_modules").into()),
        ("NPM_CONFIG_PREFIX", packages.into()),
    ];
    variables.map(|(name, value)| (name.into(), value)).into()
}
