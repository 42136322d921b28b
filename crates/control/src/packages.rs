//! Whether what a template promises is there.
//!
//! A template names packages that its sessions find installed. On the local runtime nobody installs them,
//! so they are looked for, from within a session: as a Python distribution, as a Node.js module, or as a
//! program. An image need not have Python, or anything else: what is there looks for what it knows of. What was found
//! is believed for a while.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use sandbox_executor::{Ending, Happening, Outcome, Request};
use sandbox_model::{Language, Session, Template, TemplateId};
use sandbox_runtime::LineError;
use serde_json::json;

use crate::control::Control;
use crate::error::ControlError;
use crate::execution::new_id;
use crate::live::{Use, workspace_of};

/// How long packages that were found are believed to be there.
const BELIEVED: Duration = Duration::from_secs(60);

/// Who can look, the most knowing first.
const LOOKERS: [Looker; 3] = [
    Looker {
        language: Language::Python,
        interpreter: "python3",
        code: include_str!("packages.py"),
    },
    Looker {
        language: Language::Javascript,
        interpreter: "node",
        code: include_str!("packages.js"),
    },
    Looker {
        language: Language::Shell,
        interpreter: "bash",
        code: include_str!("packages.sh"),
    },
];

/// Code that tells which of the event's packages are missing.
struct Looker {
    language: Language,
    interpreter: &'static str,
    code: &'static str,
}

/// Templates whose packages were found, as they were then.
#[derive(Debug, Default)]
pub(crate) struct Packages {
    found: Mutex<HashMap<TemplateId, (Timestamp, Instant)>>,
}

impl Control {
    /// Looks for the packages of a template, in a session that is made for it and not yet anybody's.
    pub(crate) async fn check_packages(
        &self,
        session: &Session,
        template: &Template,
    ) -> Result<(), ControlError> {
        if template.pre_installed_packages.is_empty() || self.shared.packages.knows(template) {
            return Ok(());
        }
        let used = self.line(session).await?;
        let Some(problem) = self.look(&used, template).await? else {
            self.shared.packages.remember(template);
            return Ok(());
        };
        drop(used);
        let workspace = workspace_of(session);
        match workspace == session.id {
            true => self.shared.live.discard(&workspace).await?,
            // What its agent's sessions before it wrote stays.
            false => self.shared.live.end_of(session).await?,
        }
        Err(ControlError::invalid(
            "template_id",
            problem,
            "install them on the server's machine, or choose another template",
        ))
    }

    /// Says what is wrong with the packages of a template, if anything is.
    async fn look(&self, used: &Use, template: &Template) -> Result<Option<String>, ControlError> {
        let (id, packages) = (&template.id, &template.pre_installed_packages);
        let mut lacks = Vec::new();
        for looker in LOOKERS {
            let outcome = self.look_by(&looker, used, packages).await?;
            if looker.is_absent(&outcome) {
                lacks.push(looker.interpreter);
                continue;
            }
            return Ok(match looker.missing(&outcome) {
                Some(missing) if missing.is_empty() => None,
                Some(missing) => Some(format!(
                    "template {id} needs packages that this host does not have: {}{}",
                    missing.join(", "),
                    without(&lacks)
                )),
                None => Some(unlooked(template, &lacks)),
            });
        }
        Ok(Some(unlooked(template, &lacks)))
    }

    async fn look_by(
        &self,
        looker: &Looker,
        used: &Use,
        packages: &[String],
    ) -> Result<Outcome, ControlError> {
        let request = Request {
            execution_id: new_id(),
            code: looker.code.to_owned(),
            language: looker.language,
            event: json!(packages),
            timeout_seconds: 30,
            stream: false,
        };
        let mut course = self.heard(used, used.line.begin(request)).await?;
        loop {
            let next = async { course.next().await.unwrap_or(Err(LineError::Cut)) };
            if let Happening::Outcome(outcome) = self.heard(used, next).await? {
                return Ok(*outcome);
            }
        }
    }
}

impl Looker {
    /// Could it not even be started?
    fn is_absent(&self, outcome: &Outcome) -> bool {
        let refusal = format!("cannot run '{}'", self.interpreter);
        outcome.ending == Ending::Crashed && outcome.error.as_deref() == Some(&*refusal)
    }

    /// What it says is missing, if it says anything.
    fn missing(&self, outcome: &Outcome) -> Option<Vec<String>> {
        let result = &outcome.result;
        match self.language {
            Language::Shell if outcome.ending == Ending::Finished && result.exit_code == 0 => {
                Some(result.stdout.lines().map(str::to_owned).collect())
            }
            Language::Shell => None,
            _ => serde_json::from_str(result.return_value.as_deref()?).ok(),
        }
    }
}

/// What is told when nobody could look.
fn unlooked(template: &Template, lacks: &[&str]) -> String {
    let packages = template.pre_installed_packages.join(", ");
    let without = without(lacks);
    format!(
        "cannot look for the packages of template {}: {packages}{without}",
        template.id
    )
}

/// What an image lacks that would have known of more.
fn without(lacks: &[&str]) -> String {
    match lacks {
        [] => String::new(),
        lacks => format!("; there is no {} in its image", lacks.join(" and no ")),
    }
}

impl Packages {
    fn knows(&self, template: &Template) -> bool {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let known = found.get(&template.id);
        known.is_some_and(|(version, since)| {
            *version == template.updated_at && since.elapsed() < BELIEVED
        })
    }

    fn remember(&self, template: &Template) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.insert(template.id.clone(), (template.updated_at, Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::process::Command;

    use super::*;
    use crate::caller::Caller;
    use crate::stage::{Stage, new};

    fn looker(language: Language) -> Looker {
        let mut lookers = LOOKERS.into_iter();
        let found = lookers.find(|looker| looker.language == language);
        found.expect("one for each language")
    }

    /// A directory with a program in it, a file that is none, and a module beside them.
    fn image() -> tempfile::TempDir {
        let image = tempfile::tempdir().unwrap();
        let write = |name: &str, mode| {
            let file = image.path().join(name);
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(file, PermissionsExt::from_mode(mode)).unwrap();
        };
        write("program", 0o755);
        write("text", 0o644);
        let module = image.path().join("node_modules/@some/module");
        std::fs::create_dir_all(&module).unwrap();
        std::fs::write(module.join("package.json"), r#"{ "version": "1.2.3" }"#).unwrap();
        std::fs::create_dir_all(image.path().join("a")).unwrap();
        std::fs::copy(image.path().join("program"), image.path().join("a/path")).unwrap();
        image
    }

    const PACKAGES: [&str; 8] = [
        "program",
        "program==1",
        "text",
        "a/path",
        "a",
        "cd",
        "@some/module==1.2.3",
        "@some/module==2",
    ];

    fn said(mut command: Command, image: &Path) -> String {
        let output = command.current_dir(image).env("PATH", image).output();
        let output = output.expect("an interpreter");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn a_shell_finds_programs_and_names_the_rest() {
        let image = image();
        let looker = looker(Language::Shell);
        let mut bash = Command::new("/bin/bash");
        bash.args(["-c", looker.code]);
        bash.env("EVENT_JSON", json!(PACKAGES).to_string());
        let mut outcome = Outcome::lost(new_id(), String::new());
        outcome.ending = Ending::Finished;
        outcome.result.exit_code = 0;
        outcome.result.stdout = said(bash, image.path());
        assert_eq!(looker.missing(&outcome).unwrap(), PACKAGES[1..]);
    }

    #[test]
    fn node_finds_modules_as_well() {
        let image = image();
        let code = looker(Language::Javascript).code;
        let ask = format!(
            "console.log(JSON.stringify(exports.handler({})))",
            json!(PACKAGES)
        );
        let mut node = Command::new("/usr/bin/node");
        node.args(["-e", &format!("{code}\n{ask}")]);
        let missing: Vec<String> = serde_json::from_str(&said(node, image.path())).unwrap();
        let known = ["program", "@some/module==1.2.3"];
        let rest = PACKAGES.into_iter().filter(|name| !known.contains(name));
        assert_eq!(missing, rest.collect::<Vec<_>>());
    }

    #[test]
    fn who_is_not_in_the_image_is_known_from_who_did_not_get_on() {
        let python = looker(Language::Python);
        let lost = |reason: &str| Outcome::lost(new_id(), reason.to_owned());
        assert!(python.is_absent(&lost("cannot run 'python3'")));
        assert!(!python.is_absent(&lost("it was killed from outside")));
    }

    #[tokio::test]
    async fn packages_that_nobody_could_look_for_are_named() {
        let stage = Stage::still().await;
        let mut new = new(None);
        new.template_id = "python-datascience".parse().unwrap();
        let refused = stage.control.create_session(&Caller::nobody(), new).await;
        let refused = refused.unwrap_err().to_string();
        let [_, science, _] = Template::seeds(Timestamp::UNIX_EPOCH);
        assert!(!science.pre_installed_packages.is_empty());
        for package in &science.pre_installed_packages {
            assert!(refused.contains(package), "{refused}");
        }
    }

    #[test]
    fn what_the_image_lacks_is_said() {
        let [_, mut science, _] = Template::seeds(Timestamp::UNIX_EPOCH);
        science.pre_installed_packages = vec!["numpy".to_owned(), "jq".to_owned()];
        assert_eq!(
            unlooked(&science, &["python3", "node", "bash"]),
            "cannot look for the packages of template python-datascience: numpy, jq; there is no python3 and no node \
             and no bash in its image"
        );
    }
}
