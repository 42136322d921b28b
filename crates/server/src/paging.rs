//! Which part of a list is asked for.

use sandbox_store::records::{Cursor, Page, PageRequest};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::error::ApiError;

/// How many a page has that does not say.
const USUAL: u64 = 50;

/// Which part of a list, as the query says it.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Paging {
    /// How many, 1 to 200.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u64>,
    /// How many to leave out first.
    #[param(value_type = Option<u64>, minimum = 0, maximum = 4294967295i64)]
    offset: Option<u32>,
    /// Where the page before this one ended; instead of `offset`, and as fast at any depth.
    cursor: Option<String>,
}

impl Paging {
    /// As the records are asked.
    pub(crate) fn request(&self) -> Result<PageRequest, ApiError> {
        let invalid = |error: sandbox_store::StoreError| {
            ApiError::from(sandbox_control::ControlError::from(error))
        };
        let page = PageRequest::first(self.limit.unwrap_or(USUAL)).map_err(invalid)?;
        match (&self.cursor, self.offset) {
            (Some(_), Some(_)) => Err(ApiError::invalid(
                "cursor: cannot be used together with offset",
                "use one of them",
            )),
            (Some(cursor), None) => {
                let cursor: Cursor = cursor.parse().map_err(invalid)?;
                Ok(page.after(cursor))
            }
            (None, offset) => Ok(page.skipping(offset.unwrap_or(0).into())),
        }
    }
}

/// The cursor of the page after `page`, as it is written.
pub(crate) fn next<T>(page: &Page<T>) -> Option<String> {
    page.next.as_ref().map(Cursor::to_string)
}
