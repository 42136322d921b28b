//! Whether what a template promises is there.
//!
//! A template names packages that its sessions find installed. On the local runtime nobody installs them,
//! so they are looked for, from within a session: as a Python distribution, as a Node.js module, or as a
//! program. What was found is believed for a while.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use sandbox_executor::{Happening, Request};
use sandbox_model::{Language, Session, Template, TemplateId};
use sandbox_runtime::LineError;
use serde_json::json;

use crate::control::Control;
use crate::error::ControlError;
use crate::execution::new_id;
use crate::live::workspace_of;

/// How long packages that were found are believed to be there.
const BELIEVED: Duration = Duration::from_secs(60);

/// Gives back which of the event's packages are missing.
const LOOK: &str = include_str!("packages.py");

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
        let request = Request {
            execution_id: new_id(),
            code: LOOK.to_owned(),
            language: Language::Python,
            event: json!(template.pre_installed_packages),
            timeout_seconds: 30,
            stream: false,
        };
        let mut course = self.heard(&used, used.line.begin(request)).await?;
        let outcome = loop {
            let next = async { course.next().await.unwrap_or(Err(LineError::Cut)) };
            if let Happening::Outcome(outcome) = self.heard(&used, next).await? {
                break outcome;
            }
        };
        drop(used);
        let missing = outcome
            .result
            .return_value
            .as_deref()
            .map(serde_json::from_str::<Vec<String>>);
        let problem = match missing {
            Some(Ok(missing)) if missing.is_empty() => {
                self.shared.packages.remember(template);
                return Ok(());
            }
            Some(Ok(missing)) => format!(
                "template {} needs packages that this host does not have: {}",
                template.id,
                missing.join(", ")
            ),
            _ => format!("cannot look for the packages of template {}", template.id),
        };
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
