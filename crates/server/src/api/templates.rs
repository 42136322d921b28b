//! Templates.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use sandbox_control::{Patch, TemplateParts};
use sandbox_model::template::SecurityContext;
use sandbox_model::{Cpu, Quantity, Resources, RuntimeKind, Template, TemplateId};
use sandbox_store::records::TemplateFilter;
use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{Object, Type};
use utoipa::{IntoParams, ToSchema};

use crate::api::resources::ResourcesView;
use crate::api::words::{RuntimeTypeView, TemplatePath};
use crate::authentication::{Admin, Reader};
use crate::body::Body;
use crate::error::{ApiError, ErrorView};
use crate::paging::{self, Paging};
use crate::query::{Id, Query};
use crate::state::App;

/// A template to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateTemplateRequest {
    /// Letters, digits, `.`, `_` and `-`, 64 at most. Also taken as `template_id`.
    #[serde(alias = "template_id")]
    #[schema(
        pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
        example = "python-tools"
    )]
    id: String,
    /// What people call it.
    #[schema(example = "Python with tools", min_length = 1, max_length = 128)]
    name: String,
    /// What sessions find around them. On the local runtime `host`, which is the machine's own system read-only,
    /// or the absolute path of a directory with an unpacked root; else an image reference. Also taken as
    /// `image_url`.
    #[serde(alias = "image_url")]
    #[schema(example = "host", max_length = 512)]
    image: String,
    /// What the image was built from.
    base_image: Option<String>,
    /// What hosts its sessions.
    #[schema(value_type = Option<RuntimeTypeView>, default = "local")]
    runtime_type: Option<String>,
    /// What a session may use that does not say: 1 processor, 512Mi, 1Gi and 128 processes where nothing is
    /// given.
    #[serde(default)]
    default_resources: ResourcesView,
    /// What must be there when a session starts, such as `numpy` or `numpy==2.1`.
    #[serde(default)]
    #[schema(example = json!(["numpy", "pandas==2.2.3"]), max_items = 256)]
    pre_installed_packages: Vec<String>,
    /// As whom code runs.
    #[serde(default)]
    security_context: SecurityContextView,
    /// Can sessions be made from it? They can where it is not said.
    is_active: Option<bool>,
}

/// What of a template is to change; the rest stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateTemplateRequest {
    /// What people call it.
    #[schema(min_length = 1, max_length = 128)]
    name: Option<String>,
    /// What sessions find around them.
    #[serde(alias = "image_url")]
    #[schema(max_length = 512)]
    image: Option<String>,
    /// What a session may use that does not say. What is not given stays.
    default_resources: Option<ResourcesView>,
    /// What must be there when a session starts.
    #[schema(max_items = 256)]
    pre_installed_packages: Option<Vec<String>>,
    /// As whom code runs.
    security_context: Option<SecurityContextView>,
    /// Can sessions be made from it?
    is_active: Option<bool>,
}

/// As whom code runs.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = SecurityContext)]
pub(crate) struct SecurityContextView {
    /// User and group: `1000:1000`, and nobody else.
    #[schema(default = "1000:1000", pattern = "^1000:1000$")]
    user: String,
    /// With all of the host's power: never.
    #[schema(schema_with = never)]
    privileged: bool,
}

/// What is false, and can be nothing else.
fn never() -> Object {
    Object::builder()
        .schema_type(Type::Boolean)
        .description(Some("With all of the host's power: never."))
        .enum_values(Some([false]))
        .default(Some(false.into()))
        .build()
}

/// A template.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Template)]
pub(crate) struct TemplateView {
    /// Its identifier.
    #[schema(example = "python-basic")]
    id: String,
    /// What people call it.
    #[schema(example = "Python")]
    name: String,
    /// What sessions find around them.
    #[schema(example = "host")]
    image: String,
    /// What the image was built from.
    #[schema(required)]
    base_image: Option<String>,
    /// What hosts its sessions.
    #[schema(value_type = RuntimeTypeView)]
    runtime_type: String,
    /// What a session may use that does not say.
    default_resources: ResourcesView,
    /// What must be there when a session starts.
    pre_installed_packages: Vec<String>,
    /// As whom code runs.
    security_context: SecurityContextView,
    /// Can sessions be made from it?
    is_active: bool,
    /// When it was made.
    #[schema(format = DateTime)]
    created_at: String,
    /// When it was last changed.
    #[schema(format = DateTime)]
    updated_at: String,
}

/// A page of templates.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TemplateList {
    /// Newest first.
    templates: Vec<TemplateView>,
    /// How many there are on all pages together.
    total: u64,
    /// What the next page is asked for with, as `cursor`; null on the last one.
    #[schema(required)]
    next_cursor: Option<String>,
}

/// Which templates.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Those that sessions cannot be made from, too.
    #[serde(default)]
    #[param(default = false)]
    include_inactive: bool,
}

/// Makes a template.
///
/// Sessions can be made from it at once.
#[utoipa::path(post, path = "/templates", tag = "templates", operation_id = "create_template",
    security(("api_key" = ["admin"])), 
    request_body(content = CreateTemplateRequest, example = json!({
        "id": "python-tools", "name": "Python with tools", "image": "host",
        "default_resources": { "memory": "1Gi" }, "pre_installed_packages": ["pip"],
    })),
    responses((status = 201, body = TemplateView, description = "It is there"), (status = 400, body = ErrorView),
        (status = 409, body = ErrorView, description = "There is one of that id")))]
pub(crate) async fn create(
    State(app): State<App>,
    Admin(caller): Admin,
    Body { value, .. }: Body<CreateTemplateRequest>,
) -> Result<(StatusCode, Json<TemplateView>), ApiError> {
    let template = app.control.create_template(&caller, value.read()?).await?;
    Ok((StatusCode::CREATED, Json(TemplateView::of(template))))
}

/// Gets a template.
///
/// Active or not.
#[utoipa::path(get, path = "/templates/{template_id}", tag = "templates", operation_id = "get_template",
    security(("api_key" = ["read"])), params(TemplatePath),
    responses((status = 200, body = TemplateView, description = "The template"), (status = 404, body = ErrorView)))]
pub(crate) async fn get(
    State(app): State<App>,
    _: Reader,
    Id(id): Id<TemplateId>,
) -> Result<Json<TemplateView>, ApiError> {
    Ok(Json(TemplateView::of(app.control.template(&id).await?)))
}

/// Lists templates, newest first.
///
/// Those that sessions can be made from, unless `include_inactive` says otherwise.
#[utoipa::path(get, path = "/templates", tag = "templates", operation_id = "list_templates",
    security(("api_key" = ["read"])), params(ListQuery, Paging),
    responses((status = 200, body = TemplateList, description = "A page of them"), (status = 400, body = ErrorView)))]
pub(crate) async fn list(
    State(app): State<App>,
    _: Reader,
    Query(query): Query<ListQuery>,
    Query(paging): Query<Paging>,
) -> Result<Json<TemplateList>, ApiError> {
    let filter = match query.include_inactive {
        true => TemplateFilter::All,
        false => TemplateFilter::Active,
    };
    let page = app.control.templates(filter, &paging.request()?).await?;
    Ok(Json(TemplateList {
        total: page.total,
        next_cursor: paging::next(&page),
        templates: page.items.into_iter().map(TemplateView::of).collect(),
    }))
}

/// Changes a template.
///
/// What is not given stays. Sessions that were made from it keep their resources.
#[utoipa::path(put, path = "/templates/{template_id}", tag = "templates", operation_id = "update_template",
    security(("api_key" = ["admin"])), params(TemplatePath), 
    request_body(content = UpdateTemplateRequest, example = json!({ "is_active": false })),
    responses((status = 200, body = TemplateView, description = "As it is now"), (status = 400, body = ErrorView),
        (status = 404, body = ErrorView)))]
pub(crate) async fn update(
    State(app): State<App>,
    Admin(caller): Admin,
    Id(id): Id<TemplateId>,
    Body { value, .. }: Body<UpdateTemplateRequest>,
) -> Result<Json<TemplateView>, ApiError> {
    let patch = value.read()?;
    let template = app.control.update_template(&caller, &id, patch).await?;
    Ok(Json(TemplateView::of(template)))
}

/// Deletes a template that no live session uses.
///
/// One that is used can be made inactive instead, so that no new session uses it.
#[utoipa::path(delete, path = "/templates/{template_id}", tag = "templates", operation_id = "delete_template",
    security(("api_key" = ["admin"])), params(TemplatePath),
    responses((status = 204, description = "It is gone"), (status = 404, body = ErrorView),
        (status = 400, body = ErrorView, description = "Live sessions use it: make it inactive instead")))]
pub(crate) async fn delete(
    State(app): State<App>,
    Admin(caller): Admin,
    Id(id): Id<TemplateId>,
) -> Result<StatusCode, ApiError> {
    app.control.delete_template(&caller, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What a template gives its sessions where nothing is said.
const USUAL: Resources = Resources {
    cpu: Cpu(1000),
    memory: Quantity(512 << 20),
    disk: Quantity(1 << 30),
    max_processes: 128,
};

impl CreateTemplateRequest {
    fn read(self) -> Result<TemplateParts, ApiError> {
        let id = self.id.parse().map_err(|error| {
            ApiError::invalid(format!("id: {error}"), "choose another identifier")
        })?;
        let runtime = match self.runtime_type.as_deref() {
            None => RuntimeKind::Local,
            Some(text) => text.parse().map_err(|error| {
                ApiError::invalid(format!("runtime_type: {error}"), "use one of them")
            })?,
        };
        Ok(TemplateParts {
            id,
            name: self.name,
            image: self.image,
            base_image: self.base_image,
            runtime,
            default_resources: self
                .default_resources
                .asked("default_resources")?
                .over(&USUAL),
            pre_installed_packages: self.pre_installed_packages,
            security_context: self.security_context.read(),
            is_active: self.is_active.unwrap_or(true),
        })
    }
}

impl UpdateTemplateRequest {
    fn read(self) -> Result<Patch, ApiError> {
        let resources = self.default_resources.unwrap_or_default();
        Ok(Patch {
            name: self.name,
            image: self.image,
            default_resources: resources.asked("default_resources")?,
            pre_installed_packages: self.pre_installed_packages,
            security_context: self.security_context.map(SecurityContextView::read),
            is_active: self.is_active,
        })
    }
}

impl Default for SecurityContextView {
    fn default() -> SecurityContextView {
        let SecurityContext { user, privileged } = SecurityContext::default();
        SecurityContextView { user, privileged }
    }
}

impl SecurityContextView {
    fn read(self) -> SecurityContext {
        SecurityContext {
            user: self.user,
            privileged: self.privileged,
        }
    }
}

impl TemplateView {
    fn of(template: Template) -> TemplateView {
        let SecurityContext { user, privileged } = template.security_context;
        TemplateView {
            id: template.id.to_string(),
            name: template.name,
            image: template.image,
            base_image: template.base_image,
            runtime_type: template.runtime.to_string(),
            default_resources: template.default_resources.into(),
            pre_installed_packages: template.pre_installed_packages,
            security_context: SecurityContextView { user, privileged },
            is_active: template.is_active,
            created_at: template.created_at.to_string(),
            updated_at: template.updated_at.to_string(),
        }
    }
}
