//! Credentials that variables of the caller move away from their usual places.
//!
//! The home is an allow-list, so what lies in it is kept out without being known. A variable such
//! as `CARGO_HOME` can move credentials to a place that a sandbox shows; these are looked for by name.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Variables that lead to nothing but credentials, histories and sockets. `KUBECONFIG` may name several.
const WHOLE: [&str; 35] = [
    "ANSIBLE_VAULT_PASSWORD_FILE",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AZURE_CONFIG_DIR",
    "BOTO_CONFIG",
    "CLOUDSDK_CONFIG",
    "DOCKER_CONFIG",
    "GH_CONFIG_DIR",
    "GLAB_CONFIG_DIR",
    "GNUPGHOME",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "HF_TOKEN_PATH",
    "HISTFILE",
    "ICEAUTHORITY",
    "KRB5CCNAME",
    "KRB5_CLIENT_KTNAME",
    "KRB5_KTNAME",
    "KUBECONFIG",
    "NETRC",
    "NPM_CONFIG_USERCONFIG",
    "PASSWORD_STORE_DIR",
    "PGPASSFILE",
    "PGSERVICEFILE",
    "PGSSLKEY",
    "REGISTRY_AUTH_FILE",
    "SOPS_AGE_KEY_FILE",
    "SSH_AUTH_SOCK",
    "TF_CLI_CONFIG_FILE",
    "TWINE_CONFIG_FILE",
    "VAULT_TOKEN_FILE",
    "XAUTHORITY",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "npm_config_userconfig",
];

/// Variables that lead to directories in which these are credentials.
const WITHIN: [(&str, &[&str]); 6] = [
    ("CARGO_HOME", &["credentials", "credentials.toml"]),
    ("GRADLE_USER_HOME", &["gradle.properties"]),
    ("HF_HOME", &["stored_tokens", "token"]),
    ("NVM_DIR", &[".npmrc"]),
    (
        "XDG_CACHE_HOME",
        &[
            "gh",
            "huggingface/stored_tokens",
            "huggingface/token",
            "keyring",
        ],
    ),
    ("XDG_DATA_HOME", &["keyrings", "kwalletd", "uv/credentials"]),
];

/// Paths of credentials that `variables` name. They need not exist.
pub(crate) fn named(variables: impl Iterator<Item = (OsString, OsString)>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for (name, value) in variables {
        let Some(name) = name.to_str() else { continue };
        if WHOLE.contains(&name) {
            found.extend(paths(value.as_bytes()));
        } else if let Some((_, beneath)) = WITHIN.iter().find(|(known, _)| *known == name) {
            for directory in paths(value.as_bytes()) {
                found.extend(beneath.iter().map(|name| directory.join(name)));
            }
        }
    }
    found
}

/// The absolute paths of a list, each perhaps with its kind before it: `FILE:/tmp/krb5cc_1000`.
fn paths(value: &[u8]) -> impl Iterator<Item = PathBuf> {
    let parts = value.split(|byte| *byte == b':');
    let paths = parts.map(|part| Path::new(std::ffi::OsStr::from_bytes(part)));
    paths.filter(|path| path.is_absolute()).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Vec<PathBuf> {
        let owned = |(name, value): &(&str, &str)| (name.into(), value.into());
        named(variables.iter().map(owned))
    }

    #[test]
    fn variables_lead_to_their_credentials() {
        let found = of(&[
            ("CARGO_HOME", "/opt/cargo"),
            ("KUBECONFIG", "/srv/a:relative:/srv/b"),
            ("KRB5CCNAME", "FILE:/srv/krb5cc"),
        ]);
        let expected = [
            "/opt/cargo/credentials",
            "/opt/cargo/credentials.toml",
            "/srv/a",
            "/srv/b",
            "/srv/krb5cc",
        ];
        assert_eq!(found, expected.map(PathBuf::from));
    }

    #[test]
    fn other_variables_lead_nowhere() {
        assert_eq!(
            of(&[("PATH", "/usr/bin"), ("CARGO_HOME", "")]),
            Vec::<PathBuf>::new()
        );
    }
}
