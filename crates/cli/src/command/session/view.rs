//! A session, as the API tells it and people read it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

use crate::ages;
use crate::command::resources::Resources;
use crate::report::plain;

/// What is shown of a session.
#[derive(Debug, Deserialize)]
pub(super) struct Session {
    pub(super) session_id: String,
    pub(super) template_id: String,
    pub(super) status: String,
    pub(super) mode: String,
    pub(super) agent_id: Option<String>,
    runtime_type: String,
    runtime_node: String,
    container_id: Option<String>,
    pod_name: Option<String>,
    workspace_path: String,
    executor_url: Option<String>,
    resources: Resources,
    limits_enforced: BTreeMap<String, bool>,
    isolation: BTreeMap<String, String>,
    env_vars: BTreeMap<String, String>,
    network: Network,
    pub(super) created_at: Timestamp,
    started_at: Option<Timestamp>,
    last_activity_at: Timestamp,
    pub(super) expires_at: Timestamp,
    terminated_at: Option<Timestamp>,
    timeout: u32,
    error: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Network {
    enabled: bool,
    allow: Vec<String>,
}

impl Session {
    /// Has it ended, for good?
    pub(super) fn is_over(&self) -> bool {
        let status = self.status.parse::<sandbox_model::SessionStatus>();
        status.is_ok_and(sandbox_model::SessionStatus::is_over)
    }

    /// Labels with their lines.
    pub(super) fn fields(&self) -> Vec<(&'static str, Vec<String>)> {
        let now = Timestamp::now();
        let past = |at: Timestamp| format!("{} ({})", ages::local(at), ages::ago(at, now));
        let some = |text: &Option<String>| text.iter().map(|text| plain(text)).collect();
        let expiry = match self.is_over() {
            true => Vec::new(),
            false => vec![format!(
                "{} ({}; each renewal gives it {} s)",
                ages::local(self.expires_at),
                ages::until(self.expires_at, now),
                self.timeout
            )],
        };
        vec![
            ("Session", vec![plain(&self.session_id)]),
            ("Template", vec![plain(&self.template_id)]),
            ("Status", vec![plain(&self.status)]),
            ("Error", some(&self.error)),
            ("Mode", vec![plain(&self.mode)]),
            ("Agent", some(&self.agent_id)),
            ("Created", vec![past(self.created_at)]),
            ("Started", self.started_at.map(past).into_iter().collect()),
            ("Last active", vec![past(self.last_activity_at)]),
            ("Expires", expiry),
            ("Ended", self.terminated_at.map(past).into_iter().collect()),
            ("Resources", self.resource_lines()),
            ("Isolation", self.isolation_lines()),
            ("Network", vec![self.network_line()]),
            ("Environment", self.environment_lines()),
            (
                "Runtime",
                vec![plain(&format!(
                    "{} on {}",
                    self.runtime_type, self.runtime_node
                ))],
            ),
            ("Container", some(&self.container_id)),
            ("Pod", some(&self.pod_name)),
            ("Executor", some(&self.executor_url)),
            ("Objects", vec![plain(&self.workspace_path)]),
        ]
    }

    fn resource_lines(&self) -> Vec<String> {
        let line = |(name, value): (&str, String)| match self.limits_enforced.get(name) {
            Some(true) => format!("{name} {value}"),
            _ => format!("{name} {value}, NOT enforced"),
        };
        self.resources.named().into_iter().map(line).collect()
    }

    fn isolation_lines(&self) -> Vec<String> {
        let walls = self.isolation.iter();
        walls
            .map(|(wall, by)| plain(&format!("{}: {by}", wall.replace('_', " "))))
            .collect()
    }

    fn network_line(&self) -> String {
        match (self.network.enabled, self.network.allow.as_slice()) {
            (false, _) => "none".to_owned(),
            (true, []) => "every public address".to_owned(),
            (true, hosts) => plain(&hosts.join(", ")),
        }
    }

    fn environment_lines(&self) -> Vec<String> {
        let variables = self.env_vars.iter();
        variables
            .map(|(name, value)| plain(&format!("{name}={value}")))
            .collect()
    }
}
