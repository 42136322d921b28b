//! The head of an HTTP/1 request, read strictly and written anew.
//!
//! Pure. What RFC 9112 lets a reader tolerate is not tolerated: the server behind us may tolerate
//! something else.

use super::body::Body;
use super::target::{Target, split_port};

/// A request that has been understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    /// The host as asked, not yet judged.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) form: Form,
    pub(super) body: Body,
}

/// How it is to be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Form {
    /// CONNECT.
    Tunnel,
    /// Anything else.
    Plain {
        method: String,
        /// In origin form; bytes, since paths need not be text.
        path: Vec<u8>,
        version: &'static str,
        /// The lines that are passed on as they came.
        fields: Vec<(String, Vec<u8>)>,
    },
}

/// Why a request is not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) &'static str);

/// Fields that concern one connection only (RFC 9110, 7.6.1), and those written anew.
const OURS: [&str; 11] = [
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The length of the head, its empty line included, if it is all there.
pub(super) fn head_length(bytes: &[u8]) -> Result<Option<usize>, Malformed> {
    let mut line = 0;
    for (index, byte) in bytes.iter().enumerate() {
        let after_return = index > 0 && bytes[index - 1] == b'\r';
        match byte {
            b'\n' if !after_return => return Err(Malformed("a line feed alone")),
            b'\n' if index == line + 1 => return Ok(Some(index + 1)),
            b'\n' => line = index + 1,
            _ if after_return => return Err(Malformed("a carriage return alone")),
            0 => return Err(Malformed("a zero byte")),
            _ => {}
        }
    }
    Ok(None)
}

impl Request {
    /// Understands a head as [`head_length`] found it.
    pub(super) fn parse(head: &[u8]) -> Result<Request, Malformed> {
        let mut lines = head
            .split(|byte| *byte == b'\n')
            .map(|l| l.strip_suffix(b"\r").unwrap_or(l));
        let (method, target, version) = request_line(lines.next().unwrap_or_default())?;
        let fields: Vec<(String, &[u8])> = lines
            .take_while(|line| !line.is_empty())
            .map(field)
            .collect::<Result<_, _>>()?;
        let hosts = fields.iter().filter(|(name, _)| name == "host").count();
        if hosts > 1 {
            return Err(Malformed("more than one Host"));
        }
        if method == "CONNECT" {
            let text = ascii(target)?;
            let (host, port) = split_port(text).ok_or(Malformed("CONNECT without HOST:PORT"))?;
            without_user(host)?;
            let body = Body::Length(0);
            return Ok(Request {
                host: host.to_owned(),
                port,
                form: Form::Tunnel,
                body,
            });
        }
        if hosts == 0 && version == "HTTP/1.1" {
            return Err(Malformed("no Host"));
        }
        let body = body(&fields, version)?;
        let (host, port, path) = absolute(&method, target)?;
        let fields = passed_on(&fields);
        Ok(Request {
            host,
            port,
            form: Form::Plain {
                method,
                path,
                version,
                fields,
            },
            body,
        })
    }

    /// The head for the server.
    pub(super) fn rewritten(&self, target: &Target) -> Vec<u8> {
        let Form::Plain {
            method,
            path,
            version,
            fields,
        } = &self.form
        else {
            return Vec::new();
        };
        let mut head = format!("{method} ").into_bytes();
        head.extend(path);
        head.extend(format!(" {version}\r\nHost: {}\r\n", host_field(target)).bytes());
        for (name, value) in fields {
            head.extend(name.bytes().chain(*b": "));
            head.extend(value);
            head.extend(b"\r\n");
        }
        match self.body {
            Body::Length(0) if !matches!(method.as_str(), "POST" | "PUT" | "PATCH") => {}
            Body::Length(length) => {
                head.extend(format!("Content-Length: {length}\r\n").bytes());
            }
            Body::Chunked(_) => head.extend(b"Transfer-Encoding: chunked\r\n"),
        }
        head.extend(b"Connection: close\r\n\r\n");
        head
    }
}

fn host_field(target: &Target) -> String {
    let whole = target.to_string();
    match whole.strip_suffix(":80") {
        Some(host) if target.port == 80 => host.to_owned(),
        _ => whole,
    }
}

fn is_token(bytes: &[u8]) -> bool {
    let is_one = |b: &u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b);
    !bytes.is_empty() && bytes.iter().all(is_one)
}

fn ascii(bytes: &[u8]) -> Result<&str, Malformed> {
    std::str::from_utf8(bytes).map_err(|_| Malformed("a host that is not text"))
}

fn without_user(authority: &str) -> Result<(), Malformed> {
    // What stands before the @ may be a password: it is neither passed on nor recorded.
    if authority.contains('@') {
        Err(Malformed("a user name in the target"))
    } else {
        Ok(())
    }
}

fn request_line(line: &[u8]) -> Result<(String, &[u8], &'static str), Malformed> {
    let mut parts = line.split(|byte| *byte == b' ');
    let (method, target, version) = (parts.next(), parts.next(), parts.next());
    let (Some(method), Some(target), Some(version), None) = (method, target, version, parts.next())
    else {
        return Err(Malformed("not a request of HTTP or SOCKS5"));
    };
    let version = match version {
        b"HTTP/1.1" => "HTTP/1.1",
        b"HTTP/1.0" => "HTTP/1.0",
        _ => return Err(Malformed("not HTTP/1.0 or HTTP/1.1")),
    };
    let clean = target.iter().all(|byte| *byte > b' ' && *byte != 0x7f);
    if !is_token(method) || target.is_empty() || !clean {
        return Err(Malformed("not a request of HTTP or SOCKS5"));
    }
    Ok((
        String::from_utf8_lossy(method).into_owned(),
        target,
        version,
    ))
}

fn field(line: &[u8]) -> Result<(String, &[u8]), Malformed> {
    if line.starts_with(b" ") || line.starts_with(b"\t") {
        return Err(Malformed("a folded line"));
    }
    let colon = line
        .iter()
        .position(|byte| *byte == b':')
        .ok_or(Malformed("a line without a name"))?;
    let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
    if !is_token(name) {
        return Err(Malformed("a name that is none"));
    }
    if value
        .iter()
        .any(|byte| byte.is_ascii_control() && *byte != b'\t')
    {
        return Err(Malformed("a control character"));
    }
    Ok((String::from_utf8_lossy(name).to_ascii_lowercase(), value))
}

/// How the body is framed: by one length, or in chunks, or there is none.
fn body(fields: &[(String, &[u8])], version: &str) -> Result<Body, Malformed> {
    let all = |wanted: &str| -> Vec<&[u8]> {
        fields
            .iter()
            .filter(|(name, _)| name == wanted)
            .map(|(_, value)| *value)
            .collect()
    };
    match (
        all("content-length").as_slice(),
        all("transfer-encoding").as_slice(),
    ) {
        ([], []) => Ok(Body::Length(0)),
        ([length], []) => {
            let digits = !length.is_empty() && length.iter().all(u8::is_ascii_digit);
            let number = std::str::from_utf8(length)
                .ok()
                .and_then(|text| text.parse().ok());
            number
                .filter(|_| digits)
                .map(Body::Length)
                .ok_or(Malformed("a length that is none"))
        }
        ([], [coding]) if coding.eq_ignore_ascii_case(b"chunked") && version == "HTTP/1.1" => {
            Ok(Body::chunked())
        }
        ([], [_]) => Err(Malformed("a Transfer-Encoding other than chunked")),
        _ => Err(Malformed("more than one length")),
    }
}

/// Splits `http://HOST[:PORT][/PATH][?QUERY]`.
fn absolute(method: &str, target: &[u8]) -> Result<(String, u16, Vec<u8>), Malformed> {
    let scheme = target
        .get(..7)
        .filter(|s| s.eq_ignore_ascii_case(b"http://"));
    if scheme.is_none() {
        return Err(Malformed(
            "not a request to a proxy: it needs http://HOST/PATH or CONNECT",
        ));
    }
    let rest = &target[7..];
    if rest.contains(&b'#') || rest.contains(&b'\\') {
        return Err(Malformed("a target that is no URL"));
    }
    let end = rest
        .iter()
        .position(|b| matches!(b, b'/' | b'?'))
        .unwrap_or(rest.len());
    let (authority, after) = rest.split_at(end);
    let authority = ascii(authority)?;
    without_user(authority)?;
    let bare = !authority.contains(':') || authority.ends_with(']');
    let (host, port) = match bare {
        true => (authority, 80),
        false => split_port(authority).ok_or(Malformed("a port that is none"))?,
    };
    if host.is_empty() {
        return Err(Malformed("no host"));
    }
    let path = match after.first() {
        None if method == "OPTIONS" => b"*".to_vec(),
        Some(b'/') => after.to_vec(),
        _ => [b"/", after].concat(),
    };
    Ok((host.to_owned(), port, path))
}

/// The fields that are not ours and that no `Connection` line keeps to this connection.
fn passed_on(fields: &[(String, &[u8])]) -> Vec<(String, Vec<u8>)> {
    let named: Vec<String> = fields
        .iter()
        .filter(|(name, _)| name == "connection")
        .flat_map(|(_, value)| value.split(|byte| *byte == b','))
        .map(|option| String::from_utf8_lossy(option.trim_ascii()).to_ascii_lowercase())
        .collect();
    let ours = |name: &str| OURS.contains(&name) || named.iter().any(|option| option == name);
    let kept = fields.iter().filter(|(name, _)| !ours(name));
    kept.map(|(name, value)| (name.clone(), value.to_vec()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::target::Host;
    use super::*;
    use proptest::prelude::*;

    fn parse(head: &str) -> Result<Request, Malformed> {
        let length = head_length(head.as_bytes())?.expect("a whole head");
        Request::parse(&head.as_bytes()[..length])
    }

    fn rewritten(head: &str) -> String {
        let request = parse(head).unwrap();
        let target = Target {
            host: Host::parse(&request.host).unwrap(),
            port: request.port,
        };
        String::from_utf8(request.rewritten(&target)).unwrap()
    }

    #[test]
    fn connect_names_host_and_port() {
        let request = parse("CONNECT example.com:443 HTTP/1.1\r\nHost: other:443\r\n\r\n").unwrap();
        assert_eq!((request.host.as_str(), request.port), ("example.com", 443));
        assert_eq!(request.form, Form::Tunnel);
        assert!(parse("CONNECT [::1]:443 HTTP/1.0\r\n\r\n").is_ok());
    }

    #[test]
    fn the_host_line_is_written_from_the_target() {
        assert_eq!(
            rewritten(
                "GET http://Example.com/a?b HTTP/1.1\r\nHost: evil.org\r\nAccept: */*\r\n\r\n"
            ),
            "GET /a?b HTTP/1.1\r\nHost: example.com\r\naccept: */*\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(
            rewritten("GET http://[::1]:8080?q HTTP/1.0\r\n\r\n"),
            "GET /?q HTTP/1.0\r\nHost: [::1]:8080\r\nConnection: close\r\n\r\n"
        );
    }

    #[test]
    fn what_concerns_this_connection_stays_here() {
        let head = "POST http://a/ HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, X-Hop, Content-Length\r\n\
                    X-Hop: 1\r\nX-End: 2\r\nProxy-Authorization: secret\r\nUpgrade: h2c\r\nContent-Length: 3\r\n\r\n";
        assert_eq!(
            rewritten(head),
            "POST / HTTP/1.1\r\nHost: a\r\nx-end: 2\r\nContent-Length: 3\r\nConnection: close\r\n\r\n"
        );
        let head = "POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n";
        assert!(rewritten(head).contains("\r\nTransfer-Encoding: chunked\r\n"));
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        let get = "GET http://a/ HTTP/1.1\r\nHost: a\r\n";
        let wrong = [
            format!("{get}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
            format!("{get}Content-Length: 1\r\nContent-Length: 1\r\n\r\n"),
            format!("{get}Content-Length: 1, 1\r\n\r\n"),
            format!("{get}Content-Length: +1\r\n\r\n"),
            format!("{get}Content-Length: -1\r\n\r\n"),
            format!("{get}Content-Length: 0x1\r\n\r\n"),
            format!("{get}Content-Length:\r\n\r\n"),
            format!("{get}Content-Length: 99999999999999999999\r\n\r\n"),
            format!("{get}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
            format!("{get}Transfer-Encoding: gzip, chunked\r\n\r\n"),
            format!("{get}Transfer-Encoding: identity\r\n\r\n"),
            format!("{get}Transfer-Encoding:\x0bchunked\r\n\r\n"),
            format!("{get}Transfer-Encoding : chunked\r\n\r\n"),
            "GET http://a/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
            format!("{get}Host: b\r\n\r\n"),
            format!("{get}X: a\r\n folded\r\n\r\n"),
            format!("{get}X: a\nY: b\r\n\r\n"),
            format!("{get}X: a\rY: b\r\n\r\n"),
            format!("{get}X: a\0b\r\n\r\n"),
            format!("{get}: a\r\n\r\n"),
            format!("{get}no colon\r\n\r\n"),
            format!("{get}X y: a\r\n\r\n"),
            "GET http://a/ HTTP/1.1\r\n\r\n".to_owned(),
            "GET http://user:secret@a/ HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
            "GET http://allowed.com\\@evil.org/ HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
            "GET http://a#@evil.org/ HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
            "GET http:///path HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
            "GET http://a:/ HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
            "GET http://a:80:90/ HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
            "GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
            "GET  http://a/ HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
            "GET http://a/ b HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
            "GET http://a/ HTTP/1.2\r\nHost: a\r\n\r\n".to_owned(),
            "GET http://a/ HTTP/2.0\r\nHost: a\r\n\r\n".to_owned(),
            "GET http://a/\r\n\r\n".to_owned(),
            "\r\nGET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
            "G\u{e9}T http://a/ HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
            "CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
            "CONNECT http://a:443 HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
            "CONNECT user@a:443 HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
            "CONNECT a:443 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".to_owned(),
        ];
        for head in wrong {
            assert!(parse(&head).is_err(), "{head:?}");
        }
    }

    #[test]
    fn a_head_ends_at_its_empty_line() {
        assert_eq!(head_length(b"GET"), Ok(None));
        assert_eq!(head_length(b"A\r\n\r"), Ok(None));
        assert_eq!(head_length(b"A\r\n\r\nrest"), Ok(Some(5)));
        assert_eq!(head_length(b"A\n\n"), Err(Malformed("a line feed alone")));
        assert_eq!(
            head_length(b"A\rB"),
            Err(Malformed("a carriage return alone"))
        );
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_parser(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            if let Ok(Some(length)) = head_length(&bytes) {
                let _ = Request::parse(&bytes[..length]);
            }
            let _ = Request::parse(&bytes);
        }

        /// Whatever is accepted is written so that a second reader sees one head, to the same host.
        #[test]
        fn what_is_passed_on_is_one_request_to_the_target(
            method in "[A-Z]{1,7}",
            target in "(http://)?[a-z.:@\\[\\]0-9]{0,12}[/?#a-z ]{0,8}",
            fields in proptest::collection::vec("[A-Za-z-]{0,18}:?[ -~\t]{0,20}", 0..5),
        ) {
            let head = format!("{method} {target} HTTP/1.1\r\nHost: x\r\n{}\r\n\r\n", fields.join("\r\n"));
            let Ok(Some(length)) = head_length(head.as_bytes()) else { return Ok(()) };
            let Ok(request) = Request::parse(&head.as_bytes()[..length]) else { return Ok(()) };
            let Ok(host) = Host::parse(&request.host) else { return Ok(()) };
            let target = Target { host, port: request.port };
            if request.form != Form::Tunnel {
                let out = request.rewritten(&target);
                prop_assert_eq!(head_length(&out), Ok(Some(out.len())));
                let text = String::from_utf8(out).unwrap();
                prop_assert_eq!(text.matches("\r\nHost: ").count(), 1);
                let host_line = format!("\r\nHost: {}\r\n", host_field(&target));
                prop_assert!(text.contains(&host_line), "{}", text);
            }
        }
    }
}
