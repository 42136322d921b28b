//! Every route, in one table.

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::IntoResponse;
use axum::routing::{any, get};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};
use utoipa_axum::routes;

use crate::api::{
    audit, changes, events, executions, files, health, keys, nodes, ports, promotion, sessions,
    templates, terminal,
};
use crate::authentication::recognise;
use crate::client_address::identify;
use crate::cors;
use crate::error::ApiError;
use crate::forwarding::forward;
use crate::internal;
use crate::measuring::measure;
use crate::openapi;
use crate::perseverance::persevere;
use crate::query::know;
use crate::reference;
use crate::request_id;
use crate::state::App;

/// What is described in the OpenAPI document.
pub(crate) fn described() -> OpenApiRouter<App> {
    let api = OpenApiRouter::new()
        .routes(routes!(sessions::create, sessions::list))
        .routes(routes!(sessions::get, sessions::terminate))
        .routes(routes!(sessions::renew))
        .routes(routes!(sessions::pause))
        .routes(routes!(sessions::resume))
        .routes(routes!(sessions::fork))
        .routes(routes!(changes::changes))
        .routes(routes!(promotion::promote))
        .routes(routes!(events::watch))
        .routes(routes!(executions::execute))
        .routes(routes!(executions::list))
        .routes(routes!(executions::get))
        .routes(routes!(executions::status))
        .routes(routes!(executions::result))
        .routes(routes!(executions::cancel))
        .routes(routes!(files::upload))
        .routes(routes!(files::download, files::remove))
        .routes(routes!(files::list))
        .routes(routes!(files::archive))
        .routes(routes!(terminal::open))
        .routes(with_any_method(routes!(ports::pass)))
        .routes(routes!(templates::create, templates::list))
        .routes(routes!(
            templates::get,
            templates::update,
            templates::delete
        ))
        .routes(routes!(nodes::list))
        .routes(routes!(nodes::drain))
        .routes(routes!(keys::create, keys::list))
        .routes(routes!(keys::revoke))
        .routes(routes!(audit::list));
    let root = OpenApiRouter::new()
        .routes(routes!(health::health))
        .routes(routes!(health::ready))
        .routes(routes!(health::metrics));
    OpenApiRouter::with_openapi(openapi::head())
        .nest("/api/v1", api)
        .merge(root)
}

/// A route that takes every method, though one of them is described.
fn with_any_method((schemas, paths, _): UtoipaMethodRouter<App>) -> UtoipaMethodRouter<App> {
    (schemas, paths, any(ports::pass))
}

/// The whole of it; pages from `origins` may ask, too.
pub(crate) fn router(app: App, origins: &[String]) -> Router {
    let (router, document) = described().split_for_parts();
    // A file may be called so, too.
    let upload = get(files::download).delete(files::remove);
    let parameters = openapi::parameters(&document);
    let document = axum::Json(openapi::finished(document));
    let router = router
        .route("/api/v1/sessions/{session_id}/files/upload", upload)
        .route(
            "/api/v1/sessions/{session_id}/ports/{port}",
            any(ports::pass),
        )
        .route(
            "/api/v1/sessions/{session_id}/ports/{port}/",
            any(ports::pass),
        )
        .route("/objects/{*key}", get(files::object))
        .route(
            "/api/v1/openapi.json",
            get(|| async move { document.into_response() }),
        )
        .route("/api/v1/docs", get(reference::page))
        .fallback(|| async { ApiError::of_status(axum::http::StatusCode::NOT_FOUND) })
        .layer(from_fn_with_state(parameters, know))
        .layer(from_fn_with_state(app.clone(), forward))
        .layer(from_fn_with_state(app.clone(), recognise))
        // Executors have tokens of their own, and no key.
        .merge(internal::router());
    // A browser asks first whether it may, and brings no key for that.
    let router = match cors::layer(origins) {
        Some(cors) => router.layer(cors),
        None => router,
    };
    router
        .layer(from_fn(persevere))
        .layer(from_fn(measure))
        .layer(from_fn(request_id::name))
        .layer(from_fn_with_state(app.clone(), identify))
        .with_state(app)
}
