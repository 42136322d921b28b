//! A template, as the API tells it and people read it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ages;
use crate::command::resources::Resources;
use crate::report::plain;

/// What is shown of a template.
#[derive(Debug, Deserialize)]
pub(super) struct Template {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) image: String,
    base_image: Option<String>,
    pub(super) runtime_type: String,
    pub(super) default_resources: Resources,
    pre_installed_packages: Vec<String>,
    security_context: SecurityContext,
    pub(super) is_active: bool,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// As whom code runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SecurityContext {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) user: Option<String>,
    pub(super) privileged: bool,
}

impl Template {
    /// Labels with their lines.
    pub(super) fn fields(&self) -> Vec<(&'static str, Vec<String>)> {
        let now = Timestamp::now();
        let past = |at: Timestamp| format!("{} ({})", ages::local(at), ages::ago(at, now));
        let resources = self.default_resources.named().into_iter();
        let user = self.security_context.user.as_deref();
        vec![
            ("Template", vec![plain(&self.id)]),
            ("Name", vec![plain(&self.name)]),
            ("Image", vec![plain(&self.image)]),
            (
                "Built from",
                self.base_image.iter().map(|image| plain(image)).collect(),
            ),
            ("Runtime", vec![plain(&self.runtime_type)]),
            (
                "Resources",
                resources
                    .map(|(name, value)| format!("{name} {value}"))
                    .collect(),
            ),
            (
                "Packages",
                self.pre_installed_packages
                    .iter()
                    .map(|name| plain(name))
                    .collect(),
            ),
            ("User", user.map(plain).into_iter().collect()),
            ("Active", vec![self.active().to_owned()]),
            ("Created", vec![past(self.created_at)]),
            ("Updated", vec![past(self.updated_at)]),
        ]
    }

    /// Whether sessions can be made from it.
    pub(super) fn active(&self) -> &'static str {
        match self.is_active {
            true => "yes",
            false => "no",
        }
    }
}
