//! Credentials that nobody wrote down.

use std::io::Read as _;
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use sandbox_store::objects::{Access, Location, Objects, ObjectsError, Role};
use sandbox_test_servers::{ContainerCredentials, S3};

use crate::store::access;

/// How `server` is got at by a role.
fn by(role: Role, server: &S3) -> Access {
    Access {
        credentials: None,
        role,
        ..access(server)
    }
}

fn pod(container: &ContainerCredentials) -> Role {
    Role::Pod {
        url: container.url(),
        token_file: container.token_file().to_str().unwrap().to_owned(),
    }
}

async fn open(access: &Access) -> Result<Objects, ObjectsError> {
    let bucket = S3::shared().fresh_bucket();
    let location: Location = format!("s3:{bucket}").parse().unwrap();
    Objects::open(&location, access).await
}

#[tokio::test]
async fn a_container_asks_who_it_is_where_its_environment_says() {
    let server = S3::shared();
    let container = ContainerCredentials::of(server);
    open(&by(pod(&container), server)).await.unwrap();
    std::fs::write(container.token_file(), "of-another").unwrap();
    let error = open(&by(pod(&container), server)).await.unwrap_err();
    assert!(!error.to_string().contains("of-another"), "{error}");
}

#[tokio::test]
async fn a_key_that_was_given_goes_over_a_role() {
    let server = S3::shared();
    // Nobody is there to be asked.
    let container = Role::Pod {
        url: String::from("http://127.0.0.1:1/v1/credentials"),
        token_file: String::from("/nowhere"),
    };
    let access = Access {
        role: container,
        ..access(server)
    };
    open(&access).await.unwrap();
}

#[tokio::test]
async fn a_web_identity_is_exchanged_at_the_token_service_and_by_tls_alone() {
    let service = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = service.local_addr().unwrap();
    let asked = std::thread::spawn(move || {
        let (mut stream, _) = service.accept().unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let mut first = [0];
        stream.read_exact(&mut first).unwrap();
        first[0]
    });
    let token = tempfile::NamedTempFile::new().unwrap();
    let role = |scheme: &str| Role::WebIdentity {
        token_file: token.path().to_str().unwrap().to_owned(),
        arn: String::from("arn:aws:iam::123456789012:role/sandbox"),
        session_name: None,
        endpoint: Some(format!("{scheme}://{address}")),
    };
    let server = S3::shared();
    open(&by(role("http"), server)).await.unwrap_err();
    open(&by(role("https"), server)).await.unwrap_err();
    const HANDSHAKE: u8 = 0x16;
    assert_eq!(asked.join().unwrap(), HANDSHAKE);
}
