//! How the server is.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::{ApiError, ErrorView, chain};
use crate::state::App;

/// How long a part may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// How the server and its parts are.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// healthy, degraded (something fails that not everything needs) or unhealthy.
    status: &'static str,
    version: &'static str,
    uptime_seconds: f64,
    /// By their names: database, object_store, and each runtime.
    components: BTreeMap<&'static str, Component>,
}

/// How a part is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Component {
    /// healthy or unhealthy.
    status: &'static str,
    latency_ms: f64,
    /// What is wrong with it.
    error: Option<&'static str>,
}

/// How the server and its parts are.
#[utoipa::path(get, path = "/health", tag = "health", security(()),
    responses((status = 200, body = Health, description = "Healthy or degraded"), (status = 503, body = Health)))]
pub(crate) async fn health(State(app): State<App>) -> Response {
    let database = component(app.control.records().ping());
    let objects = component(app.control.objects().ping());
    let runtime = component(app.control.ping_runtime());
    let (database, objects, runtime) = tokio::join!(database, objects, runtime);
    let status = match (database.is_well(), objects.is_well() && runtime.is_well()) {
        (true, true) => "healthy",
        (true, false) => "degraded",
        (false, _) => "unhealthy",
    };
    let code = match database.is_well() {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    let health = Health {
        status,
        version: env!("CARGO_PKG_VERSION"),
        uptime_seconds: app.started.elapsed().as_secs_f64(),
        components: BTreeMap::from([
            ("database", database),
            ("object_store", objects),
            ("runtime_local", runtime),
        ]),
    };
    (code, Json(health)).into_response()
}

/// Whether the server takes requests.
#[utoipa::path(get, path = "/ready", tag = "health", security(()),
    responses((status = 200, body = String, content_type = "text/plain"), (status = 503, body = ErrorView)))]
pub(crate) async fn ready(State(app): State<App>) -> Result<&'static str, ApiError> {
    match component(app.control.records().ping()).await.is_well() {
        true => Ok("ready\n"),
        false => Err(ApiError::unavailable("the database")),
    }
}

/// What was measured, for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "health", security(()),
    responses((status = 200, body = String, content_type = "text/plain")))]
pub(crate) async fn metrics(State(app): State<App>) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4")];
    app.control.measure().await;
    (kind, app.measures.text()).into_response()
}

async fn component<E: std::error::Error>(ping: impl Future<Output = Result<(), E>>) -> Component {
    let begin = Instant::now();
    let error = match tokio::time::timeout(PATIENCE, ping).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => {
            tracing::warn!(error = %chain(&error), "a part of the server is not well");
            Some("it does not answer as it should; the server's log says why")
        }
        Err(_) => Some("it did not answer in time"),
    };
    Component {
        status: if error.is_none() {
            "healthy"
        } else {
            "unhealthy"
        },
        latency_ms: begin.elapsed().as_secs_f64() * 1000.0,
        error,
    }
}

impl Component {
    fn is_well(&self) -> bool {
        self.error.is_none()
    }
}
