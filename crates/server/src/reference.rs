//! A page that shows the API's description to people.
//!
//! It needs nothing from elsewhere, and its policy lets it load nothing: the page, its style and its script
//! come as one, and the only thing it asks for is the description itself.

use std::sync::LazyLock;

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use base64::prelude::{BASE64_STANDARD, Engine};
use ring::digest::{SHA256, digest};

const PAGE: &str = include_str!("reference/page.html");
const STYLE: &str = include_str!("reference/page.css");
const SCRIPT: &str = include_str!("reference/page.js");

/// The page, and what it may do.
static WHOLE: LazyLock<(String, String)> = LazyLock::new(|| {
    let page = PAGE.replace("/* style */", STYLE);
    let page = page.replace("/* script */", SCRIPT);
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        fingerprint(SCRIPT),
        fingerprint(STYLE),
    );
    (page, policy)
});

/// The page.
pub(crate) async fn page() -> Response {
    let (page, policy) = &*WHOLE;
    let policy = HeaderValue::from_str(policy);
    let policy = policy.unwrap_or(HeaderValue::from_static("default-src 'none'"));
    let headers: [(HeaderName, HeaderValue); 4] = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (header::CONTENT_SECURITY_POLICY, policy),
        (
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ),
        (
            header::REFERRER_POLICY,
            HeaderValue::from_static("no-referrer"),
        ),
    ];
    (headers, page.as_str()).into_response()
}

/// What a policy knows a script or a style by.
fn fingerprint(text: &str) -> String {
    let digest = digest(&SHA256, text.as_bytes());
    format!("sha256-{}", BASE64_STANDARD.encode(digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_whole_and_needs_nothing_from_elsewhere() {
        let (page, policy) = &*WHOLE;
        assert!(!page.contains("/* style */") && !page.contains("/* script */"));
        assert!(page.contains(STYLE) && page.contains(SCRIPT));
        for far in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!PAGE.contains(far) && !STYLE.contains(far), "{far}");
        }
        // What it shows was written by us, and is shown as text all the same.
        for danger in ["innerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            assert!(!SCRIPT.contains(danger), "{danger}");
        }
        // A policy with these would be none.
        assert!(
            !policy.contains("unsafe") && !policy.contains('*'),
            "{policy}"
        );
    }
}
