//! What is measured, for Prometheus.

use std::sync::OnceLock;
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// Upper ends of what is counted together, in seconds.
const SECONDS: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 30.0, 300.0,
];

/// What was measured so far.
#[derive(Debug, Clone)]
pub(crate) struct Measures(PrometheusHandle);

impl Measures {
    /// Those of this process.
    pub(crate) fn start() -> Measures {
        static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
        let handle = HANDLE.get_or_init(|| {
            let durations = Matcher::Suffix("_seconds".to_owned());
            let builder = PrometheusBuilder::new().set_buckets_for_metric(durations, &SECONDS);
            let recorder = builder
                .unwrap_or_else(|_| PrometheusBuilder::new())
                .build_recorder();
            let handle = recorder.handle();
            // Somebody else in this process measures already: then ours stay empty.
            drop(metrics::set_global_recorder(recorder));
            describe();
            handle
        });
        Measures(handle.clone())
    }

    /// As Prometheus reads it.
    pub(crate) fn text(&self) -> String {
        self.0.run_upkeep();
        self.0.render()
    }
}

/// What each of them is, for who asks Prometheus.
fn describe() {
    use metrics::{describe_counter, describe_gauge, describe_histogram};
    let counted = [
        ("sandbox_http_requests_total", "Requests"),
        ("sandbox_sessions_created_total", "Sessions made"),
        ("sandbox_sessions_deleted_total", "Sessions ended"),
        (
            "sandbox_pool_claims_total",
            "Hits and misses of the warm pool",
        ),
        (
            "sandbox_executions_total",
            "Executions that are over, by how",
        ),
    ];
    let timed = [
        (
            "sandbox_http_request_duration_seconds",
            "How long requests took",
        ),
        (
            "sandbox_session_creation_duration_seconds",
            "How long making a session took",
        ),
        (
            "sandbox_submission_duration_seconds",
            "How long accepting an execution took",
        ),
        (
            "sandbox_execution_duration_seconds",
            "How long executions took",
        ),
    ];
    let gauged = [
        (
            "sandbox_sessions_active",
            "Sessions of this server that are not over",
        ),
        (
            "sandbox_sessions_raised",
            "Sessions of this server that have processes",
        ),
        (
            "sandbox_node_cpu_cores",
            "Processors that this machine has, and that are used",
        ),
        (
            "sandbox_node_memory_bytes",
            "Memory that this machine has, and that is used",
        ),
        (
            "sandbox_node_disk_bytes",
            "Disk space that this machine has, and that is used",
        ),
    ];
    for (name, text) in counted {
        describe_counter!(name, text);
    }
    for (name, text) in timed {
        describe_histogram!(name, text);
    }
    for (name, text) in gauged {
        describe_gauge!(name, text);
    }
}

/// Measures and logs a request.
pub(crate) async fn measure(request: Request, next: Next) -> Response {
    let begin = Instant::now();
    let method = counted(request.method());
    let path = request.extensions().get::<MatchedPath>();
    let route = path.map_or("none", MatchedPath::as_str).to_owned();
    let response = next.run(request).await;
    let (status, took) = (response.status().as_u16(), begin.elapsed());
    let labels = [
        ("method", method.to_owned()),
        ("route", route.clone()),
        ("status", status.to_string()),
    ];
    metrics::counter!("sandbox_http_requests_total", &labels).increment(1);
    metrics::histogram!("sandbox_http_request_duration_seconds", "route" => route.clone())
        .record(took.as_secs_f64());
    let duration_ms = took.as_secs_f64() * 1000.0;
    tracing::info!(
        method,
        route,
        status,
        duration_ms,
        "{method} {route} {status}"
    );
    response
}

/// What a method is counted as. Anybody can make one up, and what was counted once is counted for ever.
fn counted(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        Method::CONNECT => "CONNECT",
        Method::TRACE => "TRACE",
        _ => "other",
    }
}
