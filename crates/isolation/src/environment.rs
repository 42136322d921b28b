//! Which of the caller's variables reach the sandbox.

use std::ffi::{OsStr, OsString};

use sandbox_model::Settings;
use sandbox_model::secrecy::{is_secret, reveals_a_secret};

/// The environment inside: `caller`'s, less secrets and sockets, plus what `settings` and `ours`
/// (`SANDBOX_NAME` and its like) set. Pure.
pub fn inside(
    caller: impl IntoIterator<Item = (OsString, OsString)>,
    settings: &Settings,
    ours: &[(&str, OsString)],
) -> Vec<(OsString, OsString)> {
    let mut inside: Vec<(OsString, OsString)> = caller.into_iter().collect();
    let steers_git_to_secrets = steers_git_to_secrets(&inside);
    inside.retain(|(name, value)| match settings.clean_env {
        true => is_essential(name),
        false => {
            let is_withheld = is_secret(&name.to_string_lossy(), &value.to_string_lossy())
                || leads_to_a_socket(name)
                || (steers_git_to_secrets && steers_git(name));
            !is_withheld
        }
    });
    let mut set = |name: OsString, value: OsString| {
        inside.retain(|(existing, _)| *existing != name);
        inside.push((name, value));
    };
    for (name, value) in ours {
        set((*name).into(), value.clone());
    }
    for variable in &settings.env {
        set((&variable.name).into(), (&variable.value).into());
    }
    inside
}

/// Does the variable set git's configuration? Git wants all of them or none.
fn steers_git(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    ["GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS"].contains(&name.as_ref())
        || name.starts_with("GIT_CONFIG_KEY_")
        || name.starts_with("GIT_CONFIG_VALUE_")
}

/// Is there a header or a helper with credentials in it?
fn steers_git_to_secrets(variables: &[(OsString, OsString)]) -> bool {
    let mut steering = variables.iter().filter(|(name, _)| steers_git(name));
    steering.any(|(_, value)| {
        let value = value.to_string_lossy();
        let lower = value.to_lowercase();
        let words = ["extraheader", "credential.", "authorization"];
        reveals_a_secret(&value) || words.iter().any(|word| lower.contains(word))
    })
}

/// What is left of the caller's environment with `--clean-env`.
fn is_essential(name: &OsStr) -> bool {
    const ESSENTIAL: [&str; 11] = [
        "COLORTERM",
        "HOME",
        "LANG",
        "LANGUAGE",
        "LOGNAME",
        "NO_COLOR",
        "PATH",
        "SHELL",
        "TERM",
        "TZ",
        "USER",
    ];
    let name = name.to_string_lossy();
    ESSENTIAL.contains(&name.as_ref()) || name.starts_with("LC_")
}

/// Names of doors out of the sandbox: agents, buses, displays, daemons.
fn leads_to_a_socket(name: &OsStr) -> bool {
    const EXACT: [&str; 25] = [
        "ALACRITTY_SOCKET",
        "AT_SPI_BUS_ADDRESS",
        "CONTAINER_HOST",
        "DISPLAY",
        "DOCKER_HOST",
        "GNOME_KEYRING_CONTROL",
        "GPG_AGENT_INFO",
        "I3SOCK",
        "ICEAUTHORITY",
        "INVOCATION_ID",
        "JOURNAL_STREAM",
        "KITTY_LISTEN_ON",
        "LISTEN_FDS",
        "LISTEN_PID",
        "NOTIFY_SOCKET",
        "NVIM_LISTEN_ADDRESS",
        "PULSE_SERVER",
        "SESSION_MANAGER",
        "SSH_AGENT_PID",
        "SSH_AUTH_SOCK",
        "STY",
        "SWAYSOCK",
        "TMUX",
        "XAUTHORITY",
        "XDG_RUNTIME_DIR",
    ];
    const STARTS: [&str; 7] = [
        "DBUS_",
        "PIPEWIRE_",
        "VSCODE_",
        "WAYLAND_",
        "WEZTERM_",
        "ZELLIJ",
        "HYPRLAND_",
    ];
    let name = name.to_string_lossy();
    EXACT.contains(&name.as_ref())
        || STARTS.iter().any(|start| name.starts_with(start))
        || name.ends_with("_SOCK")
        || name.ends_with("_SOCKET")
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandbox_model::EnvVar;

    fn names(caller: &[&str], settings: &Settings) -> Vec<String> {
        let caller = caller
            .iter()
            .map(|name| (OsString::from(name), OsString::from("value")));
        let inside = inside(caller, settings, &[]);
        inside
            .into_iter()
            .map(|(name, _)| name.into_string().unwrap())
            .collect()
    }

    #[test]
    fn secrets_and_sockets_stay_outside() {
        let withheld = [
            "GITHUB_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_PROFILE",
            "OPENAI_API_KEY",
            "DB_PASSWORD",
            "npm_config__authToken",
            "SSH_AUTH_SOCK",
            "DBUS_SESSION_BUS_ADDRESS",
            "DOCKER_HOST",
            "DISPLAY",
            "WAYLAND_DISPLAY",
            "XDG_RUNTIME_DIR",
            "MYSQL_PWD",
            "TMUX",
            "PGPASSWORD",
        ];
        assert_eq!(names(&withheld, &Settings::default()), Vec::<String>::new());
    }

    #[test]
    fn ordinary_variables_pass() {
        let passing = [
            "PATH",
            "HOME",
            "LANG",
            "TERM",
            "EDITOR",
            "CARGO_HOME",
            "PWD",
            "OLDPWD",
            "KEYBOARD",
            "MANPATH",
            "XDG_CONFIG_HOME",
            "GOPATH",
            "MONKEY",
            "COMPASS",
            "AUTHOR",
            "SHELL",
        ];
        assert_eq!(names(&passing, &Settings::default()), passing);
    }

    #[test]
    fn values_with_passwords_stay_outside() {
        let caller = [
            ("HTTPS_PROXY", "http://ada:lovelace@proxy:3128"),
            ("HTTP_PROXY", "http://proxy:3128"),
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "http.extraHeader"),
            ("GIT_CONFIG_VALUE_0", "X-Gate: open"),
        ];
        let owned = |(name, value): (&str, &str)| (name.into(), value.into());
        let names = |caller: &[(&str, &str)]| -> Vec<OsString> {
            let inside = inside(caller.iter().copied().map(owned), &Settings::default(), &[]);
            inside.into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names(&caller), ["HTTP_PROXY"]);
        let harmless = [
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "safe.directory"),
            ("GIT_CONFIG_VALUE_0", "*"),
        ];
        assert_eq!(names(&harmless).len(), 3);
    }

    #[test]
    fn a_clean_environment_has_the_essentials_only() {
        let settings = Settings {
            clean_env: true,
            ..Settings::default()
        };
        let inside = names(
            &["PATH", "HOME", "LC_ALL", "CARGO_HOME", "EDITOR"],
            &settings,
        );
        assert_eq!(inside, ["PATH", "HOME", "LC_ALL"]);
    }

    #[test]
    fn what_the_user_sets_wins_even_over_ours_and_over_secrecy() {
        let variable = |name: &str| EnvVar {
            name: name.to_owned(),
            value: "mine".to_owned(),
        };
        let settings = Settings {
            env: vec![variable("API_TOKEN"), variable("PATH")],
            ..Settings::default()
        };
        let caller = [("API_TOKEN", "theirs"), ("PATH", "/bin")];
        let caller = caller.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let inside = inside(caller, &settings, &[("IN_SANDBOX", "1".into())]);
        let expected = [("IN_SANDBOX", "1"), ("API_TOKEN", "mine"), ("PATH", "mine")];
        let expected = expected.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        assert_eq!(inside, expected);
    }
}
