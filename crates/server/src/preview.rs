//! What passes between a client and a server that untrusted code has started.
//!
//! The client is somebody with a key, perhaps a browser, and to a browser a preview is at our own address.
//! So nothing of ours goes in: not the key, not our cookies. And nothing comes out by which a page could
//! speak as us: every answer makes its page an origin of its own, what an answer could set for the whole
//! of our origin is taken out, and cookies stay below the preview's path, under names of their own.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::forwarding::FORWARDED;

/// Makes a page an origin of its own: it may run, but not as one of ours.
const SANDBOX: HeaderValue =
    HeaderValue::from_static("sandbox allow-scripts allow-forms allow-popups allow-downloads");

/// What belongs to one connection and not to what is said over it.
const HOP_BY_HOP: [HeaderName; 9] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// What an answer would say of our whole origin, or ask of whoever is there.
const ABOUT_THE_ORIGIN: [&str; 21] = [
    "accept-ch",
    "alt-svc",
    "authentication-info",
    "clear-site-data",
    "critical-ch",
    "expect-ct",
    "integrity-policy",
    "nel",
    "origin-agent-cluster",
    "public-key-pins",
    "public-key-pins-report-only",
    "report-to",
    "reporting-endpoints",
    "sec-session-registration",
    "secure-session-registration",
    "service-worker-allowed",
    "set-login",
    "sourcemap",
    "strict-transport-security",
    "use-as-dictionary",
    "www-authenticate",
];

/// What a proxy in front of us would obey rather than pass on: it would send a file of its own machine, or what another
/// address answers, and keep what it should not. Each is the beginning of names.
const ORDERS_TO_PROXIES: [&str; 12] = [
    // nginx, and its module that packs archives.
    "x-accel-",
    "x-archive-",
    // Apache, lighttpd, Caddy and others.
    "x-sendfile",
    "x-send-file",
    "x-lighttpd-",
    // LiteSpeed.
    "x-litespeed-",
    // Perlbal and MogileFS.
    "x-reproxy-",
    // Envoy.
    "x-envoy-",
    // Caches and content delivery networks.
    "surrogate-",
    "edge-control",
    "cdn-cache-control",
    "cloudflare-cdn-cache-control",
];

/// What a cookie of a preview is called in the client: this, and its own name.
const COOKIE: &str = "preview.";

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");

/// Where a preview is, for the client and inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The path it is below, without a slash at its end.
    pub(crate) prefix: String,
    /// The port inside.
    pub(crate) port: u16,
}

/// Says of whom and to whom a request was, before it is passed on to another server.
pub(crate) fn note_client(headers: &mut HeaderMap, client: std::net::IpAddr) {
    if let Ok(client) = HeaderValue::from_str(&client.to_string()) {
        headers.insert(X_FORWARDED_FOR, client);
    }
    if let Some(host) = headers.get(header::HOST).cloned() {
        headers.insert(X_FORWARDED_HOST, host);
    }
}

/// By which name the client knows this server.
pub(crate) fn host(headers: &HeaderMap) -> Option<&HeaderValue> {
    match headers.contains_key(FORWARDED) {
        true => headers.get(X_FORWARDED_HOST),
        false => headers.get(header::HOST),
    }
}

impl Place {
    /// What the server inside is told of a request.
    pub(crate) fn inward(&self, headers: &mut HeaderMap, client: std::net::IpAddr) {
        if !headers.contains_key(FORWARDED) {
            headers.remove(X_FORWARDED_HOST);
            note_client(headers, client);
        }
        without_hops(headers);
        let own_cookies = cookies(headers);
        for name in [
            header::AUTHORIZATION,
            header::COOKIE,
            header::EXPECT,
            header::FORWARDED,
            header::HOST,
            FORWARDED,
        ] {
            headers.remove(name);
        }
        if let Some(cookies) = own_cookies {
            headers.insert(header::COOKIE, cookies);
        }
        if let Ok(host) = HeaderValue::from_str(&format!("localhost:{}", self.port)) {
            headers.insert(header::HOST, host);
        }
        if let Ok(prefix) = HeaderValue::from_str(&self.prefix) {
            headers.insert(X_FORWARDED_PREFIX, prefix);
        }
        // One in front of us may know better.
        let known = headers.get(X_FORWARDED_PROTO);
        if known.is_none_or(|proto| proto != "https") {
            headers.insert(X_FORWARDED_PROTO, HeaderValue::from_static("http"));
        }
    }

    /// What the client is told of an answer.
    pub(crate) fn outward(&self, headers: &mut HeaderMap) {
        without_hops(headers);
        for name in ABOUT_THE_ORIGIN {
            headers.remove(name);
        }
        without_orders(headers);
        let set: Vec<_> = headers
            .get_all(header::SET_COOKIE)
            .iter()
            .filter_map(|cookie| self.cookie(cookie))
            .collect();
        headers.remove(header::SET_COOKIE);
        for cookie in set {
            headers.append(header::SET_COOKIE, cookie);
        }
        for name in [header::LOCATION, header::CONTENT_LOCATION] {
            if let Some(place) = headers.get(&name).and_then(|value| self.location(value)) {
                headers.insert(name, place);
            }
        }
        // Beside one that there may be: a page is held to all of them.
        headers.append(header::CONTENT_SECURITY_POLICY, SANDBOX);
    }

    /// A cookie that the server inside sets, as the client gets it.
    fn cookie(&self, value: &HeaderValue) -> Option<HeaderValue> {
        let mut parts = value.to_str().ok()?.split(';');
        let (name, content) = parts.next()?.split_once('=')?;
        let is_kept = |part: &&str| {
            let name = part.split('=').next().unwrap_or_default().trim();
            !name.eq_ignore_ascii_case("path") && !name.eq_ignore_ascii_case("domain")
        };
        let mut cookie = format!("{COOKIE}{}={}", name.trim(), content.trim());
        for part in parts.filter(is_kept) {
            cookie.push_str("; ");
            cookie.push_str(part.trim());
        }
        cookie.push_str(&format!("; Path={}/", self.prefix));
        HeaderValue::from_str(&cookie).ok()
    }

    /// Where an answer points to, if that is to be said otherwise: what is a path inside is below ours.
    fn location(&self, value: &HeaderValue) -> Option<HeaderValue> {
        let text = value.to_str().ok()?;
        let port = self.port;
        let own = ["localhost", "127.0.0.1", "[::1]", "0.0.0.0"];
        let beneath = own
            .iter()
            .find_map(|host| {
                let rest = text.strip_prefix(&format!("http://{host}:{port}"))?;
                (rest.is_empty() || rest.starts_with(['/', '?', '#'])).then_some(rest)
            })
            .or_else(|| (text.starts_with('/') && !is_elsewhere(text)).then_some(text))?;
        if let Some(rest) = beneath.strip_prefix(&self.prefix)
            && (rest.is_empty() || rest.starts_with('/'))
        {
            // It knows where it is.
            return HeaderValue::from_str(beneath).ok();
        }
        let slash = if beneath.starts_with('/') { "" } else { "/" };
        HeaderValue::from_str(&format!("{}{slash}{beneath}", self.prefix)).ok()
    }
}

/// Does a text that begins with a slash name another host? Browsers take either slash for one.
fn is_elsewhere(text: &str) -> bool {
    let mut bytes = text.bytes().skip(1);
    matches!(bytes.next(), Some(b'/' | b'\\'))
}

/// The cookies of the preview itself, under their own names.
fn cookies(headers: &HeaderMap) -> Option<HeaderValue> {
    let texts = headers.get_all(header::COOKIE).iter();
    let own: Vec<&str> = texts
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(';'))
        .filter_map(|cookie| cookie.trim().strip_prefix(COOKIE))
        .collect();
    if own.is_empty() {
        return None;
    }
    HeaderValue::from_str(&own.join("; ")).ok()
}

fn without_orders(headers: &mut HeaderMap) {
    let is_order = |name: &&HeaderName| {
        let mut orders = ORDERS_TO_PROXIES.into_iter();
        orders.any(|order| name.as_str().starts_with(order))
    };
    let orders: Vec<HeaderName> = headers.keys().filter(is_order).cloned().collect();
    for name in orders {
        headers.remove(name);
    }
}

fn without_hops(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.into_iter().chain(HOP_BY_HOP) {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: &str = "/api/v1/sessions/sess_abcdefghijklmnop/ports/8000";

    fn place() -> Place {
        Place {
            prefix: PREFIX.to_owned(),
            port: 8000,
        }
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let value = HeaderValue::from_str(value).expect("a value");
            headers.append(*name, value);
        }
        headers
    }

    fn written(headers: &HeaderMap) -> Vec<String> {
        let mut written: Vec<String> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().expect("text")))
            .collect();
        written.sort();
        written
    }

    #[test]
    fn nothing_of_ours_goes_in() {
        let mut headers = headers(&[
            ("host", "sandbox.example:8000"),
            ("authorization", "Bearer secret"),
            ("proxy-authorization", "Basic secret"),
            (
                "cookie",
                "session=secret; preview.theirs=1; __Host-x=secret",
            ),
            ("cookie", "preview.more=a=b"),
            ("connection", "keep-alive, X-Hop"),
            ("x-hop", "1"),
            ("te", "trailers"),
            ("expect", "100-continue"),
            ("forwarded", "for=10.0.0.1"),
            ("x-forwarded-for", "10.0.0.1"),
            ("x-forwarded-host", "forged"),
            ("accept", "text/html"),
        ]);
        place().inward(&mut headers, [127, 0, 0, 1].into());
        assert_eq!(
            written(&headers),
            [
                "accept: text/html",
                "cookie: theirs=1; more=a=b",
                "host: localhost:8000",
                "x-forwarded-for: 127.0.0.1",
                "x-forwarded-host: sandbox.example:8000",
                &format!("x-forwarded-prefix: {PREFIX}"),
                "x-forwarded-proto: http",
            ]
        );
    }

    #[test]
    fn a_page_cannot_speak_as_us() {
        let mut pairs: Vec<(&'static str, &str)> =
            ABOUT_THE_ORIGIN.iter().map(|name| (*name, "x")).collect();
        pairs.extend([
            ("content-type", "text/html"),
            ("content-security-policy", "sandbox allow-same-origin"),
            (
                "set-cookie",
                "session=stolen; Path=/; Domain=example.com; HttpOnly",
            ),
            (
                "set-cookie",
                "__Host-key = x;path=/api ;SameSite=None; Secure",
            ),
            ("set-cookie", "nonsense"),
            ("connection", "close"),
            ("transfer-encoding", "chunked"),
        ]);
        let mut headers = headers(&pairs);
        place().outward(&mut headers);
        assert_eq!(
            written(&headers),
            [
                "content-security-policy: sandbox allow-same-origin",
                "content-security-policy: sandbox allow-scripts allow-forms allow-popups allow-downloads",
                "content-type: text/html",
                &format!("set-cookie: preview.__Host-key=x; SameSite=None; Secure; Path={PREFIX}/"),
                &format!("set-cookie: preview.session=stolen; HttpOnly; Path={PREFIX}/"),
            ]
        );
    }

    #[test]
    fn no_proxy_in_front_is_told_what_to_do() {
        let mut headers = headers(&[
            ("content-type", "text/html"),
            ("x-accelerated", "yes"),
            ("X-Accel-Redirect", "/etc/passwd"),
            ("x-accel-redirect", "/internal/secret"),
            ("x-accel-limit-rate", "1"),
            ("x-sendfile", "/etc/passwd"),
            ("x-sendfile2", "/etc/passwd 0-"),
            ("x-lighttpd-send-file", "/etc/passwd"),
            ("x-lighttpd-send-tempfile", "/etc/passwd"),
            ("x-litespeed-location", "/etc/passwd"),
            ("x-reproxy-url", "http://169.254.169.254/"),
            ("x-archive-files", "zip"),
            ("surrogate-control", "max-age=999999"),
        ]);
        place().outward(&mut headers);
        assert_eq!(
            written(&headers),
            [
                "content-security-policy: sandbox allow-scripts allow-forms allow-popups allow-downloads",
                "content-type: text/html",
                "x-accelerated: yes",
            ]
        );
    }

    #[test]
    fn what_is_a_path_inside_is_below_the_preview() {
        for (said, told) in [
            ("/login?a=b", format!("{PREFIX}/login?a=b")),
            ("/", format!("{PREFIX}/")),
            ("http://localhost:8000/x", format!("{PREFIX}/x")),
            ("http://127.0.0.1:8000", format!("{PREFIX}/")),
            ("http://127.0.0.1:8000?q", format!("{PREFIX}/?q")),
            (
                "http://127.0.0.1:80001/x",
                "http://127.0.0.1:80001/x".to_owned(),
            ),
            ("relative", "relative".to_owned()),
            ("//elsewhere/x", "//elsewhere/x".to_owned()),
            ("/\\elsewhere/x", "/\\elsewhere/x".to_owned()),
            ("https://elsewhere/x", "https://elsewhere/x".to_owned()),
            (&format!("{PREFIX}/x"), format!("{PREFIX}/x")),
            (&format!("{PREFIX}1/x"), format!("{PREFIX}{PREFIX}1/x")),
        ] {
            let mut headers = headers(&[("location", said)]);
            place().outward(&mut headers);
            assert_eq!(headers["location"], told, "{said}");
        }
    }
}
