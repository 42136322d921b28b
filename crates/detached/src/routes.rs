//! What can be asked for.
//!
//! | | |
//! | --- | --- |
//! | `GET /health` | is it there, and what stands around its code |
//! | `POST /execute` | run this |
//! | `POST /executions/{id}/cancel` | end that |
//! | `GET /files?path&limit&after` | what is in a directory |
//! | `GET`, `PUT`, `DELETE /files/{path}` | a file of the workspace; what is deleted, with all that is in it |

use std::path::PathBuf;

use hyper::{Method, Uri};
use percent_encoding::percent_decode_str;
use sandbox_executor::listing;
use sandbox_model::ExecutionId;

use crate::answer::Refused;

/// The longest path of a file.
const LONGEST_PATH: usize = 4096;

/// How many entries of a directory are told where nobody says how many.
const USUAL: usize = 200;

/// Something that is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// Is it there?
    Health,
    /// Run something.
    Execute,
    /// End something.
    Cancel(ExecutionId),
    /// What is in a directory?
    List {
        path: PathBuf,
        after: Option<String>,
        limit: usize,
    },
    /// A file.
    Read(PathBuf),
    /// A new file.
    Write(PathBuf),
    /// No file.
    Remove(PathBuf),
}

impl Route {
    /// What this asks for.
    pub(crate) fn of(method: &Method, uri: &Uri) -> Result<Route, Refused> {
        let path = uri.path();
        match path {
            "/health" => only(method, Method::GET, "GET", Route::Health),
            "/execute" => only(method, Method::POST, "POST", Route::Execute),
            "/files" => only(method, Method::GET, "GET", ())
                .and_then(|()| list(uri.query().unwrap_or_default())),
            _ => match (
                path.strip_prefix("/files/"),
                path.strip_prefix("/executions/"),
            ) {
                (Some(path), _) => file(method, path),
                (_, Some(rest)) => execution(method, rest),
                _ => Err(Refused::not_found(format!(
                    "{path}: is no path of an executor"
                ))),
            },
        }
    }
}

fn only<T>(given: &Method, method: Method, name: &'static str, route: T) -> Result<T, Refused> {
    match *given == method {
        true => Ok(route),
        false => Err(Refused::method(name)),
    }
}

fn execution(method: &Method, rest: &str) -> Result<Route, Refused> {
    let Some(id) = rest.strip_suffix("/cancel") else {
        return Err(Refused::not_found(format!(
            "{rest}: is nothing of an execution"
        )));
    };
    let id: Result<ExecutionId, _> = id.parse();
    let id = id.map_err(|error| Refused::invalid(format!("execution_id: {error}")))?;
    only(method, Method::POST, "POST", Route::Cancel(id))
}

fn file(method: &Method, path: &str) -> Result<Route, Refused> {
    let decoded = percent_decode_str(path).decode_utf8();
    let path = decoded.map_err(|_| Refused::invalid("path: is not UTF-8"))?;
    let path = checked(&path)?;
    if path.as_os_str().is_empty() {
        return Err(Refused::invalid("path: is empty"));
    }
    match method.as_str() {
        "GET" => Ok(Route::Read(path)),
        "PUT" => Ok(Route::Write(path)),
        "DELETE" => Ok(Route::Remove(path)),
        _ => Err(Refused::method("GET, PUT, DELETE")),
    }
}

fn list(query: &str) -> Result<Route, Refused> {
    let (mut path, mut after, mut limit) = (PathBuf::new(), None, USUAL);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match name.as_ref() {
            "path" => path = checked(&value)?,
            "after" => after = Some(value.into_owned()),
            "limit" => {
                let most = listing::MOST;
                let read = value
                    .parse()
                    .ok()
                    .filter(|limit| (1..=most).contains(limit));
                let wrong = || Refused::invalid(format!("limit: is not between 1 and {most}"));
                limit = read.ok_or_else(wrong)?;
            }
            name => return Err(Refused::invalid(format!("{name}: is not known"))),
        }
    }
    Ok(Route::List { path, after, limit })
}

/// Where it leads is for the kernel to say, who resolves it beneath the workspace.
fn checked(path: &str) -> Result<PathBuf, Refused> {
    if path.len() > LONGEST_PATH {
        return Err(Refused::invalid(format!(
            "path: is longer than {LONGEST_PATH} bytes"
        )));
    }
    if path.contains('\0') {
        return Err(Refused::invalid("path: holds a null character"));
    }
    Ok(PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: &str, target: &str) -> Result<Route, Refused> {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        Route::of(&method, &target.parse().expect("a target"))
    }

    #[test]
    fn what_can_be_asked_for_is_found() {
        let id: ExecutionId = "exec_20261116_aaaaaaaa".parse().expect("an identifier");
        for (method, target, expected) in [
            ("GET", "/health", Route::Health),
            ("POST", "/execute", Route::Execute),
            (
                "POST",
                "/executions/exec_20261116_aaaaaaaa/cancel",
                Route::Cancel(id),
            ),
            (
                "PUT",
                "/files/a%20b/%C3%A9",
                Route::Write("a b/\u{e9}".into()),
            ),
            ("DELETE", "/files/a", Route::Remove("a".into())),
            // Whether that is inside is not decided by what it looks like.
            ("GET", "/files/../x", Route::Read("../x".into())),
        ] {
            assert_eq!(read(method, target), Ok(expected), "{method} {target}");
        }
        let all = Route::List {
            path: "a/b".into(),
            after: Some("c".into()),
            limit: 7,
        };
        assert_eq!(read("GET", "/files?path=a%2Fb&after=c&limit=7"), Ok(all));
    }

    #[test]
    fn everything_else_is_refused() {
        for (method, target) in [
            ("POST", "/health"),
            ("GET", "/execute"),
            ("GET", "/"),
            ("GET", "/executions/exec_20261116_aaaaaaaa"),
            ("POST", "/executions/../cancel"),
            ("GET", "/files/"),
            ("GET", "/files/%ff"),
            ("GET", "/files/a%00b"),
            ("POST", "/files/a"),
            ("GET", "/files?limit=0"),
            ("GET", "/files?limit=1001"),
            ("GET", "/files?what=1"),
        ] {
            assert!(read(method, target).is_err(), "{method} {target}");
        }
    }
}
