//! Runs one command in a throwaway overlay sandbox of a directory: for trying and timing a launch
//! without the command line. `launch STATE SOURCE [--net] [--tty] -- COMMAND…`

use std::os::fd::AsFd;
use std::path::PathBuf;

use sandbox_isolation::{
    Home, Identity, LaunchError, Policy, Root, Runs, Status, Terminal, environment, launch,
};
use sandbox_model::{Failure, Network, OverlayXattr, Settings, WorkspaceMount};

fn main() -> std::process::ExitCode {
    let mut words = std::env::args_os().skip(1);
    let (Some(state), Some(source)) = (words.next(), words.next()) else {
        return std::process::ExitCode::from(64);
    };
    let (state, source) = (PathBuf::from(state), PathBuf::from(source));
    let mut settings = Settings::default();
    for word in words.by_ref() {
        match word.to_str() {
            Some("--net") => {
                settings.network = Network::Isolated {
                    ports: vec![],
                    hosts: vec![],
                    publish: vec![],
                };
            }
            Some("--") => break,
            _ => return std::process::ExitCode::from(64),
        }
    }
    for directory in ["upper", "workdir", "home", "runs"] {
        let _ = std::fs::create_dir_all(state.join(directory));
    }
    let root = rustix::process::geteuid().is_root();
    let policy = Policy {
        name: "example".parse().expect("a valid name"),
        workspace: WorkspaceMount::Overlay {
            lower: source.clone(),
            upper: state.join("upper"),
            work: state.join("workdir"),
            xattr: if root {
                OverlayXattr::Trusted
            } else {
                OverlayXattr::User
            },
        },
        cwd: std::env::current_dir().unwrap_or_else(|_| source.clone()),
        source,
        home: std::env::home_dir().map(|path| Home {
            paths: vec![path],
            layer: state.join("home"),
            credentials: Vec::new(),
        }),
        hide: vec![state.clone()],
        env: environment::inside(std::env::vars_os(), &settings, &[]),
        settings,
        command: words.collect(),
        terminal: Terminal::Inherit,
        layer: state.join("upper"),
        root: Root::Host,
        identity: Identity::Own,
    };
    let lock = std::fs::File::open(&state).expect("the state directory");
    let outcome = launch(&policy, &Runs::open(&state.join("runs")), lock.as_fd());
    let ended = match outcome.map(sandbox_isolation::Run::wait) {
        Ok(Ok(ended)) => ended,
        Ok(Err(error)) => return complain(&error.to_string(), None, 1),
        Err(error) => return explain(&error),
    };
    match ended.status {
        Status::Exited(code) => std::process::ExitCode::from(code as u8),
        Status::Signalled(signal) => std::process::ExitCode::from(128 + signal as u8),
    }
}

fn explain(error: &LaunchError) -> std::process::ExitCode {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    complain(
        &format!("{error}{}", cause.unwrap_or_default()),
        error.hint(),
        error.class().exit_status(),
    )
}

#[allow(clippy::print_stderr)]
fn complain(text: &str, hint: Option<String>, status: u8) -> std::process::ExitCode {
    eprintln!("error: {text}");
    if let Some(hint) = hint {
        eprintln!("hint: {hint}");
    }
    std::process::ExitCode::from(status)
}
