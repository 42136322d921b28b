//! How the server is.
//!
//! Everybody may ask, and each part is asked for all of them together: what one is told, the others are for a second.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use sandbox_control::{Control, chain};
use serde::Serialize;
use tokio::sync::Mutex;
use utoipa::ToSchema;

use crate::api::words::{ComponentStatusView, HealthStatusView};
use crate::error::{ApiError, ErrorView};
use crate::state::App;

/// How long a part may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// For how long what the parts answered is told to others.
const TOLD: Duration = Duration::from_secs(1);

/// How the server and its parts are.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// How it is, all in all.
    #[schema(value_type = HealthStatusView)]
    status: &'static str,
    /// Which version of the server it is.
    #[schema(example = "0.1.0")]
    version: &'static str,
    /// How long it has been running.
    uptime_seconds: f64,
    /// Its parts by their names: `database`, `object_store`, and each runtime, such as `runtime_local`.
    components: BTreeMap<&'static str, Component>,
}

/// How a part is.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Component {
    /// How it is.
    #[schema(value_type = ComponentStatusView)]
    status: &'static str,
    /// How long it took to answer.
    latency_ms: f64,
    /// What is wrong with it.
    #[schema(required)]
    error: Option<&'static str>,
}

/// What the parts answered last, and when. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Checkups(Arc<Mutex<Option<(Parts, Instant)>>>);

/// How each part is.
#[derive(Debug, Clone)]
struct Parts {
    database: Component,
    objects: Component,
    runtime: Component,
}

impl Checkups {
    /// How the parts are, or were a moment ago. Who asks meanwhile waits for the same answer.
    async fn parts(&self, control: &Control) -> Parts {
        let mut last = self.0.lock().await;
        if let Some((parts, since)) = &*last
            && since.elapsed() < TOLD
        {
            return parts.clone();
        }
        let (database, objects, runtime) = tokio::join!(
            component(control.records().ping()),
            component(control.objects().ping()),
            component(control.ping_runtime())
        );
        let parts = Parts {
            database,
            objects,
            runtime,
        };
        *last = Some((parts.clone(), Instant::now()));
        parts
    }
}

/// Tells how the server and its parts are.
///
/// Each part is asked once a second at most, and has three seconds to answer.
#[utoipa::path(get, path = "/health", tag = "health", operation_id = "get_health", security(()),
    responses((status = 200, body = Health, description = "Healthy or degraded"),
        (status = 503, body = Health, description = "Unhealthy: the database does not answer")))]
pub(crate) async fn health(State(app): State<App>) -> Response {
    let Parts {
        database,
        objects,
        runtime,
    } = app.checkups.parts(&app.control).await;
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

/// Tells whether the server takes requests.
///
/// For load balancers: it does when its database answers.
#[utoipa::path(get, path = "/ready", tag = "health", operation_id = "get_ready", security(()),
    responses((status = 200, body = String, content_type = "text/plain", description = "It does"),
        (status = 503, body = ErrorView, description = "It does not")))]
pub(crate) async fn ready(State(app): State<App>) -> Result<&'static str, ApiError> {
    match component(app.control.records().ping()).await.is_well() {
        true => Ok("ready\n"),
        false => Err(ApiError::unavailable("the database")),
    }
}

/// Tells what was measured, for Prometheus.
///
/// In its text format.
#[utoipa::path(get, path = "/metrics", tag = "health", operation_id = "get_metrics", security(()),
    responses((status = 200, body = String, content_type = "text/plain", description = "What was measured")))]
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
