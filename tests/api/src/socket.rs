//! WebSockets, as a client has them.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest as _;
use tungstenite::http::HeaderValue;
use tungstenite::protocol::{Message, WebSocket};

use crate::{Call, Server};

/// How long the server may be silent before the test fails. Far above what it is.
const PATIENCE: Duration = Duration::from_secs(60);

/// A WebSocket to the server.
#[derive(Debug)]
pub struct Socket {
    socket: WebSocket<TcpStream>,
    /// Bytes that came and were not asked for yet.
    unread: Vec<u8>,
}

impl Server {
    /// Opens a WebSocket at a path below `/api/v1`, as the admin.
    #[track_caller]
    pub fn socket(&self, path: &str) -> Socket {
        self.socket_as(self.admin(), path)
    }

    /// The same, as the holder of this key.
    #[track_caller]
    pub fn socket_as(&self, key: &str, path: &str) -> Socket {
        let address = self.address();
        let mut request = format!("ws://{address}/api/v1{path}")
            .into_client_request()
            .expect("a request");
        let key = HeaderValue::from_str(&format!("Bearer {key}")).expect("a key");
        request.headers_mut().insert("Authorization", key);
        let stream = TcpStream::connect(address).expect("connect");
        stream.set_read_timeout(Some(PATIENCE)).expect("patience");
        stream.set_nodelay(true).expect("no delay");
        let (socket, _) = tungstenite::client(request, stream)
            .unwrap_or_else(|error| panic!("{path}: {error}: {}", self.log()));
        Socket {
            socket,
            unread: Vec::new(),
        }
    }

    /// Opens a terminal in a session, with this query.
    #[track_caller]
    pub fn terminal(&self, session: &str, query: &str) -> Socket {
        self.socket(&format!("/sessions/{session}/terminal?{query}"))
    }

    /// Opens a terminal on which a command runs.
    #[track_caller]
    pub fn terminal_with(&self, session: &str, command: &str) -> Socket {
        self.terminal(session, &format!("command={}", escaped(command)))
    }

    /// The request for a WebSocket below `/api/v1`, as the admin, to be answered as any other.
    #[track_caller]
    pub fn asking_for_socket(&self, path: &str) -> Call {
        self.call("GET", &format!("/api/v1{path}"))
            .header("Connection", "Upgrade")
            .header("Upgrade", "websocket")
            .header("Sec-WebSocket-Version", "13")
            .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
    }
}

/// A text as it stands in a query.
pub fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte.is_ascii_alphanumeric() {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

impl Socket {
    /// Sends a frame.
    #[track_caller]
    pub fn send(&mut self, message: Message) {
        self.socket.send(message).expect("it is listened to");
    }

    /// Types.
    #[track_caller]
    pub fn say(&mut self, text: &str) {
        self.send(Message::binary(text.as_bytes().to_vec()));
    }

    /// Tells the terminal's new size.
    #[track_caller]
    pub fn resize(&mut self, columns: u16, rows: u16) {
        let text = json!({ "resize": { "columns": columns, "rows": rows } });
        self.send(Message::text(text.to_string()));
    }

    /// The next frame that is no ping.
    #[track_caller]
    pub fn heard(&mut self) -> Message {
        loop {
            match self.socket.read() {
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                Ok(message) => return message,
                Err(error) => panic!("no frame: {error}; unread {:?}", self.unread()),
            }
        }
    }

    /// Waits until `text` was shown; what came after it is still to be read.
    #[track_caller]
    pub fn until(&mut self, text: &str) -> String {
        loop {
            let shown = self.unread();
            if let Some(place) = shown.find(text) {
                let before = shown[..place].to_owned();
                self.unread = shown.as_bytes()[place + text.len()..].to_vec();
                return before;
            }
            match self.heard() {
                Message::Binary(bytes) => self.unread.extend_from_slice(&bytes),
                other => panic!(
                    "{other:?} instead of {text:?}; it showed {:?}",
                    self.unread()
                ),
            }
        }
    }

    /// Bytes of which so many come.
    #[track_caller]
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        while self.unread.len() < count {
            match self.heard() {
                Message::Binary(bytes) => self.unread.extend_from_slice(&bytes),
                other => panic!("{other:?} instead of bytes"),
            }
        }
        let rest = self.unread.split_off(count);
        std::mem::replace(&mut self.unread, rest)
    }

    /// Waits for the program's end: everything that it still showed, and its exit status.
    #[track_caller]
    pub fn end(&mut self) -> (String, i64) {
        loop {
            match self.heard() {
                Message::Binary(bytes) => self.unread.extend_from_slice(&bytes),
                Message::Text(text) => {
                    let said: Value = serde_json::from_str(&text).expect("JSON");
                    let status = said["exit_code"].as_i64().expect("an exit status");
                    assert_eq!(said, json!({ "exit_code": status }));
                    assert_eq!(self.closed(), (1000, String::new()));
                    let shown = self.unread().replace("\r\n", "\n");
                    return (shown, status);
                }
                other => panic!("{other:?}; it showed {:?}", self.unread()),
            }
        }
    }

    /// Waits until the server closes it, whatever comes before: the code and the reason.
    #[track_caller]
    pub fn closed(&mut self) -> (u16, String) {
        loop {
            if let Message::Close(frame) = self.heard() {
                let frame = frame.expect("a code");
                // It is answered, and then the connection ends.
                while self.socket.read().is_ok() {}
                return (frame.code.into(), frame.reason.to_string());
            }
        }
    }

    /// Waits until the connection ends, in whatever way.
    pub fn is_cut(&mut self) -> bool {
        use std::io::ErrorKind::{TimedOut, WouldBlock};
        loop {
            match self.socket.read() {
                Ok(_) => {}
                Err(tungstenite::Error::Io(error)) => {
                    return !matches!(error.kind(), TimedOut | WouldBlock);
                }
                Err(_) => return true,
            }
        }
    }

    /// Leaves in order.
    pub fn leave(mut self) {
        let _ = self.socket.close(None);
        while self.socket.read().is_ok() {}
    }

    /// Sends these very bytes.
    #[track_caller]
    pub fn forge(&mut self, bytes: &[u8]) {
        self.socket.get_mut().write_all(bytes).expect("send");
    }

    fn unread(&self) -> String {
        String::from_utf8_lossy(&self.unread).into_owned()
    }
}
