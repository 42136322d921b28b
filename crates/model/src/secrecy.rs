//! Which variables of an environment hold secrets, by their names.
//!
//! There are two answers, because an error costs two different things. A program may not work without a variable
//! that is withheld from it, so only names that are used for secrets are. A value that is not shown is missed by
//! nobody, so every name that could be one counts. What is withheld is never shown.

/// Is a variable of this name withheld from whoever was not given it? It usually holds a secret.
pub fn holds_a_secret(name: &str) -> bool {
    const ANYWHERE: [&str; 9] = [
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "CREDENTIAL",
        "APIKEY",
        "PRIVATE_KEY",
        "ACCESS_KEY",
    ];
    const ENDS: [&str; 8] = [
        "_KEY", "_PASS", "_PAT", "_PWD", "_AUTH", "_DSN", "_COOKIE", "_CREDS",
    ];
    const STARTS: [&str; 8] = [
        "AWS_",
        "AZURE_",
        "DIGITALOCEAN_",
        "DOCKER_AUTH",
        "KUBE",
        "VAULT_",
        "OP_SESSION",
        "BW_",
    ];
    const EXACT: [&str; 9] = [
        "DATABASE_URL",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "MONGODB_URI",
        "MYSQL_PWD",
        "NETRC",
        "PGPASSFILE",
        "REDIS_URL",
        "SSH_ASKPASS",
        "GIT_ASKPASS",
    ];
    let name = name.to_uppercase();
    EXACT.contains(&name.as_str())
        || ANYWHERE.iter().any(|part| name.contains(part))
        || STARTS.iter().any(|start| name.starts_with(start))
        || (ENDS.iter().any(|end| name.ends_with(end)) && name != "OLD_PWD")
}

/// Is the value of a variable of this name not shown? It may be a secret.
pub fn may_hold_a_secret(name: &str) -> bool {
    const ANYWHERE: [&str; 6] = ["KEY", "PASS", "AUTH", "PRIVATE", "COOKIE", "PWD"];
    const EXACT: [&str; 3] = ["PAT", "DSN", "CREDS"];
    let upper = name.to_uppercase();
    holds_a_secret(name)
        || ANYWHERE.iter().any(|part| upper.contains(part))
        || EXACT.contains(&upper.as_str())
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
    fn what_is_used_for_secrets_is_withheld_and_not_shown() {
        for name in SECRETS {
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
        for name in ["PWD", "OLDPWD", "OLD_PWD", "KEYBOARD", "COMPASS", "AUTHOR"] {
            assert!(!holds_a_secret(name), "{name}");
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
