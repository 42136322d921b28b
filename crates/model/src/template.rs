//! What sessions are made from.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::id::TemplateId;
use crate::resources::{Cpu, Quantity, ResourceError, Resources};
use crate::runtime::RuntimeKind;

/// The only user code runs as.
pub const USER: &str = "1000:1000";

/// A template, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Template {
    /// Its identifier.
    pub id: TemplateId,
    /// What people call it.
    pub name: String,
    /// What a session finds around it: `host`, or an image.
    pub image: String,
    /// What the image was built from.
    pub base_image: Option<String>,
    /// What hosts its sessions.
    pub runtime: RuntimeKind,
    /// What a session may use that does not say.
    pub default_resources: Resources,
    /// What must be there when a session starts, such as `numpy` or `numpy==2.1`.
    pub pre_installed_packages: Vec<String>,
    /// As whom code runs.
    pub security_context: SecurityContext,
    /// Can sessions be made from it?
    pub is_active: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// As whom code runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SecurityContext {
    /// User and group.
    pub user: String,
    /// With all of the host's power: never.
    pub privileged: bool,
}

impl Default for SecurityContext {
    fn default() -> SecurityContext {
        SecurityContext {
            user: USER.to_owned(),
            privileged: false,
        }
    }
}

/// Why a template cannot be kept.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// Its name is empty or long.
    #[error("name must have 1 to {MOST_NAME} characters")]
    Name,
    /// Its image is not one.
    #[error(
        "image '{0}' is neither `host`, a path, nor an image reference such as registry/name:tag"
    )]
    Image(String),
    /// A package is not one.
    #[error("pre_installed_packages: '{0}' is not a package; write a name, or name==version")]
    Package(String),
    /// More packages than there may be.
    #[error("pre_installed_packages has more than {MOST_PACKAGES} entries")]
    Packages,
    /// Another user than there may be.
    #[error("security_context.user must be {USER}, not '{0}'")]
    User(String),
    /// With all of the host's power.
    #[error("security_context.privileged must be false")]
    Privileged,
    /// Its resources are out of range.
    #[error("default_resources: {0}")]
    Resources(#[from] ResourceError),
}

const MOST_NAME: usize = 128;
const MOST_PACKAGES: usize = 256;
const MOST_IMAGE: usize = 512;

impl Template {
    /// May it be kept?
    pub fn check(&self) -> Result<(), TemplateError> {
        if self.name.trim().is_empty() || self.name.chars().count() > MOST_NAME {
            return Err(TemplateError::Name);
        }
        for image in [Some(&self.image), self.base_image.as_ref()]
            .into_iter()
            .flatten()
        {
            if !is_image(image) {
                return Err(TemplateError::Image(image.clone()));
            }
        }
        if self.pre_installed_packages.len() > MOST_PACKAGES {
            return Err(TemplateError::Packages);
        }
        let bad = self
            .pre_installed_packages
            .iter()
            .find(|package| !is_package(package));
        if let Some(bad) = bad {
            return Err(TemplateError::Package(bad.clone()));
        }
        if self.security_context.privileged {
            return Err(TemplateError::Privileged);
        }
        if self.security_context.user != USER {
            return Err(TemplateError::User(self.security_context.user.clone()));
        }
        Ok(self.default_resources.check()?)
    }

    /// The templates that every server starts with.
    pub fn seeds(now: Timestamp) -> [Template; 3] {
        let seed =
            |id: &str, name: &str, cpu, memory_mebi: u64, disk_gibi: u64, packages: &[&str]| {
                Template {
                    id: id
                        .parse()
                        .unwrap_or_else(|_| unreachable!("{id} is a valid identifier")),
                    name: name.to_owned(),
                    image: "host".to_owned(),
                    base_image: None,
                    runtime: RuntimeKind::Local,
                    default_resources: Resources {
                        cpu: Cpu(cpu),
                        memory: Quantity(memory_mebi << 20),
                        disk: Quantity(disk_gibi << 30),
                        max_processes: 128,
                    },
                    pre_installed_packages: packages.iter().map(|&name| name.to_owned()).collect(),
                    security_context: SecurityContext::default(),
                    is_active: true,
                    created_at: now,
                    updated_at: now,
                }
            };
        [
            seed("python-basic", "Python", 1000, 512, 1, &[]),
            seed(
                "python-datascience",
                "Python for data science",
                2000,
                2048,
                5,
                &["numpy", "pandas", "matplotlib"],
            ),
            seed("nodejs-basic", "Node.js", 1000, 512, 1, &[]),
        ]
    }
}

/// `host`, an absolute path, or what a registry would take.
fn is_image(image: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@+".contains(&byte);
    let starts_well =
        image.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '/');
    let climbs = image.split('/').any(|part| part == "..");
    (1..=MOST_IMAGE).contains(&image.len()) && image.bytes().all(plain) && starts_well && !climbs
}

fn is_package(package: &str) -> bool {
    let (name, version) = package.split_once("==").unwrap_or((package, "0"));
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/@".contains(&byte);
    let versionlike = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+!".contains(&byte);
    let starts_well = |first: char| first.is_ascii_alphanumeric() || first == '@';
    (1..=128).contains(&name.len())
        && name.bytes().all(plain)
        && name.starts_with(starts_well)
        && (1..=64).contains(&version.len())
        && version.bytes().all(versionlike)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template() -> Template {
        let [template, ..] = Template::seeds(Timestamp::UNIX_EPOCH);
        template
    }

    #[test]
    fn the_seeds_may_be_kept() {
        for seed in Template::seeds(Timestamp::UNIX_EPOCH) {
            assert_eq!(seed.check(), Ok(()), "{}", seed.id);
        }
    }

    #[test]
    fn images_are_recognised() {
        for image in [
            "host",
            "python:3.11",
            "registry.example/a/b:1.2",
            "a@sha256:00",
            "/srv/root",
        ] {
            let with = Template {
                image: image.to_owned(),
                ..template()
            };
            assert_eq!(with.check(), Ok(()), "{image}");
        }
        for image in ["", "a b", "-rm", "$(id)", "../x", "/srv/../etc", "a\nb"] {
            let with = Template {
                image: image.to_owned(),
                ..template()
            };
            assert_eq!(with.check(), Err(TemplateError::Image(image.to_owned())));
        }
    }

    #[test]
    fn packages_are_names_with_a_version_at_most() {
        let with = |package: &str| Template {
            pre_installed_packages: vec![package.to_owned()],
            ..template()
        };
        for package in ["numpy", "numpy==2.1.0", "@types/node", "ruamel.yaml==0.18"] {
            assert_eq!(with(package).check(), Ok(()), "{package}");
        }
        for package in ["", "a;b", "--upgrade", "numpy>=2", "a==", "==1"] {
            let error = TemplateError::Package(package.to_owned());
            assert_eq!(with(package).check(), Err(error));
        }
    }

    #[test]
    fn nobody_gets_the_hosts_power() {
        let context = |user: &str, privileged| Template {
            security_context: SecurityContext {
                user: user.to_owned(),
                privileged,
            },
            ..template()
        };
        let root = TemplateError::User("0:0".to_owned());
        assert_eq!(context("0:0", false).check(), Err(root));
        assert_eq!(context(USER, true).check(), Err(TemplateError::Privileged));
    }
}
