//! The resource flags of `session create` and `template create|update`.

use serde::{Deserialize, Serialize};

/// What a session may use, as the API writes it. What is not given is left to the template.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
#[command(next_help_heading = "Resources")]
pub(crate) struct Resources {
    /// Processors, 0.5 to 4
    #[arg(long, value_name = "NUMBER")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpu: Option<String>,

    /// Memory, 256Mi to 8Gi
    #[arg(long, value_name = "SIZE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory: Option<String>,

    /// Disk, 1Gi to 50Gi
    #[arg(long, value_name = "SIZE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) disk: Option<String>,

    /// Processes and threads at once, 32 to 1024
    #[arg(long, value_name = "NUMBER")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_processes: Option<u32>,
}

impl Resources {
    /// Is nothing given?
    pub(crate) fn is_empty(&self) -> bool {
        *self == Resources::default()
    }

    /// Each that is given, by its name in the API.
    pub(crate) fn named(&self) -> Vec<(&'static str, String)> {
        let text = |value: &Option<String>| value.as_deref().map(crate::report::plain);
        let processes = self.max_processes.map(|number| number.to_string());
        let all = [
            ("cpu", text(&self.cpu)),
            ("memory", text(&self.memory)),
            ("disk", text(&self.disk)),
            ("max_processes", processes),
        ];
        let given = all.into_iter();
        given
            .filter_map(|(name, value)| Some((name, value?)))
            .collect()
    }
}
