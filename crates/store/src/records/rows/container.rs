//! Containers.

use sandbox_model::{Container, Cpu, Quantity, Resources};
use sea_orm::entity::prelude::*;

use crate::records::Stored;
use crate::records::count::{Counted, Key};
use crate::records::error::StoreError;
use crate::records::value::{Reading, maybe_micros, micros, number, short, text};

pub const KIND: &str = "container";

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "containers")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub version: i64,
    pub name: String,
    pub session_id: Option<String>,
    pub template_id: String,
    pub node_id: String,
    pub ip_address: Option<String>,
    pub executor_port: Option<i64>,
    pub cpu_thousandths: i64,
    pub memory_bytes: i64,
    pub disk_bytes: i64,
    pub max_processes: i64,
    pub status: String,
    pub runtime: String,
    pub created_at: i64,
    pub started_at: Option<i64>,
    pub exited_at: Option<i64>,
    pub exit_code: Option<i32>,
    pub image: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl Model {
    pub fn of(container: &Container, version: i64) -> Result<Model, StoreError> {
        let resources = &container.resources;
        Ok(Model {
            id: short("id", &container.id)?,
            version,
            name: short("name", &container.name)?,
            session_id: container.session_id.as_ref().map(ToString::to_string),
            template_id: container.template_id.to_string(),
            node_id: container.node_id.to_string(),
            ip_address: container.ip_address.map(|address| address.to_string()),
            executor_port: container.executor_port.map(i64::from),
            cpu_thousandths: i64::from(resources.cpu.0),
            memory_bytes: number("resources.memory", resources.memory.0)?,
            disk_bytes: number("resources.disk", resources.disk.0)?,
            max_processes: i64::from(resources.max_processes),
            status: container.status.to_string(),
            runtime: container.runtime.to_string(),
            created_at: micros(container.created_at),
            started_at: maybe_micros(container.started_at),
            exited_at: maybe_micros(container.exited_at),
            exit_code: container.exit_code,
            image: text("image", &container.image)?,
        })
    }

    /// The number that it is part of.
    pub fn count(&self) -> [Key; 1] {
        let (runtime, status) = (&self.runtime, &self.status);
        [Key::of(&self.id, Counted::Containers, "", runtime, status)]
    }

    pub fn read(self) -> Result<Stored<Container>, StoreError> {
        let reading = Reading {
            kind: KIND,
            id: &self.id,
        };
        let port = self.executor_port;
        let port = port.map(|port| reading.number("executor_port", port));
        let value = Container {
            session_id: reading.maybe_parse("session_id", self.session_id.as_deref())?,
            template_id: reading.parse("template_id", &self.template_id)?,
            node_id: reading.parse("node_id", &self.node_id)?,
            ip_address: reading.maybe_parse("ip_address", self.ip_address.as_deref())?,
            executor_port: port.transpose()?,
            resources: Resources {
                cpu: Cpu(reading.number("cpu", self.cpu_thousandths)?),
                memory: Quantity(reading.number("memory", self.memory_bytes)?),
                disk: Quantity(reading.number("disk", self.disk_bytes)?),
                max_processes: reading.number("max_processes", self.max_processes)?,
            },
            status: reading.parse("status", &self.status)?,
            runtime: reading.parse("runtime", &self.runtime)?,
            created_at: reading.time("created_at", self.created_at)?,
            started_at: reading.maybe_time("started_at", self.started_at)?,
            exited_at: reading.maybe_time("exited_at", self.exited_at)?,
            exit_code: self.exit_code,
            id: self.id,
            name: self.name,
            image: self.image,
        };
        Ok(Stored {
            value,
            version: self.version,
        })
    }
}
