//! Speaking HTTP, to the byte.
//!
//! A client that corrects what it is given could not ask for `/files/../../etc/passwd`, send a body that ends
//! early, or read an answer while it is being written. This one sends what it is told and reads what
//! comes: one request for each connection.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::contract;
use crate::events::Events;

/// How long the server may be silent before the test fails. Far above what it is.
const PATIENCE: Duration = Duration::from_secs(60);

/// A request that is being put together.
#[derive(Debug, Clone)]
pub struct Call {
    address: SocketAddr,
    from: Option<Ipv4Addr>,
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    is_described: bool,
}

/// The beginning of an answer, whose body is still to be read.
#[derive(Debug)]
pub struct Opened {
    /// The status.
    pub status: u16,
    /// The headers, their names in small letters.
    pub headers: Vec<(String, String)>,
    body: Content,
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers, their names in small letters.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Call {
    /// `METHOD TARGET`, sent as they are.
    pub fn new(address: SocketAddr, method: &str, target: &str) -> Call {
        Call {
            address,
            from: None,
            method: method.to_owned(),
            target: target.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            is_described: false,
        }
    }

    /// Sent to a server of ours: its answer must be as the API's description says.
    #[must_use]
    pub(crate) fn described(mut self) -> Call {
        self.is_described = true;
        self
    }

    /// Sent from this address of the loopback: strangers are told apart by it.
    #[must_use]
    pub fn from(mut self, address: Ipv4Addr) -> Call {
        self.from = Some(address);
        self
    }

    /// A header, instead of one of that name that was set before.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Call {
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Without that header.
    #[must_use]
    pub fn without(mut self, name: &str) -> Call {
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    /// As the holder of this key.
    #[must_use]
    pub fn key(self, key: &str) -> Call {
        self.header("Authorization", format!("Bearer {key}"))
    }

    /// With this body.
    #[must_use]
    pub fn body(mut self, kind: &str, body: impl Into<Vec<u8>>) -> Call {
        self.body = body.into();
        self.header("Content-Type", kind)
    }

    /// With this body, as JSON.
    #[must_use]
    pub fn json(self, value: &Value) -> Call {
        self.body("application/json", value.to_string())
    }

    /// With a form of a path, if one is given, and a file.
    #[must_use]
    pub fn form(self, path: Option<&str>, name: &str, content: &[u8]) -> Call {
        const BOUNDARY: &str = "----------------a-boundary-that-no-test-has-in-a-file";
        let mut form = Vec::new();
        if let Some(path) = path {
            let head = "Content-Disposition: form-data; name=\"path\"";
            form.extend(format!("--{BOUNDARY}\r\n{head}\r\n\r\n{path}\r\n").into_bytes());
        }
        let head = format!("Content-Disposition: form-data; name=\"file\"; filename=\"{name}\"");
        form.extend(format!("--{BOUNDARY}\r\n{head}\r\n\r\n").into_bytes());
        form.extend(content);
        form.extend(format!("\r\n--{BOUNDARY}--\r\n").into_bytes());
        self.body(&format!("multipart/form-data; boundary={BOUNDARY}"), form)
    }

    /// With only the first `length` bytes of the body, and the promise of all of it.
    #[must_use]
    pub fn cut(mut self, length: usize) -> Call {
        let promised = self.body.len();
        self.body.truncate(length);
        self.header("Content-Length", promised.to_string())
    }

    /// Sends it and reads the whole answer, which must be one that the API's description tells of, if it is a server
    /// of ours that answers.
    #[track_caller]
    pub fn send(self) -> Answer {
        let is_described = self.is_described;
        let (method, target) = (self.method.clone(), self.target.clone());
        let answer = self.try_send();
        let answer = answer.unwrap_or_else(|error| panic!("{method} {target}: {error}"));
        if is_described {
            contract::must_be_kept(&method, &target, &answer);
        }
        answer
    }

    /// The same, where the server may not be there.
    pub fn try_send(self) -> std::io::Result<Answer> {
        self.try_open()?.whole()
    }

    /// Sends it and reads the answer up to its body.
    #[track_caller]
    pub fn open(self) -> Opened {
        let what = format!("{} {}", self.method, self.target);
        self.try_open()
            .unwrap_or_else(|error| panic!("{what}: {error}"))
    }

    fn try_open(self) -> std::io::Result<Opened> {
        let stream = self.write()?;
        Opened::read(stream)
    }

    /// Sends it, and gives the connection with nothing read.
    pub fn write(self) -> std::io::Result<TcpStream> {
        let mut stream = match self.from {
            Some(from) => connect(from, self.address)?,
            None => TcpStream::connect(self.address)?,
        };
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        let set = |name: &str| self.headers.iter().any(|(known, _)| known == name);
        if !set("Host") {
            head.push_str(&format!("Host: {}\r\n", self.address));
        }
        if !set("Connection") {
            head.push_str("Connection: close\r\n");
        }
        if !set("Content-Length") && (!self.body.is_empty() || self.method != "GET") {
            head.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes())?;
        // A server that refuses a large body may stop reading it: what it answered still counts.
        let _ = stream.write_all(&self.body);
        Ok(stream)
    }
}

impl Opened {
    /// Reads an answer up to its body.
    pub fn read(stream: TcpStream) -> std::io::Result<Opened> {
        let mut reader = BufReader::new(stream);
        let (status, headers) = head(&mut reader)?;
        let find = |name: &str| {
            headers
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.as_str())
        };
        let left = match (find("transfer-encoding"), find("content-length")) {
            (Some("chunked"), _) => Left::Chunks(0),
            (_, Some(length)) => Left::Bytes(length.parse().map_err(std::io::Error::other)?),
            _ if status == 204 || status == 304 => Left::Bytes(0),
            _ => Left::Everything,
        };
        Ok(Opened {
            status,
            body: Content { reader, left },
            headers,
        })
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// The body, to be read as it comes.
    pub fn content(&mut self) -> &mut impl Read {
        &mut self.body
    }

    /// The body as server-sent events.
    #[track_caller]
    pub fn events(self) -> Events {
        assert_eq!(self.status, 200, "{:?}", self.headers);
        let kind = self.header("content-type").unwrap_or_default();
        assert!(kind.starts_with("text/event-stream"), "{kind}");
        Events::new(self.body)
    }

    fn whole(mut self) -> std::io::Result<Answer> {
        let mut body = Vec::new();
        self.body.read_to_end(&mut body)?;
        Ok(Answer {
            status: self.status,
            headers: self.headers,
            body,
        })
    }
}

impl Answer {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// It must have this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Answer {
        assert_eq!(self.status, status, "{}", self.text());
        assert!(self.header("x-request-id").is_some(), "{:?}", self.headers);
        self
    }

    /// The body as JSON; the status must be this one.
    #[track_caller]
    pub fn json(self, status: u16) -> Value {
        let answer = self.expect(status);
        let kind = answer.header("content-type").unwrap_or_default();
        assert!(kind.starts_with("application/json"), "{kind}");
        serde_json::from_slice(&answer.body)
            .unwrap_or_else(|error| panic!("{error}: {}", answer.text()))
    }

    /// It must be an error of this status and code, with every field that an error has, and its request's
    /// identifier.
    #[track_caller]
    pub fn error(self, status: u16, code: &str) -> Value {
        let id = self.header("x-request-id").map(str::to_owned);
        let error = self.json(status);
        let fields = error.as_object().expect("an object");
        for name in [
            "error_code",
            "description",
            "error_detail",
            "solution",
            "request_id",
        ] {
            let text = fields.get(name).and_then(Value::as_str);
            assert!(text.is_some_and(|text| !text.is_empty()), "{name}: {error}");
        }
        let known = |name: &String| {
            let optional = "error_link";
            [
                "error_code",
                "description",
                "error_detail",
                "solution",
                "request_id",
                optional,
            ]
            .contains(&name.as_str())
        };
        assert!(fields.keys().all(known), "{error}");
        assert_eq!(error["error_code"], code, "{error}");
        assert_eq!(error["request_id"].as_str(), id.as_deref());
        error
    }

    /// An error for a request that is not valid, whose detail names `field`.
    #[track_caller]
    pub fn invalid(self, field: &str) -> Value {
        let error = self.error(400, "Sandbox.InvalidParameter");
        let detail = error["error_detail"].as_str().unwrap_or_default();
        assert!(detail.contains(field), "{field}: {error}");
        error
    }
}

/// Connects from an address that was chosen.
fn connect(from: Ipv4Addr, to: SocketAddr) -> std::io::Result<TcpStream> {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    bind(&socket, &SocketAddr::from((from, 0)))?;
    connect(&socket, &to)?;
    Ok(TcpStream::from(socket))
}

/// The status, and the headers with their names in small letters.
fn head(reader: &mut BufReader<TcpStream>) -> std::io::Result<(u16, Vec<(String, String)>)> {
    let line = line(reader)?;
    let status = line.split(' ').nth(1).and_then(|text| text.parse().ok());
    let status = status.ok_or_else(|| std::io::Error::other(format!("no status: {line:?}")))?;
    let mut headers = Vec::new();
    loop {
        let line = self::line(reader)?;
        if line.is_empty() {
            return Ok((status, headers));
        }
        let (name, value) = line
            .split_once(':')
            .ok_or_else(|| std::io::Error::other(format!("not a header: {line:?}")))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

fn line(reader: &mut BufReader<TcpStream>) -> std::io::Result<String> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

fn find<'h>(headers: &'h [(String, String)], name: &str) -> Option<&'h str> {
    headers
        .iter()
        .find(|(known, _)| known == name)
        .map(|(_, value)| value.as_str())
}

/// A body that is read as it comes.
#[derive(Debug)]
pub(crate) struct Content {
    reader: BufReader<TcpStream>,
    left: Left,
}

/// What of a body is still to come.
#[derive(Debug)]
enum Left {
    /// So much.
    Bytes(u64),
    /// So much of this chunk, and others.
    Chunks(u64),
    /// Until the connection ends.
    Everything,
}

impl Read for Content {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if let Left::Chunks(0) = self.left {
            let size = line(&mut self.reader)?;
            let size = u64::from_str_radix(&size, 16).map_err(std::io::Error::other)?;
            self.left = match size {
                0 => Left::Bytes(0),
                size => Left::Chunks(size),
            };
        }
        let (Left::Bytes(left) | Left::Chunks(left)) = &mut self.left else {
            return self.reader.read(buffer);
        };
        if *left == 0 || buffer.is_empty() {
            return Ok(0);
        }
        let most = usize::try_from(*left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let read = self.reader.read(&mut buffer[..most])?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        *left -= read as u64;
        if let Left::Chunks(0) = self.left {
            line(&mut self.reader)?;
        }
        Ok(read)
    }
}
