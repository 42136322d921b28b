//! Who gives us credentials for S3 that nobody wrote down, as Amazon's own variables tell it.
//!
//! Whoever runs containers puts these variables into them. So they are no settings: they have no flag and no
//! place in the file, and nobody looks at them where keys are given or objects are not on S3. Those that other
//! programs of Amazon's read beside them, for endpoints that are not S3's for instance, are not for us.

use std::ffi::OsString;

use sandbox_server::Role;

use super::environment;
use super::error::SettingError;
use super::raw::Origin;

const TOKEN_FILE: &str = "AWS_WEB_IDENTITY_TOKEN_FILE";
const ARN: &str = "AWS_ROLE_ARN";
const SESSION_NAME: &str = "AWS_ROLE_SESSION_NAME";
const TOKEN_SERVICE: &str = "AWS_ENDPOINT_URL_STS";
const TASK_PATH: &str = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
const POD_URL: &str = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
const POD_TOKEN_FILE: &str = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";

/// All of them.
#[cfg(test)]
pub(super) const VARIABLES: [&str; 7] = [
    TOKEN_FILE,
    ARN,
    SESSION_NAME,
    TOKEN_SERVICE,
    TASK_PATH,
    POD_URL,
    POD_TOKEN_FILE,
];

/// Who it is, and which variable says so; in the order in which Amazon's programs ask.
pub(super) fn read(
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<(Role, Origin), SettingError> {
    let text = |name: &str| match variable(name) {
        Some(value) => environment::text(name, value).map(Some),
        None => Ok(None),
    };
    let half = |given: &str, missing| {
        let given = Origin::Environment(given.to_owned());
        SettingError::HalfCredentials(given, missing)
    };
    let (role, by) = if let Some(token_file) = text(TOKEN_FILE)? {
        let role = Role::WebIdentity {
            token_file,
            arn: text(ARN)?.ok_or_else(|| half(TOKEN_FILE, ARN))?,
            session_name: text(SESSION_NAME)?,
            endpoint: text(TOKEN_SERVICE)?,
        };
        (role, TOKEN_FILE)
    } else if let Some(path) = text(TASK_PATH)? {
        (Role::Task { path }, TASK_PATH)
    } else if let Some(url) = text(POD_URL)? {
        let token_file = text(POD_TOKEN_FILE)?.ok_or_else(|| half(POD_URL, POD_TOKEN_FILE))?;
        (Role::Pod { url, token_file }, POD_URL)
    } else {
        return Ok((Role::Machine, Origin::Default));
    };
    Ok((role, Origin::Environment(by.to_owned())))
}
