//! Resources, as they are written.

use sandbox_control::Asked;
use sandbox_model::Resources;
use sandbox_model::resources::ResourceError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::ApiError;

/// What a session may use.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Resources)]
pub(crate) struct ResourcesView {
    /// Processors, `0.5` to `4`.
    #[schema(example = "1")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cpu: Option<String>,
    /// Memory, `256Mi` to `8Gi`.
    #[schema(example = "512Mi")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory: Option<String>,
    /// Disk, `1Gi` to `50Gi`.
    #[schema(example = "1Gi")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    disk: Option<String>,
    /// Processes and threads at once, 32 to 1024.
    #[schema(minimum = 32, maximum = 1024)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_processes: Option<u32>,
}

impl From<Resources> for ResourcesView {
    fn from(resources: Resources) -> ResourcesView {
        ResourcesView {
            cpu: Some(resources.cpu.to_string()),
            memory: Some(resources.memory.to_string()),
            disk: Some(resources.disk.to_string()),
            max_processes: Some(resources.max_processes),
        }
    }
}

impl ResourcesView {
    /// What of it was given. `field` is what it is called in the request.
    pub(crate) fn asked(&self, field: &str) -> Result<Asked, ApiError> {
        fn read<T>(text: Option<&String>, field: &str, name: &str) -> Result<Option<T>, ApiError>
        where
            T: std::str::FromStr<Err = ResourceError>,
        {
            let unreadable = |error| {
                ApiError::invalid(
                    format!("{field}.{name}: {error}"),
                    "write it as the example shows",
                )
            };
            text.map(|text| text.parse().map_err(unreadable))
                .transpose()
        }
        Ok(Asked {
            cpu: read(self.cpu.as_ref(), field, "cpu")?,
            memory: read(self.memory.as_ref(), field, "memory")?,
            disk: read(self.disk.as_ref(), field, "disk")?,
            max_processes: self.max_processes,
        })
    }
}
