//! What is asked of a server.

use bytes::Bytes;
use reqwest::Method;
use serde::Serialize;

use super::error::ClientError;
use super::patience::Repeat;
use super::random;

/// A request that can be sent, and sent again.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(super) method: Method,
    pub(super) segments: Vec<String>,
    pub(super) query: Vec<(&'static str, String)>,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) json: Option<Bytes>,
    pub(super) repeat: Repeat,
}

impl Request {
    /// Looks at something of the API.
    pub(crate) fn get(segments: &[&str]) -> Request {
        Request::api(Method::GET, segments, Repeat::Safe)
    }

    /// Does something.
    pub(crate) fn post(segments: &[&str]) -> Request {
        Request::api(Method::POST, segments, Repeat::Unsafe)
    }

    /// Changes something.
    pub(crate) fn put(segments: &[&str]) -> Request {
        Request::api(Method::PUT, segments, Repeat::Unsafe)
    }

    /// Ends or removes something.
    pub(crate) fn delete(segments: &[&str]) -> Request {
        Request::api(Method::DELETE, segments, Repeat::Unsafe)
    }

    /// Looks at something that is not of the API: its health, its metrics.
    pub(crate) fn at_root(name: &str) -> Request {
        Request {
            method: Method::GET,
            segments: vec![name.to_owned()],
            query: Vec::new(),
            headers: Vec::new(),
            json: None,
            repeat: Repeat::Safe,
        }
    }

    fn api(method: Method, segments: &[&str], repeat: Repeat) -> Request {
        let below = ["api", "v1"].iter().chain(segments);
        Request {
            method,
            segments: below.map(|&segment| segment.to_owned()).collect(),
            query: Vec::new(),
            headers: Vec::new(),
            json: None,
            repeat,
        }
    }

    /// The file at `path` in the workspace of the session that this is about.
    pub(crate) fn file(mut self, path: &str) -> Request {
        let parts = path.split('/').map(str::to_owned);
        self.segments.push("files".to_owned());
        self.segments.extend(parts);
        self
    }

    /// With a parameter, where there is a value for it.
    pub(crate) fn query<T: ToString>(mut self, name: &'static str, value: Option<T>) -> Request {
        self.query
            .extend(value.map(|value| (name, value.to_string())));
        self
    }

    /// With a header, where there is a value for it.
    pub(crate) fn header<T: ToString>(mut self, name: &'static str, value: Option<T>) -> Request {
        self.headers
            .extend(value.map(|value| (name, value.to_string())));
        self
    }

    /// With a body.
    pub(crate) fn json(mut self, body: &impl Serialize) -> Request {
        // What we send is made of texts and numbers, and is always JSON.
        let body = serde_json::to_vec(body).unwrap_or_else(|_| unreachable!("a body is JSON"));
        self.json = Some(body.into());
        self
    }

    /// With a key by which the server knows it when it comes again: the caller's, or one of our own.
    pub(crate) fn idempotent(mut self, key: Option<&str>) -> Request {
        let key = key.map_or_else(random::name, str::to_owned);
        self.repeat = Repeat::Safe;
        self.header("idempotency-key", Some(key))
    }
}

/// A path as people write it, as one below the workspace: code knows it as `/workspace/…`, and `.` is
/// where it is. A path that leads out is refused here: on the way it would be made into another one.
pub(crate) fn workspace_path(text: &str) -> Result<String, ClientError> {
    let below = match text.strip_prefix("/workspace") {
        Some("") => "",
        Some(rest) => rest.strip_prefix('/').unwrap_or(text),
        None => text,
    };
    let parts: Vec<&str> = below.split('/').filter(|part| *part != ".").collect();
    match parts.contains(&"..") {
        true => Err(ClientError::Path(text.to_owned())),
        false => Ok(parts.join("/")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_meant_below_the_workspace() {
        for (text, path) in [
            ("a/b", "a/b"),
            ("./a", "a"),
            ("a/./b", "a/b"),
            (".", ""),
            ("", ""),
            ("/workspace", ""),
            ("/workspace/a", "a"),
            ("/workspaces/a", "/workspaces/a"),
            ("/etc/passwd", "/etc/passwd"),
            ("...", "..."),
            ("..a/b..", "..a/b.."),
        ] {
            assert_eq!(workspace_path(text).unwrap(), path, "{text}");
        }
        for text in ["..", "../a", "a/../b", "/workspace/../etc"] {
            assert!(workspace_path(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_key_is_the_callers_or_one_that_nobody_else_has() {
        let key = |request: Request| request.headers[0].1.clone();
        let create = || Request::post(&["sessions"]);
        assert_eq!(key(create().idempotent(Some("mine"))), "mine");
        let (one, other) = (create().idempotent(None), create().idempotent(None));
        assert_eq!(one.repeat, Repeat::Safe);
        assert_ne!(key(one), key(other));
        assert_eq!(create().repeat, Repeat::Unsafe);
    }
}
