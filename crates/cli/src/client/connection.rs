//! Asking a server.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Response, StatusCode, Url};
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;

use super::address::Address;
use super::error::{Cause, ClientError, Refused};
use super::key::Key;
use super::patience;
use super::request::Request;
use super::stream::{Interruptions, Stream};
use super::upload::Upload;

/// How long a server may take to take a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// After so long without a word the other machine is asked whether it is still there.
const SILENCE: Duration = Duration::from_secs(30);

/// The longest answer that is read whole. The largest are results, of which the server keeps a megabyte each.
const LONGEST: usize = 64 << 20;

/// How often a download may be sent on.
const MOST_HOPS: usize = 5;

/// A way to one server.
#[derive(Debug)]
pub(crate) struct Client {
    runtime: Runtime,
    http: reqwest::Client,
    address: Address,
    key: Option<Key>,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Its status.
    pub(crate) status: u16,
    /// What it says.
    pub(crate) body: Bytes,
    server: String,
}

impl Client {
    pub(super) fn new(address: Address, key: Option<Key>) -> Result<Client, ClientError> {
        let set_up = |source: Cause| ClientError::SetUp {
            server: address.to_string(),
            source,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| set_up(Cause::of(&error)))?;
        let http = http(&address).map_err(|error| set_up(Cause::of(&error)))?;
        Ok(Client {
            runtime,
            http,
            address,
            key,
        })
    }

    /// Which server it is, for people.
    pub(crate) fn server(&self) -> String {
        self.address.to_string()
    }

    /// Asks; the answer must be that it was done.
    pub(crate) fn send(&self, request: &Request) -> Result<Answer, ClientError> {
        self.runtime.block_on(async {
            let response = self.answer(request).await?;
            self.whole(self.done(response).await?).await
        })
    }

    /// Asks; whatever is answered is the answer.
    pub(crate) fn ask(&self, request: &Request) -> Result<Answer, ClientError> {
        self.runtime
            .block_on(async { self.whole(self.answer(request).await?).await })
    }

    /// Asks, and is told before the answer is there when somebody wants us to end.
    pub(crate) fn send_unless(
        &self,
        request: &Request,
        interruptions: &mut Interruptions,
    ) -> Option<Result<Answer, ClientError>> {
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                _ = interruptions.next() => None,
                answer = async {
                    let response = self.answer(request).await?;
                    self.whole(self.done(response).await?).await
                } => Some(answer),
            }
        })
    }

    /// Asks for something that comes in pieces.
    pub(crate) fn open(&self, request: &Request) -> Result<Stream<'_>, ClientError> {
        let response = self
            .runtime
            .block_on(async { self.done(self.answer(request).await?).await })?;
        Ok(Stream::new(&self.runtime, response, self.server()))
    }

    /// Asks for a file: where the server sends us on for it, it is asked for there, without the key.
    pub(crate) fn download(&self, request: &Request) -> Result<Stream<'_>, ClientError> {
        let (response, from) = self.runtime.block_on(async {
            let response = self.answer(request).await?;
            match response.status() {
                StatusCode::TEMPORARY_REDIRECT => self.sent_on(request, response).await,
                _ => Ok((self.done(response).await?, self.server())),
            }
        })?;
        Ok(Stream::new(&self.runtime, response, from))
    }

    /// Sends a file in a form.
    pub(crate) fn upload(&self, request: &Request, upload: Upload) -> Result<Answer, ClientError> {
        self.runtime.block_on(async {
            let (kind, body, failed) = upload.into_body();
            let request = self.built(request).header(CONTENT_TYPE, kind).body(body);
            let sent = request.send().await;
            // That what we read broke off is the reason for everything that comes of it.
            if let Ok(error) = failed.try_recv() {
                return Err(error);
            }
            let response = sent.map_err(|error| self.unreachable(&error))?;
            self.whole(self.done(response).await?).await
        })
    }

    /// Watches for signals that would end us.
    pub(crate) fn interruptions(&self) -> std::io::Result<Interruptions> {
        let _entered = self.runtime.enter();
        Interruptions::watch()
    }

    /// Waits.
    pub(crate) fn wait(&self, duration: Duration) {
        self.runtime
            .block_on(async { tokio::time::sleep(duration).await });
    }

    fn built(&self, request: &Request) -> reqwest::RequestBuilder {
        let mut url = self
            .address
            .below(request.segments.iter().map(String::as_str));
        if !request.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&request.query);
        }
        let mut built = self.http.request(request.method.clone(), url);
        if let Some(key) = &self.key {
            built = built.header(AUTHORIZATION, key.header());
        }
        for (name, value) in &request.headers {
            built = built.header(*name, value);
        }
        match &request.json {
            Some(body) => built
                .header(CONTENT_TYPE, "application/json")
                .body(body.clone()),
            None => built,
        }
    }

    /// The answer to a request, which is asked again where the server wants that and it is safe.
    async fn answer(&self, request: &Request) -> Result<Response, ClientError> {
        let mut times = 0;
        loop {
            let sent = self.built(request).send().await;
            let response = sent.map_err(|error| self.unreachable(&error))?;
            let wait = patience::wait(request.repeat, response.status(), response.headers(), times);
            let Some(wait) = wait else {
                return Ok(response);
            };
            tokio::time::sleep(wait).await;
            times += 1;
        }
    }

    /// An answer that says that it was done; any other is an error.
    async fn done(&self, response: Response) -> Result<Response, ClientError> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if status.is_redirection() {
            let to = target(&response, response.url());
            return Err(ClientError::Elsewhere {
                server: self.server(),
                to: to.map_or_else(|| "nowhere".to_owned(), |url| place(&url)),
            });
        }
        let body = self.whole(response).await?.body;
        Err(match Refused::read(status.as_u16(), &body) {
            Some(refused) => ClientError::Refused(Box::new(refused)),
            None => ClientError::Stranger {
                server: self.server(),
                status: status.as_u16(),
            },
        })
    }

    async fn whole(&self, response: Response) -> Result<Answer, ClientError> {
        read(response, self.server()).await
    }

    /// The answer of whoever the server sends us to, and who that is.
    async fn sent_on(
        &self,
        request: &Request,
        mut response: Response,
    ) -> Result<(Response, String), ClientError> {
        let ranges = request.headers.iter().filter(|(name, _)| *name == "range");
        let mut headers = HeaderMap::new();
        for (name, value) in ranges {
            headers.extend(value.parse().ok().map(|value| {
                let name = reqwest::header::HeaderName::from_static(name);
                (name, value)
            }));
        }
        for _ in 0..MOST_HOPS {
            let Some(url) = target(&response, response.url()) else {
                break;
            };
            let from = place(&url);
            // The link lets whoever has it read the file: its host alone is told.
            let there = Address::parse(&from)?;
            let http = http(&there).map_err(|error| ClientError::SetUp {
                server: from.clone(),
                source: Cause::of(&error),
            })?;
            let sent = http.get(url).headers(headers.clone()).send().await;
            response = sent.map_err(|error| unreachable_at(&there, &error))?;
            let status = response.status();
            if status.is_success() {
                return Ok((response, from));
            }
            if !status.is_redirection() {
                let body = read(response, from.clone()).await?.body;
                let status = status.as_u16();
                return Err(match Refused::read(status, &body) {
                    Some(refused) => ClientError::Refused(Box::new(refused)),
                    None => ClientError::Stranger {
                        server: from,
                        status,
                    },
                });
            }
        }
        Err(ClientError::Stranger {
            server: self.server(),
            status: response.status().as_u16(),
        })
    }

    fn unreachable(&self, error: &reqwest::Error) -> ClientError {
        unreachable_at(&self.address, error)
    }
}

impl Answer {
    /// It as the server wrote it, which must be JSON.
    pub(crate) fn json(&self) -> Result<&[u8], ClientError> {
        self.read::<serde::de::IgnoredAny>()?;
        Ok(self.body.trim_ascii())
    }

    /// What it says, understood.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        self.understand(&self.body)
    }

    /// What a part of it says, understood.
    pub(crate) fn understand<T: DeserializeOwned>(&self, json: &[u8]) -> Result<T, ClientError> {
        serde_json::from_slice(json).map_err(|source| ClientError::Unreadable {
            server: self.server.clone(),
            source,
        })
    }
}

/// A client for one address. It follows nobody, and what is plain goes there directly: a proxy on the way
/// would read the key.
fn http(address: &Address) -> Result<reqwest::Client, reqwest::Error> {
    // Once for the process; it is no error when another part of it was first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // A resolver that is asked for it could name any machine.
    let this_machine = [
        SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        SocketAddr::from((Ipv6Addr::LOCALHOST, 0)),
    ];
    let mut builder = reqwest::Client::builder()
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(CONNECT)
        .tcp_keepalive(SILENCE)
        .user_agent(concat!("sandbox/", env!("CARGO_PKG_VERSION")))
        .resolve_to_addrs("localhost", &this_machine);
    if address.is_plain() || address.is_loopback() {
        builder = builder.no_proxy();
    }
    if address.is_plain() {
        // The system's authorities are many files, and nobody will be asked for a certificate.
        builder = builder.tls_certs_only([]);
    }
    builder.build()
}

async fn read(mut response: Response, server: String) -> Result<Answer, ClientError> {
    let status = response.status().as_u16();
    let mut body = Vec::new();
    loop {
        let piece = response
            .chunk()
            .await
            .map_err(|error| ClientError::Broken {
                server: server.clone(),
                source: Cause::of(&error),
            })?;
        let Some(piece) = piece else {
            let body = body.into();
            return Ok(Answer {
                status,
                body,
                server,
            });
        };
        if body.len() + piece.len() > LONGEST {
            return Err(ClientError::TooLong { server });
        }
        body.extend_from_slice(&piece);
    }
}

fn unreachable_at(address: &Address, error: &reqwest::Error) -> ClientError {
    let server = address.to_string();
    let source = match error.is_timeout() {
        true => Cause("it does not answer in time".to_owned()),
        false => Cause::of(error),
    };
    match error.is_connect() || error.is_timeout() {
        true => ClientError::Unreachable {
            server,
            local: address.is_loopback(),
            source,
        },
        false => ClientError::Broken { server, source },
    }
}

/// Where an answer sends us.
fn target(response: &Response, from: &Url) -> Option<Url> {
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    let url = from.join(location).ok()?;
    matches!(url.scheme(), "http" | "https").then_some(url)
}

/// Who is at a URL, without what is asked of them.
fn place(url: &Url) -> String {
    url.origin().ascii_serialization()
}
