//! Records to keep.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use sandbox_model::execution::{Artifact, ArtifactKind, FailureCause, Metrics};
use sandbox_model::runtime::{LimitsEnforced, Walls};
use sandbox_model::session::SessionNetwork;
use sandbox_model::*;
use sandbox_store::Records;
use sandbox_store::records::{PageRequest, Pool};

use crate::databases::Database;

/// Opens the database with little patience, so that a test of its absence is short.
pub async fn open(database: &Database) -> Records {
    open_at(&database.url).await
}

pub async fn open_at(url: &str) -> Records {
    Records::open(url, &pool()).await.unwrap()
}

pub fn pool() -> Pool {
    Pool {
        max_connections: 20,
        acquire_timeout: Duration::from_secs(20),
        ..Pool::default()
    }
}

pub fn first(limit: u64) -> PageRequest {
    PageRequest::first(limit).unwrap()
}

/// A number that no other call in this process got.
fn next() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Different letters for each call.
fn letters<const N: usize>() -> [u16; N] {
    let mut number = next();
    std::array::from_fn(|_| {
        let digit = number % 36;
        number /= 36;
        u16::try_from(digit).unwrap()
    })
}

/// Some time, and so many microseconds.
pub fn time(micros: i64) -> Timestamp {
    let start: Timestamp = "2026-11-01T12:00:00.123456Z".parse().unwrap();
    start + SignedDuration::from_micros(micros)
}

pub fn template() -> Template {
    let [template, ..] = Template::seeds(time(0));
    Template {
        id: format!("template-{}", next()).parse().unwrap(),
        base_image: Some("debian:12".to_owned()),
        pre_installed_packages: vec!["numpy==2.1".to_owned(), "ruamel.yaml".to_owned()],
        ..template
    }
}

pub fn session(template: &Template) -> Session {
    Session {
        id: SessionId::random(letters()),
        template_id: template.id.clone(),
        status: SessionStatus::Creating,
        mode: SessionMode::Ephemeral,
        agent_id: None,
        runtime: RuntimeKind::Local,
        node_id: "node-1".parse().unwrap(),
        container_id: None,
        executor_url: None,
        workspace_path: "/srv/workspace".to_owned(),
        resources: template.default_resources,
        limits_enforced: LimitsEnforced {
            memory: true,
            ..LimitsEnforced::default()
        },
        walls: Walls {
            between_sessions: "namespaces".to_owned(),
            ..Walls::default()
        },
        env_vars: BTreeMap::from([("GREETING".to_owned(), "grüß 'dich' \"\\ 🦀".to_owned())]),
        network: SessionNetwork {
            enabled: true,
            allow: vec!["example.org:443".to_owned()],
        },
        timeout_seconds: 300,
        created_at: time(0),
        started_at: None,
        updated_at: time(1),
        last_activity_at: time(2),
        expires_at: time(300_000_000),
        terminated_at: None,
        error: None,
        workspace_removed_at: None,
        image: Some("host".to_owned()),
    }
}

pub fn execution(session: &Session) -> Execution {
    Execution {
        id: ExecutionId::random(jiff::civil::date(2026, 11, 1), letters()),
        session_id: session.id.clone(),
        status: ExecutionStatus::Pending,
        code: "print('grüß 🦀')\n".to_owned(),
        language: Language::Python,
        event: r#"{"nul": "\u0000"}"#.to_owned(),
        timeout_seconds: 30,
        retry: true,
        retry_count: 0,
        parent_execution_id: None,
        created_at: time(0),
        started_at: None,
        completed_at: None,
        crashed_at: None,
        timeout_at: None,
        last_heartbeat_at: None,
        progress: None,
        error: None,
    }
}

pub fn completed(execution: &Execution) -> Execution {
    Execution {
        status: ExecutionStatus::Completed,
        started_at: Some(time(10)),
        completed_at: Some(time(20)),
        ..execution.clone()
    }
}

pub fn result() -> ExecutionResult {
    ExecutionResult {
        stdout: "a\0b 🦀 '\"\\ \r\n".to_owned(),
        stderr: String::new(),
        stdout_truncated: true,
        stderr_truncated: false,
        exit_code: -1,
        execution_time: 0.1 + 0.2,
        return_value: Some(r#"{"sum": 3}"#.to_owned()),
        metrics: Metrics {
            duration_ms: 1234.567890123,
            cpu_time_ms: f64::MIN_POSITIVE,
            peak_memory_mb: 1e15,
            io_read_bytes: i64::MAX as u64,
            io_write_bytes: 0,
        },
        artifacts_truncated: true,
        cause: Some(FailureCause::DiskFull),
    }
}

pub fn artifact(execution: &Execution, path: &str, micros: i64) -> Artifact {
    Artifact {
        id: ArtifactId::random(letters()),
        execution_id: execution.id.clone(),
        kind: ArtifactKind::Output,
        name: "plot 🦀.png".to_owned(),
        path: path.to_owned(),
        size_bytes: 1 << 40,
        mime_type: "image/png".to_owned(),
        sha256: "0123456789abcdef".repeat(4),
        created_at: time(micros),
    }
}

pub fn entry(template: &Template, node: &str) -> PoolEntry {
    let id = PoolEntryId::random(letters());
    PoolEntry {
        container_id: format!("container-of-{id}"),
        template_id: template.id.clone(),
        node_id: node.parse().unwrap(),
        executor_url: "http://127.0.0.1:4000".to_owned(),
        workspace_path: "/srv/pool".to_owned(),
        created_at: time(0),
        id,
    }
}

pub fn node(id: &str) -> Node {
    Node {
        id: id.parse().unwrap(),
        hostname: "worker.example".to_owned(),
        runtime: RuntimeKind::Docker,
        api_endpoint: "https://worker.example:2376".to_owned(),
        status: NodeStatus::Online,
        total: Capacity {
            cpu_thousandths: 64_000,
            memory_bytes: 256 << 30,
            disk_bytes: 4 << 40,
        },
        allocated: Capacity::default(),
        cached_images: ["python:3.11".to_owned()].into(),
        labels: [("zone".to_owned(), "a".to_owned())].into(),
        last_heartbeat_at: time(0),
    }
}

pub fn container(template: &Template) -> Container {
    let number = next();
    Container {
        id: format!("{number:064x}"),
        name: format!("sandbox-{number}"),
        image: "python:3.11".to_owned(),
        session_id: None,
        template_id: template.id.clone(),
        node_id: "node-1".parse().unwrap(),
        ip_address: Some("2001:db8::1".parse().unwrap()),
        executor_port: Some(65535),
        resources: template.default_resources,
        status: ContainerStatus::Created,
        runtime: RuntimeKind::Docker,
        created_at: time(0),
        started_at: None,
        exited_at: None,
        exit_code: None,
    }
}
