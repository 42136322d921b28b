//! Who gives credentials to a container that has a role, as EKS does: for a token in a file, at a URL.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use crate::{S3, secret};

/// What a container's environment names. It answers until the process ends.
#[derive(Debug)]
pub struct ContainerCredentials {
    address: SocketAddr,
    directory: tempfile::TempDir,
}

impl ContainerCredentials {
    /// Gives out who may use `s3`.
    #[track_caller]
    pub fn of(s3: &S3) -> ContainerCredentials {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a loopback port");
        let address = listener.local_addr().expect("its address");
        let directory = tempfile::tempdir().expect("a directory");
        let token = secret::random();
        std::fs::write(directory.path().join("token"), &token).expect("a file with the token");
        let credentials = format!(
            r#"{{"AccessKeyId": "{}", "SecretAccessKey": "{}", "Token": "{}", "Expiration": "2099-01-01T00:00:00Z"}}"#,
            s3.access_key(),
            s3.secret_key(),
            secret::random()
        );
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // One who went away in the middle does not matter to the next.
                let _ = answer(stream, &token, &credentials);
            }
        });
        ContainerCredentials { address, directory }
    }

    /// What `AWS_CONTAINER_CREDENTIALS_FULL_URI` says.
    pub fn url(&self) -> String {
        format!("http://{}/v1/credentials", self.address)
    }

    /// What `AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE` says.
    pub fn token_file(&self) -> PathBuf {
        self.directory.path().join("token")
    }
}

fn answer(mut stream: TcpStream, token: &str, credentials: &str) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte)? > 0 {
        request.push(byte[0]);
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    let is_known = request.lines().any(|line| {
        let header = line.split_once(": ");
        header.is_some_and(|(name, value)| {
            name.eq_ignore_ascii_case("authorization") && value == token
        })
    });
    let (status, body) = match is_known && request.starts_with("GET /v1/credentials ") {
        true => ("200 OK", credentials),
        false => ("403 Forbidden", "{}"),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}
