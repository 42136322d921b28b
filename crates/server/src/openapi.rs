//! The API's description.
//!
//! Each route says what is its own: what it takes, what it answers, the scope that it needs. What all of them
//! share is added here, so that no route can forget it: the ways in which any request can fail, and the
//! headers of every answer.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::Method;
use utoipa::openapi::header::Header;
use utoipa::openapi::path::{Operation, Parameter, ParameterIn, PathItem};
use utoipa::openapi::response::Response;
use utoipa::openapi::schema::{Components, ObjectBuilder, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, OpenApi as Document, Ref, RefOr, Required, Schema, Server};
use utoipa::{OpenApi, ToSchema};

use crate::error::ErrorView;
use crate::query::Parameters;
use crate::router;

/// What it says before its routes.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "sandbox",
        description = "Sessions, executions, templates and files: a place of its own for every run of an agent.\n\n\
            Every request but those about the server's health brings a key: `Authorization: Bearer KEY`. Every error \
            has the same shape, `Error`. Every answer has an `X-Request-Id`, which is also on every line that the server \
            logs about the request: the request's own if that has 8 to 64 letters, digits, `.`, `_` and `-` and starts with a letter or \
            digit, else a new one, `req_` and 16 letters and digits; an identifier that is not well formed is replaced, never \
            an error. A request whose head cannot be read is answered with 400 (malformed), 408 (not complete after 30 seconds), 414 (a \
            URI of more than 65534 bytes) or 431 (more than 100 headers, or too large ones), and an `Error`. Lists come newest first, a page at a time: \
            `limit`, and `offset` or the `cursor` that the page before gave. Times are RFC 3339 in UTC.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    tags(
        (name = "sessions", description = "Places in which code runs"),
        (name = "executions", description = "Code that runs in them"),
        (name = "terminal", description = "Typing to a program in a session"),
        (name = "ports", description = "Speaking with a server in a session"),
        (name = "files", description = "What is in a session's workspace"),
        (name = "templates", description = "What sessions are made from"),
        (name = "nodes", description = "The machines that sessions run on"),
        (name = "api-keys", description = "Who may speak to the server"),
        (name = "audit", description = "Who changed what"),
        (name = "health", description = "How the server is"),
    )
)]
struct Head;

/// What requests are authenticated by. The requirement of each route names the scope that it needs.
const SCHEME: &str = "api_key";

/// The ways in which a request can fail whatever it asks for: status, name, what it means.
const SHARED: [(&str, &str, &str); 6] = [
    (
        "400",
        "InvalidParameter",
        "The request is not valid: `error_detail` names the field",
    ),
    (
        "401",
        "Unauthorized",
        "There is no key, or it is not known, or was revoked",
    ),
    ("403", "Forbidden", "The key's scope does not allow this"),
    ("404", "NotFound", "There is none of that name"),
    (
        "429",
        "TooManyRequests",
        "More requests in a second than a key, or somebody without one, may send",
    ),
    (
        "503",
        "Unavailable",
        "A part that this needs does not answer; `/health` tells which",
    ),
];

/// What an answer to any request may be, whatever it asks for.
const ALWAYS: (&str, &str, &str) = (
    "500",
    "InternalError",
    "Something failed that should not have; the server's log has it under the request's identifier",
);

pub(crate) fn head() -> Document {
    Head::openapi()
}

/// The description with everything in it.
pub fn document() -> Document {
    let (_, document) = router::described().split_for_parts();
    finished(document)
}

/// Which parameters the query of each route may have. What is asked of a session's own server is for that to know.
pub(crate) fn parameters(document: &Document) -> Parameters {
    let mut known = HashMap::new();
    for (path, item) in &document.paths.paths {
        for (method, operation) in [
            (Method::GET, &item.get),
            (Method::PUT, &item.put),
            (Method::POST, &item.post),
            (Method::DELETE, &item.delete),
        ] {
            let Some(operation) = operation else { continue };
            let is_ours = operation.operation_id.as_deref() != Some("speak_to_port");
            if is_ours && scope(operation).is_some() {
                let names =
                    described(operation).filter(|one| one.parameter_in == ParameterIn::Query);
                let names = names.map(|one| one.name.clone()).collect();
                known.insert((method, path.clone()), names);
            }
        }
    }
    Parameters(Arc::new(known))
}

/// The description as the repository has it, in openapi/sandbox.json.
pub fn document_text() -> String {
    let mut document = document();
    // Where it is served differs from server to server.
    document.servers = Some(vec![Server::new("http://127.0.0.1:8000")]);
    let text = serde_json::to_string_pretty(&document).unwrap_or_default();
    format!("{text}\n")
}

pub(crate) fn finished(mut document: Document) -> Document {
    let components = document.components.get_or_insert_default();
    describe_shared(components);
    // A path in a workspace has slashes; OpenAPI has no word for that.
    let paths = std::mem::take(&mut document.paths.paths);
    let plain = |(path, mut item): (String, PathItem)| {
        operations(&mut item).for_each(|operation| {
            complete(operation);
            if let Some(RefOr::T(body)) = &mut operation.request_body {
                let mut contents = body.content.values();
                let needed = contents.any(|content| needs(components, content));
                body.required = Some(if needed {
                    Required::True
                } else {
                    Required::False
                });
            }
        });
        (path.replace("{*", "{"), item)
    };
    document.paths.paths = paths.into_iter().map(plain).collect();
    document
}

/// Whether something in a body must be there. Where nothing must, nothing at all says as much as an empty object.
fn needs(components: &Components, content: &RefOr<Content>) -> bool {
    let RefOr::T(Content {
        schema: Some(RefOr::Ref(schema)),
        ..
    }) = content
    else {
        return true;
    };
    let name = schema.ref_location.rsplit('/').next().unwrap_or_default();
    match components.schemas.get(name) {
        Some(RefOr::T(Schema::Object(object))) => !object.required.is_empty(),
        _ => true,
    }
}

fn describe_shared(components: &mut Components) {
    let mut bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    bearer.description = Some(
        "A key: the admin's, which is in `admin.key` in the server's data directory, or one that was made with \
         `POST /api/v1/api-keys`. A requirement names the scope that is needed: `read`, `operate` or `admin`."
            .to_owned(),
    );
    components.add_security_scheme(SCHEME, SecurityScheme::Http(bearer));
    for (_, name, description) in SHARED.into_iter().chain([ALWAYS]) {
        let response = failure(name, description).into();
        components.responses.insert(name.to_owned(), response);
    }
    let header = request_id().into();
    components.headers.insert("RequestId".to_owned(), header);
    let name = ErrorView::name().into_owned();
    components
        .schemas
        .entry(name)
        .or_insert_with(<ErrorView as utoipa::PartialSchema>::schema);
}

/// An answer that is an error.
fn failure(name: &str, description: &str) -> Response {
    let schema = Ref::from_schema_name(ErrorView::name());
    let mut response = Response::new(description);
    let content = Content::new(Some(RefOr::<Schema>::Ref(schema)));
    response
        .content
        .insert("application/json".to_owned(), content.into());
    if matches!(name, "TooManyRequests" | "Unavailable") {
        response
            .headers
            .insert("Retry-After".to_owned(), retry_after().into());
    }
    response
}

fn retry_after() -> Header {
    let seconds = ObjectBuilder::new().schema_type(Type::Integer).build();
    let mut header = Header::new(seconds);
    header.description = Some("In how many seconds to try again".to_owned());
    header
}

fn request_id() -> Header {
    let mut header = Header::new(ObjectBuilder::new().schema_type(Type::String).build());
    header.description = Some(
        "What the server's log calls the request: its own `X-Request-Id` if that is well formed, else a new one"
            .to_owned(),
    );
    header
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [
        &mut item.get,
        &mut item.put,
        &mut item.post,
        &mut item.delete,
    ]
    .into_iter()
    .flatten()
}

/// Adds what every route shares.
fn complete(operation: &mut Operation) {
    let scope = scope(operation);
    let is_about_something = described(operation).any(|one| one.parameter_in == ParameterIn::Path);
    let is_asked = |status: &str| match status {
        // A path need not even be text, and a query may name what there is not.
        "400" => is_about_something || scope.is_some(),
        // Somebody who may look is anybody with a key.
        "403" => scope.as_deref().is_some_and(|scope| scope != "read"),
        "401" | "503" => scope.is_some(),
        "429" => true,
        _ => false,
    };
    let responses = &mut operation.responses.responses;
    for (status, name, _) in SHARED.into_iter().chain([ALWAYS]) {
        let shared = || RefOr::Ref(Ref::from_response_name(name));
        match responses.get_mut(status) {
            // One that says nothing of its own is the shared one.
            Some(RefOr::T(own)) if own.description.is_empty() => {
                responses.insert(status.to_owned(), shared());
            }
            Some(RefOr::T(own)) if status == "503" && scope.is_some() => {
                own.headers
                    .insert("Retry-After".to_owned(), retry_after().into());
            }
            Some(_) => {}
            None if is_asked(status) || status == ALWAYS.0 => {
                responses.insert(status.to_owned(), shared());
            }
            None => {}
        }
    }
    for response in responses.values_mut() {
        if let RefOr::T(response) = response {
            let shared = Ref::new("#/components/headers/RequestId");
            response
                .headers
                .insert("X-Request-Id".to_owned(), RefOr::Ref(shared));
        }
    }
}

fn described(operation: &Operation) -> impl Iterator<Item = &Parameter> {
    let parameters = operation.parameters.iter().flatten();
    parameters.filter_map(|parameter| match parameter {
        RefOr::T(parameter) => Some(parameter),
        RefOr::Ref(_) => None,
    })
}

/// The scope that a route needs; none where it needs no key.
fn scope(operation: &Operation) -> Option<String> {
    let requirements = operation.security.iter().flatten();
    requirements.filter_map(named_scope).next()
}

fn named_scope(requirement: &SecurityRequirement) -> Option<String> {
    let text = serde_json::to_value(requirement).ok()?;
    Some(text.get(SCHEME)?.get(0)?.as_str()?.to_owned())
}
