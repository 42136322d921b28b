//! What sessions are made from.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use sandbox_model::template::{SecurityContext, TemplateError};
use sandbox_model::{Resources, RuntimeKind, Template, TemplateId};
use sandbox_store::StoreError;
use sandbox_store::records::{Page, PageRequest, TemplateFilter};
use serde_json::json;

use crate::caller::Caller;
use crate::control::Control;
use crate::error::{ControlError, Kind};
use crate::session::{Asked, image_named};

/// How long a template that was looked up is believed.
const FRESH: Duration = Duration::from_secs(60);

/// Templates that were looked up a moment ago.
#[derive(Debug, Default)]
pub(crate) struct Templates {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    templates: HashMap<TemplateId, (Template, Instant)>,
    /// How often something was forgotten. What was read before that may be what was to be forgotten.
    generation: u64,
}

/// A new template.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the template's field of the same name")]
pub struct TemplateParts {
    pub id: TemplateId,
    pub name: String,
    pub image: String,
    pub base_image: Option<String>,
    pub runtime: RuntimeKind,
    pub default_resources: Resources,
    pub pre_installed_packages: Vec<String>,
    pub security_context: SecurityContext,
    pub is_active: bool,
}

/// What of a template is changed; the rest stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the template's field of the same name")]
pub struct Patch {
    pub name: Option<String>,
    pub image: Option<String>,
    pub default_resources: Asked,
    pub pre_installed_packages: Option<Vec<String>>,
    pub security_context: Option<SecurityContext>,
    pub is_active: Option<bool>,
}

impl Control {
    /// Adds a template.
    pub async fn create_template(
        &self,
        caller: &Caller,
        parts: TemplateParts,
    ) -> Result<Template, ControlError> {
        let now = Timestamp::now();
        let template = Template {
            id: parts.id,
            name: parts.name,
            image: parts.image,
            base_image: parts.base_image,
            runtime: parts.runtime,
            default_resources: parts.default_resources,
            pre_installed_packages: parts.pre_installed_packages,
            security_context: parts.security_context,
            is_active: parts.is_active,
            created_at: now,
            updated_at: now,
        };
        template.check()?;
        self.check_image(&template)?;
        let stored = self.shared.records.insert_template(&template).await?;
        self.shared.templates.forget(&template.id);
        let id = template.id.as_str();
        self.audit(
            caller,
            "template.create",
            id,
            json!({ "image": template.image }),
        )
        .await;
        Ok(stored.value)
    }

    /// The template of that name.
    pub async fn template(&self, id: &TemplateId) -> Result<Template, ControlError> {
        if let Some(template) = self.shared.templates.get(id) {
            return Ok(template);
        }
        let generation = self.shared.templates.generation();
        let found = self.shared.records.template(id).await?;
        let found = found.ok_or_else(|| ControlError::not_found(Kind::Template, id))?;
        let template = found.value;
        self.shared.templates.put(template.clone(), generation);
        Ok(template)
    }

    /// Templates, newest first.
    pub async fn templates(
        &self,
        filter: TemplateFilter,
        page: &PageRequest,
    ) -> Result<Page<Template>, ControlError> {
        let page = self.shared.records.templates(filter, page).await?;
        Ok(Page {
            items: page.items.into_iter().map(|stored| stored.value).collect(),
            total: page.total,
            next: page.next,
        })
    }

    /// Changes a template. Sessions that were made from it stay as they are.
    pub async fn update_template(
        &self,
        caller: &Caller,
        id: &TemplateId,
        patch: Patch,
    ) -> Result<Template, ControlError> {
        loop {
            let found = self.shared.records.template(id).await?;
            let found = found.ok_or_else(|| ControlError::not_found(Kind::Template, id))?;
            let new = patch.clone().apply(&found.value);
            new.check()?;
            // One that only becomes inactive may have lost its image.
            if patch.image.is_some() {
                self.check_image(&new)?;
            }
            match self.shared.records.update_template(&found, &new).await {
                Ok(stored) => {
                    self.shared.templates.forget(id);
                    self.shared.pool.look_again();
                    self.audit(caller, "template.update", id.as_str(), json!({}))
                        .await;
                    return Ok(stored.value);
                }
                Err(StoreError::Stale { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Checks that sessions can have a template's image, where this server hosts them.
    fn check_image(&self, template: &Template) -> Result<(), ControlError> {
        let (image, runtime) = (&template.image, self.shared.live.runtime());
        if template.runtime != runtime.kind() {
            return Ok(());
        }
        let refused =
            |problem: String, solution: &str| ControlError::invalid("image", problem, solution);
        let found = image_named(image).ok_or_else(|| {
            let problem =
                format!("'{image}' is an image reference, and the local runtime has no registry");
            refused(
                problem,
                "use `host`, or unpack the image and name its directory",
            )
        })?;
        let solution = "use `host`, or the absolute path of a directory with an unpacked root";
        let checked = runtime.check_image(&found);
        checked.map_err(|problem| refused(problem, solution))
    }

    /// Deletes a template that no live session uses.
    pub async fn delete_template(
        &self,
        caller: &Caller,
        id: &TemplateId,
    ) -> Result<(), ControlError> {
        self.shared.records.delete_template(id).await?;
        self.shared.templates.forget(id);
        self.audit(caller, "template.delete", id.as_str(), json!({}))
            .await;
        Ok(())
    }

    /// Adds the templates that every server has, where they are not there. Gives those it added.
    pub async fn seed_templates(&self) -> Result<Vec<TemplateId>, ControlError> {
        let mut added = Vec::new();
        for seed in Template::seeds(Timestamp::now()) {
            match self.shared.records.insert_template(&seed).await {
                Ok(_) => added.push(seed.id),
                Err(StoreError::Exists { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(added)
    }
}

impl Patch {
    fn apply(self, template: &Template) -> Template {
        let old = template.clone();
        Template {
            name: self.name.unwrap_or(old.name),
            image: self.image.unwrap_or(old.image),
            default_resources: self.default_resources.over(&old.default_resources),
            pre_installed_packages: self
                .pre_installed_packages
                .unwrap_or(old.pre_installed_packages),
            security_context: self.security_context.unwrap_or(old.security_context),
            is_active: self.is_active.unwrap_or(old.is_active),
            updated_at: Timestamp::now(),
            ..old
        }
    }
}

impl Templates {
    fn get(&self, id: &TemplateId) -> Option<Template> {
        let known = self.lock();
        let (template, since) = known.templates.get(id)?;
        (since.elapsed() < FRESH).then(|| template.clone())
    }

    fn generation(&self) -> u64 {
        self.lock().generation
    }

    /// Remembers a template that was read in `generation`, unless something was forgotten since.
    fn put(&self, template: Template, generation: u64) {
        let mut known = self.lock();
        if known.generation == generation {
            let id = template.id.clone();
            known.templates.insert(id, (template, Instant::now()));
        }
    }

    fn forget(&self, id: &TemplateId) {
        let mut known = self.lock();
        known.templates.remove(id);
        known.generation += 1;
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // Nothing that is done under it can panic half-way.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<TemplateError> for ControlError {
    fn from(error: TemplateError) -> ControlError {
        let field = match &error {
            TemplateError::Name => "name",
            TemplateError::Image(_) => "image",
            TemplateError::Package(_) | TemplateError::Packages => "pre_installed_packages",
            TemplateError::User(_) | TemplateError::Privileged => "security_context",
            TemplateError::Resources(_) => "default_resources",
        };
        ControlError::invalid(field, error, "correct it and send the template again")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_before_a_change_is_not_believed_after_it() {
        let templates = Templates::default();
        let [old, ..] = Template::seeds(Timestamp::UNIX_EPOCH);
        let before = templates.generation();
        // Somebody changes it while it is being read.
        templates.forget(&old.id);
        templates.put(old.clone(), before);
        assert_eq!(templates.get(&old.id), None);
        templates.put(old.clone(), templates.generation());
        assert_eq!(templates.get(&old.id), Some(old));
    }
}
