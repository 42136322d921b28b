//! The API's description.

use axum::response::Html;
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};

use crate::router;

/// What it says before its routes.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "sandbox",
        description = "Sessions, executions, templates and files: a place of its own for every run of an agent.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    tags(
        (name = "sessions", description = "Places in which code runs"),
        (name = "executions", description = "Code that runs in them"),
        (name = "templates", description = "What sessions are made from"),
        (name = "files", description = "What is in a session's workspace"),
        (name = "nodes", description = "The machines that sessions run on"),
        (name = "api-keys", description = "Who may speak to the server"),
        (name = "audit", description = "Who changed what"),
        (name = "health", description = "How the server is"),
    )
)]
struct Head;

const SCHEME: &str = "api_key";

pub(crate) fn head() -> Document {
    Head::openapi()
}

/// The description with everything in it.
pub fn document() -> Document {
    let (_, document) = router::described().split_for_parts();
    finished(document)
}

pub(crate) fn finished(mut document: Document) -> Document {
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    let components = document.components.get_or_insert_default();
    components.add_security_scheme(SCHEME, SecurityScheme::Http(bearer));
    document.security = Some(vec![SecurityRequirement::new(SCHEME, [""; 0])]);
    // A path in a workspace has slashes; OpenAPI has no word for that.
    let paths = std::mem::take(&mut document.paths.paths);
    let plain = |(path, item): (String, _)| (path.replace("{*", "{"), item);
    document.paths.paths = paths.into_iter().map(plain).collect();
    document
}

/// A page that shows the description.
pub(crate) async fn reference() -> Html<&'static str> {
    Html(include_str!("reference.html"))
}
