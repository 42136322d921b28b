//! Nodes.

use sandbox_model::{Capacity, Node};
use sea_orm::entity::prelude::*;

use crate::records::Stored;
use crate::records::error::StoreError;
use crate::records::value::{Reading, json, micros, number, short, text};

pub const KIND: &str = "node";

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "nodes")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub version: i64,
    pub hostname: String,
    pub runtime: String,
    pub status: String,
    pub total_cpu_thousandths: i64,
    pub total_memory_bytes: i64,
    pub total_disk_bytes: i64,
    pub allocated_cpu_thousandths: i64,
    pub allocated_memory_bytes: i64,
    pub allocated_disk_bytes: i64,
    pub last_heartbeat_at: i64,
    pub api_endpoint: String,
    pub cached_images: String,
    pub labels: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl Model {
    pub fn of(node: &Node, version: i64) -> Result<Model, StoreError> {
        let (total, allocated) = (&node.total, &node.allocated);
        Ok(Model {
            id: node.id.to_string(),
            version,
            hostname: short("hostname", &node.hostname)?,
            runtime: node.runtime.to_string(),
            status: node.status.to_string(),
            total_cpu_thousandths: number("total.cpu_thousandths", total.cpu_thousandths)?,
            total_memory_bytes: number("total.memory_bytes", total.memory_bytes)?,
            total_disk_bytes: number("total.disk_bytes", total.disk_bytes)?,
            allocated_cpu_thousandths: number(
                "allocated.cpu_thousandths",
                allocated.cpu_thousandths,
            )?,
            allocated_memory_bytes: number("allocated.memory_bytes", allocated.memory_bytes)?,
            allocated_disk_bytes: number("allocated.disk_bytes", allocated.disk_bytes)?,
            last_heartbeat_at: micros(node.last_heartbeat_at),
            api_endpoint: text("api_endpoint", &node.api_endpoint)?,
            cached_images: json("cached_images", &node.cached_images)?,
            labels: json("labels", &node.labels)?,
        })
    }

    pub fn read(self) -> Result<Stored<Node>, StoreError> {
        let reading = Reading {
            kind: KIND,
            id: &self.id,
        };
        let bytes = |field, value| reading.number(field, value);
        let value = Node {
            id: reading.parse("id", &self.id)?,
            runtime: reading.parse("runtime", &self.runtime)?,
            status: reading.parse("status", &self.status)?,
            total: Capacity {
                cpu_thousandths: bytes("total cpu", self.total_cpu_thousandths)?,
                memory_bytes: bytes("total memory", self.total_memory_bytes)?,
                disk_bytes: bytes("total disk", self.total_disk_bytes)?,
            },
            allocated: Capacity {
                cpu_thousandths: bytes("allocated cpu", self.allocated_cpu_thousandths)?,
                memory_bytes: bytes("allocated memory", self.allocated_memory_bytes)?,
                disk_bytes: bytes("allocated disk", self.allocated_disk_bytes)?,
            },
            cached_images: reading.json("cached_images", &self.cached_images)?,
            labels: reading.json("labels", &self.labels)?,
            last_heartbeat_at: reading.time("last_heartbeat_at", self.last_heartbeat_at)?,
            hostname: self.hostname,
            api_endpoint: self.api_endpoint,
        };
        Ok(Stored {
            value,
            version: self.version,
        })
    }
}
