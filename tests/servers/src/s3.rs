//! An S3 store: `s3s-fs`, which keeps a bucket as a directory.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use crate::account::Account;
use crate::answer::{self, Server};
use crate::supervisor::{Ending, Supervisor};
use crate::{program, secret};

/// An S3 store without a bucket.
#[derive(Debug)]
pub struct S3 {
    server: Server,
    port: u16,
    access_key: String,
    secret_key: String,
}

impl S3 {
    /// Makes a new store and waits until it answers.
    #[track_caller]
    pub fn start() -> S3 {
        let (access_key, secret_key) = (secret::random(), secret::random());
        let (port, server) = answer::on_a_free_port(
            |port| prepare(port, &access_key, &secret_key),
            |port| answers(port, &access_key),
        );
        S3 {
            server,
            port,
            access_key,
            secret_key,
        }
    }

    /// One store for all tests of this process. It goes when the process does.
    pub fn shared() -> &'static S3 {
        static SHARED: OnceLock<S3> = OnceLock::new();
        SHARED.get_or_init(S3::start)
    }

    /// Its endpoint. Buckets are named in the path, not the host.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Who may use it.
    pub fn access_key(&self) -> &str {
        &self.access_key
    }

    /// The secret of the one who may.
    pub fn secret_key(&self) -> &str {
        &self.secret_key
    }

    /// A new empty bucket; gives its name.
    #[track_caller]
    pub fn fresh_bucket(&self) -> String {
        let name = secret::fresh_name();
        let bucket = self.directory().join("data").join(&name);
        std::fs::create_dir(bucket).expect("a new bucket");
        name
    }

    /// Shuts it down. (Its own orderly shutdown, on SIGINT, waits for clients that stay connected.)
    pub fn stop(&mut self) {
        self.server.supervisor.end(Ending::Terminate);
    }

    /// Kills it.
    pub fn kill(&mut self) {
        self.server.supervisor.end(Ending::Kill);
    }

    /// Starts it again on the same data and port, after ending it if it still runs.
    #[track_caller]
    pub fn restart(&mut self) {
        self.stop();
        let (port, access_key) = (self.port, &self.access_key);
        self.server.bring_up_again(|| answers(port, access_key));
    }

    /// Where it keeps everything; the buckets are in `data`.
    pub fn directory(&self) -> &Path {
        self.server.supervisor.directory()
    }
}

#[track_caller]
fn prepare(port: u16, access_key: &str, secret_key: &str) -> Server {
    let supervisor = Supervisor::new(Account::OWN);
    let data = supervisor.directory().join("data");
    std::fs::create_dir(&data).expect("a directory for buckets");
    let command = vec![
        program::need("s3s-fs").into(),
        "--host=127.0.0.1".into(),
        format!("--port={port}").into(),
        // In sight of everyone on this machine; it is worth nothing when the test is over.
        format!("--access-key={access_key}").into(),
        format!("--secret-key={secret_key}").into(),
        data.into(),
    ];
    Server {
        supervisor,
        command,
    }
}

/// Asks with the right name and a wrong signature: only this very server knows the name, and would
/// complain of the signature.
fn answers(port: u16, access_key: &str) -> bool {
    ask(port, access_key).is_ok_and(|answer| answer.contains("SignatureDoesNotMatch"))
}

fn ask(port: u16, access_key: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    write!(
        stream,
        "GET /?AWSAccessKeyId={access_key}&Expires=4102444800&Signature=AAAA HTTP/1.1\r\n\
         Host: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_port_lost_to_another_is_replaced_by_the_next() {
        let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let taken = other.local_addr().unwrap().port();
        let mut ports = vec![taken];
        let (port, _server) = answer::on_a_free_port(
            |free| prepare(ports.pop().unwrap_or(free), "name", "secret"),
            |port| answers(port, "name"),
        );
        assert_ne!(port, taken);
        assert!(answers(port, "name") && !answers(port, "another"));
    }
}
