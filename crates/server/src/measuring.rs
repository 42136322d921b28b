//! What is measured, for Prometheus.

use std::sync::OnceLock;
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
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

/// Measures and logs a request.
pub(crate) async fn measure(request: Request, next: Next) -> Response {
    let begin = Instant::now();
    let method = request.method().clone();
    let path = request.extensions().get::<MatchedPath>();
    let route = path.map_or("none", MatchedPath::as_str).to_owned();
    let response = next.run(request).await;
    let (status, took) = (response.status().as_u16(), begin.elapsed());
    let labels = [
        ("method", method.to_string()),
        ("route", route.clone()),
        ("status", status.to_string()),
    ];
    metrics::counter!("sandbox_http_requests_total", &labels).increment(1);
    metrics::histogram!("sandbox_http_request_duration_seconds", "route" => route.clone())
        .record(took.as_secs_f64());
    let duration_ms = took.as_secs_f64() * 1000.0;
    tracing::info!(%method, route, status, duration_ms, "{method} {route} {status}");
    response
}
