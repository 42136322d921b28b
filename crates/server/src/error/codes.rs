//! Every code that an error can have, for those who tell people of them.

/// Every code, as clients see it in `error_code`: of an error, or of an execution's result.
pub const ERROR_CODES: [&str; 34] = [
    "Sandbox.InvalidParameter",
    "Sandbox.PayloadTooLarge",
    "Sandbox.Unauthorized",
    "Sandbox.Forbidden",
    "Sandbox.NotFound",
    "Sandbox.SessionNotFound",
    "Sandbox.ExecutionNotFound",
    "Sandbox.TemplateNotFound",
    "Sandbox.FileNotFound",
    "Sandbox.ContainerNotFound",
    "Sandbox.NodeNotFound",
    "Sandbox.KeyNotFound",
    "Sandbox.MethodNotAllowed",
    "Sandbox.StateConflict",
    "Sandbox.TooManyRequests",
    "Sandbox.CapacityExhausted",
    "Sandbox.Unavailable",
    "Sandbox.InternalError",
    "Sandbox.ExecTimeout",
    "Sandbox.ExecException",
    "Sandbox.DiskFull",
    "Sandbox.ProcessLimit",
    "Internal.Unauthorized",
    "Internal.InvalidSession",
    "Internal.InvalidExecution",
    "Internal.StateConflict",
    "Internal.NotFound",
    "Internal.MethodNotAllowed",
    "Internal.InvalidParameter",
    "Internal.PayloadTooLarge",
    "Internal.TooManyRequests",
    "Internal.CapacityExhausted",
    "Internal.Unavailable",
    "Internal.InternalError",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::ERROR_CODES;

    /// The codes between quotes in every file of this crate but this one.
    fn written(directory: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                written(&path, found);
            } else if path.extension().is_some_and(|kind| kind == "rs")
                && !path.ends_with("codes.rs")
            {
                let text = std::fs::read_to_string(&path).unwrap();
                let quoted = text.split('"').filter(|part| is_code(part));
                found.extend(quoted.map(str::to_owned));
            }
        }
    }

    fn is_code(text: &str) -> bool {
        let name = text
            .strip_prefix("Sandbox.")
            .or(text.strip_prefix("Internal."));
        name.is_some_and(|name| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic())
        })
    }

    #[test]
    fn every_code_that_is_used_is_listed() {
        let mut found = BTreeSet::new();
        written(
            &Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests"))
                .join("src"),
            &mut found,
        );
        let listed: BTreeSet<String> = ERROR_CODES.map(str::to_owned).into();
        assert_eq!(found, listed);
    }
}
