//! Templates.

use sandbox_model::{Cpu, Quantity, Resources, Template};
use sea_orm::entity::prelude::*;

use crate::records::Stored;
use crate::records::error::StoreError;
use crate::records::value::{Reading, json, maybe_text, micros, number, short, text};

pub const KIND: &str = "template";

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "templates")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub version: i64,
    pub name: String,
    pub runtime: String,
    pub is_active: bool,
    pub cpu_thousandths: i64,
    pub memory_bytes: i64,
    pub disk_bytes: i64,
    pub max_processes: i64,
    pub created_at: i64,
    pub updated_at: i64,
    pub image: String,
    pub base_image: Option<String>,
    pub packages: String,
    pub security_context: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl Model {
    pub fn of(template: &Template, version: i64) -> Result<Model, StoreError> {
        let resources = &template.default_resources;
        Ok(Model {
            id: template.id.to_string(),
            version,
            name: short("name", &template.name)?,
            runtime: template.runtime.to_string(),
            is_active: template.is_active,
            cpu_thousandths: i64::from(resources.cpu.0),
            memory_bytes: number("default_resources.memory", resources.memory.0)?,
            disk_bytes: number("default_resources.disk", resources.disk.0)?,
            max_processes: i64::from(resources.max_processes),
            created_at: micros(template.created_at),
            updated_at: micros(template.updated_at),
            image: text("image", &template.image)?,
            base_image: maybe_text("base_image", &template.base_image)?,
            packages: json("pre_installed_packages", &template.pre_installed_packages)?,
            security_context: json("security_context", &template.security_context)?,
        })
    }

    pub fn read(self) -> Result<Stored<Template>, StoreError> {
        let reading = Reading {
            kind: KIND,
            id: &self.id,
        };
        let value = Template {
            id: reading.parse("id", &self.id)?,
            runtime: reading.parse("runtime", &self.runtime)?,
            default_resources: Resources {
                cpu: Cpu(reading.number("cpu", self.cpu_thousandths)?),
                memory: Quantity(reading.number("memory", self.memory_bytes)?),
                disk: Quantity(reading.number("disk", self.disk_bytes)?),
                max_processes: reading.number("max_processes", self.max_processes)?,
            },
            pre_installed_packages: reading.json("packages", &self.packages)?,
            security_context: reading.json("security_context", &self.security_context)?,
            is_active: self.is_active,
            created_at: reading.time("created_at", self.created_at)?,
            updated_at: reading.time("updated_at", self.updated_at)?,
            name: self.name,
            image: self.image,
            base_image: self.base_image,
        };
        Ok(Stored {
            value,
            version: self.version,
        })
    }
}
