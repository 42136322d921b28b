//! A control plane that answers as it is told, for what the real one never does when it is wanted.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use serde_json::Value;

use super::PATIENCE;

/// A report that came.
#[derive(Debug, Clone)]
pub struct Told {
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub text: String,
    pub body: Value,
    pub answered: u16,
}

impl Told {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// What it is: the last part of its path.
    pub fn what(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

type Said = Arc<(Mutex<Vec<Told>>, Condvar)>;

/// Listens until the test ends.
#[derive(Debug)]
pub struct ControlPlane {
    pub address: SocketAddr,
    said: Said,
}

impl ControlPlane {
    /// One that takes everything.
    pub fn start() -> ControlPlane {
        ControlPlane::answering(|_, _| 201)
    }

    /// One that answers with this status, given the path and how many came there before.
    pub fn answering(answer: impl Fn(&str, usize) -> u16 + Send + 'static) -> ControlPlane {
        const ERROR: &str = r#"{"error_code":"Internal.Word","description":"no"}"#;
        ControlPlane::saying(ERROR, answer)
    }

    /// One with something in front of it that answers so, in words of its own where it refuses.
    pub fn behind(answer: impl Fn(&str, usize) -> u16 + Send + 'static) -> ControlPlane {
        ControlPlane::saying("<html>No</html>", answer)
    }

    fn saying(
        error: &'static str,
        answer: impl Fn(&str, usize) -> u16 + Send + 'static,
    ) -> ControlPlane {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let said = Said::default();
        let heard = Arc::clone(&said);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // One at a time: they are few.
                let _ = attend(stream, &heard, error, &answer);
            }
        });
        ControlPlane { address, said }
    }

    /// Everything that was told.
    pub fn told(&self) -> Vec<Told> {
        let (said, _) = &*self.said;
        said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What was told of this kind, such as `result`.
    pub fn told_of(&self, what: &str) -> Vec<Told> {
        let told = self.told().into_iter();
        told.filter(|told| told.what() == what).collect()
    }

    /// Waits until something like this was told.
    #[track_caller]
    pub fn until(&self, what: &str, like: impl Fn(&Told) -> bool) -> Told {
        let (said, more) = &*self.said;
        let deadline = Instant::now() + PATIENCE;
        let mut told = said.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let found = told.iter().find(|told| told.what() == what && like(told));
            if let Some(found) = found {
                return found.clone();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let brief = |told: &Told| format!("{} {} {:.200}", told.answered, told.path, told.text);
            let all: Vec<_> = told.iter().map(brief).collect();
            assert!(!left.is_zero(), "nobody told such a {what}: {all:#?}");
            (told, _) = more
                .wait_timeout(told, left)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The result of an execution, when it was taken.
    #[track_caller]
    pub fn result(&self, id: &str) -> Value {
        let path = format!("/internal/executions/{id}/result");
        self.until("result", |told| told.path == path && told.answered < 300)
            .body
    }
}

fn attend(
    stream: TcpStream,
    said: &Said,
    error: &str,
    answer: &impl Fn(&str, usize) -> u16,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let text = String::from_utf8_lossy(&body).into_owned();
    let (list, more) = &**said;
    let status = {
        let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
        let before = list.iter().filter(|told| told.path == path).count();
        let answered = answer(&path, before);
        list.push(Told {
            body: serde_json::from_str(&text).unwrap_or_default(),
            path,
            headers,
            text,
            answered,
        });
        answered
    };
    let content = if status < 400 { "{}" } else { error };
    let length = content.len();
    let reply = format!(
        "HTTP/1.1 {status} Word\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{content}"
    );
    reader.get_mut().write_all(reply.as_bytes())?;
    more.notify_all();
    Ok(())
}
