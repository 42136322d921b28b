//! HTTP: CONNECT, and one plain request per connection.
//!
//! The request's target alone decides where it goes. What is passed on is written anew from what was
//! understood: the `Host` line from the target, the framing from the one length that was given, no
//! line that concerns this connection only. So a `Host` that names another is not passed on, and
//! what could be read in two ways (two lengths, two hosts, folded lines, bare line ends) is refused.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use super::super::refused::printable;
use super::super::relay::{Flow, Joint, Until};
use super::super::socket::{farewell, receive_more, send_all};
use super::body::Body;
use super::request::{Form, Malformed, Request, head_length};
use super::target::{Host, Target};
use super::{Denied, MOST_HEAD, Proxy};

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// What a client is told instead of an answer.
#[derive(Debug)]
struct Answer {
    status: &'static str,
    reason: String,
}

/// Opens what a client asks for whose first bytes are `heard`.
pub(super) fn open(
    proxy: &Proxy,
    client: &OwnedFd,
    mut heard: Vec<u8>,
    deadline: Instant,
) -> io::Result<Option<Joint>> {
    let request = match read_request(proxy, client, &mut heard, deadline)? {
        Ok(request) => request,
        Err(malformed) => {
            proxy.refuse("malformed request", malformed.0);
            let answer = Answer {
                status: "400 Bad Request",
                reason: malformed.0.to_owned(),
            };
            farewell(&proxy.stop, client, &answer.bytes());
            return Ok(None);
        }
    };
    match connect(proxy, &request) {
        Ok((server, target)) => match request.form {
            Form::Tunnel => {
                send_all(&proxy.stop, client, ESTABLISHED, deadline)?;
                Ok(Some(Joint {
                    server,
                    request: Flow::starting_with(heard),
                    until: Until::BothEnd,
                }))
            }
            Form::Plain { .. } => Ok(pass_on(proxy, client, server, &request, &target, heard)),
        },
        Err(answer) => {
            farewell(&proxy.stop, client, &answer.bytes());
            Ok(None)
        }
    }
}

/// Reads the head of a request and takes it off `heard`.
fn read_request(
    proxy: &Proxy,
    client: &OwnedFd,
    heard: &mut Vec<u8>,
    deadline: Instant,
) -> io::Result<Result<Request, Malformed>> {
    loop {
        match head_length(heard) {
            Ok(Some(length)) => {
                let request = Request::parse(&heard[..length]);
                heard.drain(..length);
                return Ok(request);
            }
            Ok(None) if heard.len() >= MOST_HEAD => return Ok(Err(Malformed("head too long"))),
            Ok(None) => receive_more(&proxy.stop, client, heard, deadline)?,
            Err(malformed) => return Ok(Err(malformed)),
        }
    }
}

fn connect(proxy: &Proxy, request: &Request) -> Result<(OwnedFd, Target), Answer> {
    let asked = format!("{}:{}", request.host, request.port);
    let refused = |reason: &str| Answer {
        status: "403 Forbidden",
        reason: format!("{} {reason}", printable(&asked)),
    };
    let host = Host::parse(&request.host).map_err(|error| {
        proxy.refuse(&asked, &error.to_string());
        refused(&format!("is {error}"))
    })?;
    let target = Target {
        host,
        port: request.port,
    };
    match proxy.connect(&target) {
        Ok(server) => Ok((server, target)),
        Err(Denied::Refused(reason)) => Err(refused(&format!("is refused: {reason}"))),
        Err(Denied::Failed(error)) => Err(Answer {
            status: "502 Bad Gateway",
            reason: format!("cannot reach {target}: {}", printable(&error.to_string())),
        }),
    }
}

/// One request and its answer. What the client sends behind the request's body stays here.
fn pass_on(
    proxy: &Proxy,
    client: &OwnedFd,
    server: OwnedFd,
    request: &Request,
    target: &Target,
    heard: Vec<u8>,
) -> Option<Joint> {
    let mut body: Body = request.body.clone();
    let mut bytes = request.rewritten(target);
    match body.take(&heard) {
        Ok(count) => bytes.extend(&heard[..count]),
        Err(malformed) => {
            let answer = Answer {
                status: "400 Bad Request",
                reason: malformed.to_string(),
            };
            farewell(&proxy.stop, client, &answer.bytes());
            return None;
        }
    }
    let request = Flow::starting_with(bytes).limited(move |bytes| {
        body.take(bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    });
    Some(Joint {
        server,
        request,
        until: Until::Answered,
    })
}

impl Answer {
    /// The reason stands in the status line too: for a failed CONNECT most clients show nothing else.
    fn bytes(&self) -> Vec<u8> {
        let Answer { status, reason } = self;
        let body = format!("sandbox: {reason}\n");
        format!(
            "HTTP/1.1 {status} (sandbox: {reason})\r\nContent-Type: text/plain\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }
}
