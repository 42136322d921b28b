//! A client of the control plane that costs next to nothing itself.
//!
//! One connection that stays open, a request at a time, short ones sent in one piece: what is timed is
//! the server. An answer that was not expected is an error that names the request.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::stage::StageError;

/// How long the server may be silent.
const PATIENCE: Duration = Duration::from_secs(120);

/// How much is read and written at once.
const PIECE: usize = 256 << 10;

/// What separates the parts of a form. No file here has it.
const BOUNDARY: &str = "----------------what-no-file-here-contains";

/// A connection, as the holder of a key.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
    key: String,
}

/// Something to be asked.
struct Request<'r> {
    method: &'r str,
    target: &'r str,
    kind: &'r str,
    body: Box<dyn Read + 'r>,
    length: u64,
}

/// The beginning of an answer, whose body is still to be read.
struct Head {
    status: u16,
    length: u64,
    location: Option<String>,
}

impl Client {
    /// Connects.
    pub fn connect(address: SocketAddr, key: &str) -> Result<Client, StageError> {
        let connect = || -> io::Result<TcpStream> {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            Ok(stream)
        };
        let stream = connect().map_err(|source| StageError::Request {
            request: format!("connecting to {address}"),
            source,
        })?;
        Ok(Client {
            stream: BufReader::with_capacity(PIECE, stream),
            address,
            key: key.to_owned(),
        })
    }

    /// `GET` below `/api/v1`.
    pub fn get(&mut self, path: &str) -> Result<Value, StageError> {
        self.json("GET", path, "", 200)
    }

    /// `POST` below `/api/v1`, which is to be answered with this status.
    pub fn post(&mut self, path: &str, body: &Value, status: u16) -> Result<Value, StageError> {
        self.json("POST", path, &body.to_string(), status)
    }

    /// The same, whatever is answered: the status and the JSON.
    pub fn try_post(&mut self, path: &str, body: &Value) -> Result<(u16, Value), StageError> {
        let (target, body) = (format!("/api/v1{path}"), body.to_string());
        let request = Request::json("POST", &target, &body);
        let (status, body) = self.whole(request)?;
        let value = serde_json::from_slice(&body);
        let value = value.map_err(|_| unexpected(&format!("POST {target}"), status, &body))?;
        Ok((status, value))
    }

    /// `DELETE` below `/api/v1`.
    pub fn delete(&mut self, path: &str) -> Result<(), StageError> {
        self.json("DELETE", path, "", 200).map(drop)
    }

    /// Removes a file from a session's workspace.
    pub fn delete_file(&mut self, session: &str, path: &str) -> Result<(), StageError> {
        let target = format!("/api/v1/sessions/{session}/files/{path}");
        let request = Request::json("DELETE", &target, "");
        self.expect(request, 204).map(drop)
    }

    /// Puts a file of that length into a session's workspace, as it is read.
    pub fn upload(
        &mut self,
        session: &str,
        path: &str,
        content: impl Read,
        length: u64,
    ) -> Result<(), StageError> {
        let part = format!("--{BOUNDARY}\r\nContent-Disposition: form-data;");
        let head = format!(
            "{part} name=\"path\"\r\n\r\n{path}\r\n{part} name=\"file\"; filename=\"file\"\r\n\r\n"
        );
        let tail = format!("\r\n--{BOUNDARY}--\r\n");
        let total = head.len() as u64 + length + tail.len() as u64;
        let form = head.as_bytes().chain(content).chain(tail.as_bytes());
        let request = Request {
            method: "POST",
            target: &format!("/api/v1/sessions/{session}/files/upload"),
            kind: &format!("multipart/form-data; boundary={BOUNDARY}"),
            body: Box::new(form),
            length: total,
        };
        self.expect(request, 200).map(drop)
    }

    /// Gets a file out of a session's workspace, from where the server says, and drops it as it comes:
    /// how long it was.
    pub fn download(&mut self, session: &str, path: &str) -> Result<u64, StageError> {
        let mut target = format!("/api/v1/sessions/{session}/files/{path}");
        loop {
            let request = format!("GET {target}");
            let failed = |source| StageError::Request { request, source };
            let head = self.ask(Request::json("GET", &target, ""));
            let head = match head {
                Ok(head) => head,
                Err(source) => return Err(failed(source)),
            };
            if head.status == 200 {
                self.pass_over(head.length).map_err(failed)?;
                return Ok(head.length);
            }
            let body = self.body(head.length).map_err(failed)?;
            let own = format!("http://{}", self.address);
            target = match head.location {
                Some(location) if head.status == 307 => location.replacen(&own, "", 1),
                _ => return Err(unexpected(&format!("GET {target}"), head.status, &body)),
            };
        }
    }

    fn json(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
        status: u16,
    ) -> Result<Value, StageError> {
        let target = format!("/api/v1{path}");
        let body = self.expect(Request::json(method, &target, body), status)?;
        serde_json::from_slice(&body)
            .map_err(|_| unexpected(&format!("{method} {target}"), status, &body))
    }

    /// Asks, and reads the whole of an answer of that status.
    fn expect(&mut self, request: Request<'_>, status: u16) -> Result<Vec<u8>, StageError> {
        let name = request.name();
        match self.whole(request)? {
            (found, body) if found == status => Ok(body),
            (found, body) => Err(unexpected(&name, found, &body)),
        }
    }

    /// Asks, and reads the whole of the answer.
    fn whole(&mut self, request: Request<'_>) -> Result<(u16, Vec<u8>), StageError> {
        let name = request.name();
        let answered = self.ask(request).and_then(|head| {
            let body = self.body(head.length)?;
            Ok((head.status, body))
        });
        answered.map_err(|source| StageError::Request {
            request: name,
            source,
        })
    }

    fn ask(&mut self, request: Request<'_>) -> io::Result<Head> {
        let Request {
            method,
            target,
            kind,
            mut body,
            length,
        } = request;
        let (address, key) = (self.address, &self.key);
        let mut piece = format!(
            "{method} {target} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
        )
        .into_bytes();
        let mut left = length;
        loop {
            let room = (PIECE - piece.len()) as u64;
            left -= (&mut body).take(left.min(room)).read_to_end(&mut piece)? as u64;
            self.stream.get_mut().write_all(&piece)?;
            piece.clear();
            if left == 0 {
                return self.head();
            }
        }
    }

    fn head(&mut self) -> io::Result<Head> {
        let invalid = || io::Error::new(io::ErrorKind::InvalidData, "that is no answer");
        let line = self.line()?;
        let status = line.split(' ').nth(1).and_then(|word| word.parse().ok());
        let mut head = Head {
            status: status.ok_or_else(invalid)?,
            length: 0,
            location: None,
        };
        loop {
            let line = self.line()?;
            match line.split_once(": ") {
                Some(("content-length", value)) => {
                    head.length = value.parse().map_err(|_| invalid())?;
                }
                Some(("location", value)) => head.location = Some(value.to_owned()),
                // Nothing that is asked here is answered so.
                Some(("transfer-encoding", _)) => return Err(invalid()),
                Some(_) => {}
                None => return Ok(head),
            }
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }

    fn body(&mut self, length: u64) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        let read = (&mut self.stream).take(length).read_to_end(&mut body)? as u64;
        match read == length {
            true => Ok(body),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn pass_over(&mut self, mut length: u64) -> io::Result<()> {
        while length > 0 {
            let here = self.stream.fill_buf()?.len();
            if here == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let passed = length.min(here as u64);
            self.stream.consume(usize::try_from(passed).unwrap_or(here));
            length -= passed;
        }
        Ok(())
    }
}

impl<'r> Request<'r> {
    /// One with a short body.
    fn json(method: &'r str, target: &'r str, body: &'r str) -> Request<'r> {
        Request {
            method,
            target,
            kind: "application/json",
            length: body.len() as u64,
            body: Box::new(body.as_bytes()),
        }
    }

    fn name(&self) -> String {
        format!("{} {}", self.method, self.target)
    }
}

fn unexpected(request: &str, status: u16, body: &[u8]) -> StageError {
    StageError::Output {
        command: request.to_owned(),
        output: format!("{status} {}", String::from_utf8_lossy(body)),
    }
}
