//! Which variables of an environment hold secrets, by their names and by their values.
//!
//! There are two answers, because an error costs two different things. A program may not work without a variable
//! that is withheld from it, so only names that are used for secrets are. A value that is not shown is missed by
//! nobody, so every name that could be one counts. What is withheld is never shown.

/// Is a variable of this name withheld from whoever was not given it? It usually holds a secret.
pub fn holds_a_secret(name: &str) -> bool {
    const ANYWHERE: [&str; 16] = [
        "ACCESS_KEY",
        "APIKEY",
        "BEARER",
        "CONNECTIONSTRING",
        "CONNECTION_STRING",
        "CREDENTIAL",
        "JWT",
        "MNEMONIC",
        "PASSPHRASE",
        "PASSWD",
        "PASSWORD",
        "PRIVATEKEY",
        "PRIVATE_KEY",
        "SECRET",
        "TOKEN",
        "WEBHOOK",
    ];
    const ENDS: [&str; 17] = [
        "_AUTH",
        "_AUTHORIZATION",
        "_CONN",
        "_CONN_STR",
        "_COOKIE",
        "_COOKIES",
        "_CREDS",
        "_DSN",
        "_KEY",
        "_OTP",
        "_PASS",
        "_PAT",
        "_PEM",
        "_PWD",
        "_SAS",
        "_URI",
        "_WEBHOOK_URL",
    ];
    const STARTS: [&str; 9] = [
        "AWS_",
        "AZURE_",
        "BW_",
        "COOKIE_",
        "DIGITALOCEAN_",
        "DOCKER_AUTH",
        "KUBE",
        "OP_SESSION",
        "VAULT_",
    ];
    const EXACT: [&str; 19] = [
        "AUTH",
        "AUTHORIZATION",
        "COOKIE",
        "COOKIES",
        "CREDS",
        "DATABASE_URL",
        // What a directory's variables were set to, all of them, in a form of its own.
        "DIRENV_DIFF",
        "DSN",
        "GIT_ASKPASS",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "MYSQL_PWD",
        "NETRC",
        "PASS",
        "PAT",
        "PGPASSFILE",
        "REDIS_URL",
        "SSHPASS",
        "SSH_ASKPASS",
        "URI",
    ];
    // Programs that split text into tokens.
    let name = name.to_uppercase().replace("TOKENIZ", "");
    EXACT.contains(&name.as_str())
        || ANYWHERE.iter().any(|part| name.contains(part))
        || STARTS.iter().any(|start| name.starts_with(start))
        || (ENDS.iter().any(|end| name.ends_with(end)) && name != "OLD_PWD")
}

/// Is this variable withheld from whoever was not given it?
pub fn is_secret(name: &str, value: &str) -> bool {
    // A number of tokens, as language models count them.
    let is_count = name.to_uppercase().ends_with("TOKENS")
        && !value.is_empty()
        && value.bytes().all(|byte| byte.is_ascii_digit());
    (holds_a_secret(name) && !is_count) || reveals_a_secret(value)
}

/// Is this variable not shown?
pub fn is_redacted(name: &str, value: &str) -> bool {
    may_hold_a_secret(name) || reveals_a_secret(value)
}

/// Is there a secret in this value, whatever its name is? Looks for passwords in addresses and connection
/// strings, private keys, and the tokens that can be told by how they begin.
pub fn reveals_a_secret(value: &str) -> bool {
    // Of letters and digits alone from there on, and of others, too.
    const PLAIN: [&str; 7] = ["AKIA", "ghp_", "gho_", "ghs_", "ghu_", "hf_", "npm_"];
    const OTHER: [&str; 6] = ["github_pat_", "glpat-", "pypi-", "sk-", "xoxb-", "xoxp-"];
    const SHORTEST: usize = 20;
    let text = value.trim();
    let is_token = text.len() >= SHORTEST
        && text.bytes().all(|byte| byte.is_ascii_graphic())
        && (OTHER.iter().any(|beginning| text.starts_with(beginning))
            || PLAIN.iter().any(|beginning| {
                let rest = text.strip_prefix(beginning);
                rest.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_alphanumeric()))
            })
            || (text.starts_with("eyJ") && text.matches('.').count() == 2));
    let lower = text.to_ascii_lowercase();
    is_token
        || ["bearer ", "basic "]
            .iter()
            .any(|scheme| lower.starts_with(scheme))
        || (text.contains("-----BEGIN") && text.contains("PRIVATE KEY"))
        || has_address_with_password(text)
        || has_secret_parameter(&lower)
}

/// `https://user:password@host`, and `https://token@host`.
fn has_address_with_password(text: &str) -> bool {
    let is_end = |found: char| {
        found.is_whitespace() || matches!(found, '/' | '?' | '#' | '"' | '\'' | '<' | '>' | '|')
    };
    text.match_indices("://").any(|(at, _)| {
        let authority = text[at + 3..].split(is_end).next().unwrap_or_default();
        let Some((user, _)) = authority.rsplit_once('@') else {
            return false;
        };
        let is_web = text[..at].to_ascii_lowercase().ends_with("http")
            || text[..at].to_ascii_lowercase().ends_with("https");
        match user.split_once(':') {
            Some((_, password)) => !password.is_empty(),
            None => is_web && !user.is_empty(),
        }
    })
}

/// `?password=…`, `;AccountKey=…`, `host=… password=…`. `lower` is in lower case.
fn has_secret_parameter(lower: &str) -> bool {
    const NAMES: [&str; 18] = [
        "access_token",
        "accesskey",
        "accountkey",
        "api_key",
        "apikey",
        "auth_token",
        "authtoken",
        "client_secret",
        "passwd",
        "password",
        "pwd",
        "secret",
        "sharedaccesskey",
        "sharedaccesssignature",
        "sig",
        "token",
        "x-amz-signature",
        "x-goog-signature",
    ];
    let parts = lower.split(|found: char| found.is_whitespace() || "?&;".contains(found));
    parts
        .filter_map(|part| part.split_once('='))
        .any(|(name, value)| {
            // A shell's own variable names a secret without being one.
            NAMES.contains(&name.trim()) && !value.is_empty() && !value.starts_with(['$', '"'])
        })
}

/// Is the value of a variable of this name not shown? It may be a secret.
pub fn may_hold_a_secret(name: &str) -> bool {
    const ANYWHERE: [&str; 7] = [
        "KEY",
        "PASS",
        "AUTH",
        "PRIVATE",
        "COOKIE",
        "PWD",
        "SIGNATURE",
    ];
    let upper = name.to_uppercase();
    holds_a_secret(name) || ANYWHERE.iter().any(|part| upper.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECRETS: [&str; 12] = [
        "GITHUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_PROFILE",
        "OPENAI_API_KEY",
        "DB_PASSWORD",
        "DB_PWD",
        "SENTRY_DSN",
        "REGISTRY_PAT",
        "npm_config__authToken",
        "MYSQL_PWD",
        "PGPASSWORD",
        "DATABASE_URL",
    ];

    #[test]
    fn withholds_names_that_hold_secrets() {
        let more = [
            "JWT",
            "SESSION_JWT",
            "BEARER",
            "GITHUB_BEARER",
            "COOKIE",
            "SESSION_COOKIE",
            "MONGO_URI",
            "SENTRY_DSN",
            "STORAGE_CONNECTION_STRING",
            "AzureWebJobsStorageConnectionString",
            "KEY_PASSPHRASE",
            "NPM_CONFIG__AUTH",
            "HTTP_AUTHORIZATION",
            "SLACK_WEBHOOK_URL",
            "DIRENV_DIFF",
            "SSHPASS",
        ];
        for name in SECRETS.into_iter().chain(more) {
            assert!(holds_a_secret(name) && may_hold_a_secret(name), "{name}");
        }
    }

    #[test]
    fn what_only_looks_like_a_secret_is_not_shown() {
        for name in ["KEY", "MYKEY", "DBPASS", "AUTH_HEADER", "COOKIE", "DSN"] {
            assert!(may_hold_a_secret(name), "{name}");
        }
    }

    #[test]
    fn what_programs_need_is_not_withheld() {
        let needed = [
            "PWD",
            "OLDPWD",
            "OLD_PWD",
            "KEYBOARD",
            "KEYMAP",
            "COMPASS",
            "AUTHOR",
            "GIT_AUTHOR_NAME",
            "TOKENIZERS_PARALLELISM",
            "COOKIECUTTER_CONFIG",
            "CURL_CA_BUNDLE",
            "HOMEPAGE_URL",
            "SSH_CONNECTION",
        ];
        for name in needed {
            assert!(!holds_a_secret(name), "{name}");
        }
        assert!(!is_secret("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "32000"));
        assert!(is_secret("API_TOKENS", "32000,abc"));
    }

    #[test]
    fn values_reveal_secrets_under_any_name() {
        let secrets = [
            "postgres://ada:lovelace@db/app",
            "http://ada:love@lace@proxy:3128/",
            "https://ghp_token@github.com/ada/app",
            "see redis://:password@cache:6379/0",
            "jdbc:postgresql://db/app?user=ada&password=lovelace",
            "Server=db;User Id=ada;Password=lovelace;",
            "host=db user=ada password=lovelace",
            "https://store.example/blob?sv=1&sig=abc%3D",
            "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=abc==",
            "Bearer abc",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nabc",
            "ghp_0123456789abcdef0123456789abcdef0123",
            "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.abc",
        ];
        for value in secrets {
            assert!(reveals_a_secret(value), "{value}");
            assert!(
                is_secret("NAME", value) && is_redacted("NAME", value),
                "{value}"
            );
        }
    }

    #[test]
    fn ordinary_values_reveal_nothing() {
        let ordinary = [
            "",
            "https://example.com/path?page=2#top",
            "http://localhost:3000",
            "postgres://ada@db/app",
            "ssh://git@github.com/ada/app",
            "git@github.com:ada/app",
            "/usr/bin:/bin",
            "di=01;34:ln=01;36",
            "() {  local token=$1\n}",
            "sk-short",
            "npm_config_cache_of_the_machine",
            "2026-01-01T00:00:00Z",
        ];
        for value in ordinary {
            assert!(!reveals_a_secret(value), "{value}");
        }
    }

    #[test]
    fn ordinary_values_are_shown() {
        for name in ["PATH", "HOME", "LANG", "STAGE", "GREETING", "DEBUG"] {
            assert!(!may_hold_a_secret(name), "{name}");
        }
    }

    proptest! {
        #[test]
        fn what_is_withheld_is_never_shown(name in "[A-Z_]{0,12}(TOKEN|_PWD|_DSN|_PAT|_CREDS)?") {
            prop_assert!(!holds_a_secret(&name) || may_hold_a_secret(&name));
        }
    }
}
