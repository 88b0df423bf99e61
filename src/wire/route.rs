//! Hosts, paths and methods: which route a request means.
//!
//! Paths are matched as they came: a percent-encoded name is no name. Nothing
//! here looks at credentials or bodies.

use std::net::Ipv6Addr;
use std::str::FromStr;

use super::page::Page;
use super::problem::Problem;
use crate::governor::ids::NotAnId;

/// Which hosts carry the API, and under which domain sources have their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    api: Vec<String>,
    source_domain: String,
}

impl Hosts {
    /// `api`: a comma-separated list of host names, without ports.
    pub fn parse(api: &str, source_domain: &str) -> Self {
        let lower = |name: &str| name.trim().to_ascii_lowercase();
        Self {
            api: api
                .split(',')
                .map(lower)
                .filter(|name| !name.is_empty())
                .collect(),
            source_domain: lower(source_domain),
        }
    }

    fn is_api(&self, host: &str) -> bool {
        self.api.iter().any(|api| api.eq_ignore_ascii_case(host))
    }

    /// Whether a source of this name would have an API host as its own.
    pub fn reserves(&self, source: &str) -> bool {
        self.is_api(&format!("{source}.{}", self.source_domain))
    }
}

/// What a request means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route<'a> {
    Lock {
        source: &'a str,
        verb: Verb<'a>,
    },
    /// A refresh token is traded in: the one route whose credential is its body.
    Refresh {
        source: &'a str,
    },
    Control(Control<'a>),
    /// A file of the dashboard or of the API docs.
    Page(Page<'a>),
    Health,
    OpenApi,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb<'a> {
    Acquire,
    /// The slot id as it stands in the path; it may be none.
    Renew(&'a str),
    Release(&'a str),
}

/// Routes for operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control<'a> {
    ListSources,
    PutSource(&'a str),
    ShowSource(&'a str),
    DeleteSource(&'a str),
    Reset(&'a str),
    Explain(&'a str),
    ListSlots(&'a str),
    ForceRelease {
        source: &'a str,
        reference: &'a str,
    },
    MintKey(&'a str),
    ListKeys(&'a str),
    RevokeKey {
        source: &'a str,
        key: &'a str,
    },
    ReadLog(&'a str),
    ReadAudit(&'a str),
    /// Of sources that were made and deleted, and of tokens that were refused.
    ReadDirectoryAudit,
    Metrics,
}

impl<'a> Control<'a> {
    /// The source that must be there already; putting one makes it.
    pub const fn needs(self) -> Option<&'a str> {
        match self {
            Self::PutSource(_) => None,
            other => other.source(),
        }
    }

    /// The source that it is about; `None`: all.
    pub const fn source(self) -> Option<&'a str> {
        match self {
            Self::ListSources | Self::Metrics | Self::ReadDirectoryAudit => None,
            Self::PutSource(source)
            | Self::ShowSource(source)
            | Self::DeleteSource(source)
            | Self::Reset(source)
            | Self::Explain(source)
            | Self::ListSlots(source)
            | Self::ForceRelease { source, .. }
            | Self::MintKey(source)
            | Self::ListKeys(source)
            | Self::RevokeKey { source, .. }
            | Self::ReadLog(source)
            | Self::ReadAudit(source) => Some(source),
        }
    }
}

/// The parts of a URL that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    pub host: &'a str,
    pub path: &'a str,
    /// Without the question mark.
    pub query: &'a str,
}

impl<'a> Target<'a> {
    /// Takes a URL apart that a URL parser has written.
    pub fn of_url(url: &'a str) -> Self {
        let (_, rest) = url.split_once("://").unwrap_or(("", url));
        let rest = rest.split('#').next().unwrap_or_default();
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        let host = without_port(authority);
        Self { host, path, query }
    }
}

fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => authority,
    }
}

/// Whether the value of a `Host` header is a host: a name or an address, and a
/// port at most. Some runtimes write it into the URL as it came, where anything
/// else could decide the path.
pub fn is_host(value: &str) -> bool {
    if let Some(rest) = value.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else {
            return false;
        };
        return address.parse::<Ipv6Addr>().is_ok()
            && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
    }
    let (name, port) = value.split_once(':').unwrap_or((value, ""));
    // The dot of the root may stand at the end.
    let name = name.strip_suffix('.').unwrap_or(name);
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    let is_label = |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(plain);
    name.len() <= MOST_HOST_CHARS && name.split('.').all(is_label) && is_port(port)
}

fn is_port(text: &str) -> bool {
    text.is_empty() || text.bytes().all(|b| b.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

/// Characters of a name in DNS.
const MOST_HOST_CHARS: usize = 253;

/// A DNS label: what a source may be called.
pub fn is_source_name(name: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = name.as_bytes();
    let ends = bytes.first().zip(bytes.last());
    bytes.len() <= 63
        && ends.is_some_and(|(first, last)| inner(*first) && inner(*last))
        && bytes.iter().all(|b| inner(*b) || *b == b'-')
}

/// The name of a source, on its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceName(pub String);

impl FromStr for SourceName {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        if is_source_name(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotAnId)
        }
    }
}

/// Finds the route of a request.
///
/// # Errors
/// 404 on a host or path that is no route, 405 with `Allow` on a method that
/// the route does not take.
pub fn route<'a>(hosts: &Hosts, target: &Target<'a>, method: &str) -> Result<Route<'a>, Problem> {
    // A source's own host carries proxy traffic, which is not built yet; there
    // and elsewhere nothing is found.
    if !hosts.is_api(target.host) {
        return Err(Problem::not_found());
    }
    let mut segments = target.path.split('/');
    segments.next();
    let mut parts = [""; 6];
    let mut count: usize = 0;
    for segment in segments {
        *parts.get_mut(count).ok_or_else(Problem::not_found)? = segment;
        count = count.saturating_add(1);
    }
    let path = parts.get(..count).unwrap_or_default();
    if let ["pools", source, ..] = path
        && !is_source_name(source)
    {
        return Err(Problem::bad_source_name());
    }
    match *path {
        ["healthz"] => reads(method, Route::Health),
        ["openapi.json"] => reads(method, Route::OpenApi),
        ["pools", source, "lock", "acquire"] => lock(method, source, Verb::Acquire),
        ["pools", source, "lock", slot, "renew"] if !slot.is_empty() => {
            lock(method, source, Verb::Renew(slot))
        }
        ["pools", source, "lock", slot, "release"] if !slot.is_empty() => {
            lock(method, source, Verb::Release(slot))
        }
        ["pools", source, "keys", "refresh"] => only(method, "POST", Route::Refresh { source }),
        ref path => match Page::at(path) {
            Some(page) => reads(method, Route::Page(page)),
            None => control(path, method).map(Route::Control),
        },
    }
}

fn only<T>(method: &str, allowed: &'static str, route: T) -> Result<T, Problem> {
    if method == allowed {
        Ok(route)
    } else {
        Err(Problem::method_not_allowed(allowed))
    }
}

/// `HEAD` is answered wherever `GET` is: as `GET`, and the runtime leaves the
/// body out.
fn reads<T>(method: &str, route: T) -> Result<T, Problem> {
    match method {
        "GET" | "HEAD" => Ok(route),
        _ => Err(Problem::method_not_allowed("GET, HEAD")),
    }
}

fn lock<'a>(method: &str, source: &'a str, verb: Verb<'a>) -> Result<Route<'a>, Problem> {
    only(method, "POST", Route::Lock { source, verb })
}

fn control<'a>(path: &[&'a str], method: &str) -> Result<Control<'a>, Problem> {
    match *path {
        ["metrics"] => reads(method, Control::Metrics),
        ["audit"] => reads(method, Control::ReadDirectoryAudit),
        ["pools"] => reads(method, Control::ListSources),
        ["pools", source] => match method {
            "GET" | "HEAD" => Ok(Control::ShowSource(source)),
            "PUT" => Ok(Control::PutSource(source)),
            "DELETE" => Ok(Control::DeleteSource(source)),
            _ => Err(Problem::method_not_allowed("GET, HEAD, PUT, DELETE")),
        },
        ["pools", source, "slots"] => reads(method, Control::ListSlots(source)),
        ["pools", source, "slots", reference] if !reference.is_empty() => only(
            method,
            "DELETE",
            Control::ForceRelease { source, reference },
        ),
        ["pools", source, "keys"] => match method {
            "GET" | "HEAD" => Ok(Control::ListKeys(source)),
            "POST" => Ok(Control::MintKey(source)),
            _ => Err(Problem::method_not_allowed("GET, HEAD, POST")),
        },
        ["pools", source, "reset"] => only(method, "POST", Control::Reset(source)),
        ["pools", source, "explain"] => only(method, "POST", Control::Explain(source)),
        ["pools", source, "log"] => reads(method, Control::ReadLog(source)),
        ["pools", source, "audit"] => reads(method, Control::ReadAudit(source)),
        ["pools", source, "keys", key] if !key.is_empty() => {
            only(method, "DELETE", Control::RevokeKey { source, key })
        }
        _ => Err(Problem::not_found()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(url: &str, method: &str) -> u16 {
        let hosts = Hosts::parse("api.swarmvia.cloud, LOCALHOST", "swarmvia.cloud");
        match route(&hosts, &Target::of_url(url), method) {
            Ok(_) => 200,
            Err(problem) => problem.kind.status(),
        }
    }

    #[test]
    fn routes_are_matched_as_they_came() {
        for (method, path, expected) in [
            ("POST", "/pools/a/lock/acquire", 200),
            ("POST", "/pools/a/lock/acquire?x=1", 200),
            ("POST", "/pools/a/lock/xyz/renew", 200),
            ("POST", "/pools/a/lock/xyz/release", 200),
            ("GET", "/pools/a/lock/acquire", 405),
            ("OPTIONS", "/pools/a/lock/x/renew", 405),
            ("POST", "/pools/a/lock/acquire/", 404),
            ("POST", "/pools//lock/acquire", 404),
            ("POST", "/pools/a/lock//renew", 404),
            ("POST", "//pools/a/lock/acquire", 404),
            ("POST", "/pools/a/lock/x/y/renew", 404),
            ("POST", "/pools/A/lock/acquire", 404),
            ("POST", "/pools/%61/lock/acquire", 404),
            ("POST", "/pools/a_b/lock/acquire", 404),
            ("POST", "/pools/-a/lock/acquire", 404),
            ("PATCH", "/pools/a", 405),
            ("GET", "/pools", 200),
            ("GET", "/audit", 200),
            ("DELETE", "/audit", 405),
            ("GET", "/pools/", 404),
            ("GET", "/pools/a/nothing", 404),
            ("GET", "/healthz", 200),
            ("POST", "/healthz", 405),
            ("GET", "/", 404),
            ("GET", "", 404),
            ("GET", "/dashboard", 200),
            ("HEAD", "/dashboard/", 200),
            ("TRACE", "/healthz", 405),
            ("OPTIONS", "/openapi.json", 405),
            ("get", "/healthz", 405),
            ("POST", "/dashboard", 405),
            ("GET", "/dashboard/assets/main-1.js", 200),
            ("GET", "/dashboard/nothing", 404),
            ("GET", "/docs", 200),
            ("GET", "/index.html", 404),
        ] {
            let url = format!("https://api.swarmvia.cloud{path}");
            assert_eq!(status(&url, method), expected, "{method} {path}");
        }
    }

    #[test]
    fn lock_routes_live_on_the_api_hosts_only() {
        for (host, expected) in [
            ("api.swarmvia.cloud", 200),
            ("API.swarmvia.cloud:443", 200),
            ("localhost:8787", 200),
            ("demo.swarmvia.cloud", 404),
            ("swarmvia.cloud", 404),
            ("api.swarmvia.cloud.evil.example", 404),
            ("127.0.0.1", 404),
        ] {
            let url = format!("http://{host}/pools/demo/lock/acquire");
            assert_eq!(status(&url, "POST"), expected, "{host}");
            // A source's own host has no pages: the path is its upstream's.
            let page = format!("http://{host}/dashboard");
            assert_eq!(status(&page, "GET"), expected, "{host}");
        }
    }

    #[test]
    fn a_source_name_is_a_dns_label() {
        for good in ["a", "0", "a-b", &"x".repeat(63)] {
            assert!(is_source_name(good), "{good}");
        }
        for bad in ["", "-", "a-", "-a", "A", "a.b", "ä", "a b", &"x".repeat(64)] {
            assert!(!is_source_name(bad), "{bad}");
        }
    }

    #[test]
    fn an_api_hosts_own_label_is_reserved() {
        let hosts = Hosts::parse("api.swarmvia.cloud,localhost", "swarmvia.cloud");
        assert!(hosts.reserves("api"));
        assert!(!hosts.reserves("apis"));
        assert!(!hosts.reserves("localhost"));
    }

    #[test]
    fn head_goes_wherever_get_goes_and_is_listed() {
        let hosts = Hosts::parse("h", "d");
        for path in [
            "/healthz",
            "/openapi.json",
            "/metrics",
            "/dashboard",
            "/docs",
            "/docs/assets/x.js",
            "/pools",
            "/pools/a",
            "/pools/a/slots",
            "/pools/a/keys",
            "/pools/a/log",
            "/pools/a/audit",
        ] {
            let url = format!("http://h{path}");
            let target = Target::of_url(&url);
            let got = route(&hosts, &target, "GET").unwrap();
            assert_eq!(route(&hosts, &target, "HEAD"), Ok(got), "{path}");
            let refused = route(&hosts, &target, "PATCH").unwrap_err();
            let (_, allow) = refused.headers.first().unwrap();
            assert!(allow.starts_with("GET, HEAD"), "{path}: {allow}");
        }
        for path in [
            "/pools/a/lock/acquire",
            "/pools/a/lock/x/renew",
            "/pools/a/lock/x/release",
            "/pools/a/keys/refresh",
            "/pools/a/reset",
            "/pools/a/explain",
        ] {
            let url = format!("http://h{path}");
            let refused = route(&hosts, &Target::of_url(&url), "HEAD").unwrap_err();
            assert_eq!(refused.headers, [("Allow", "POST".to_owned())], "{path}");
        }
    }

    #[test]
    fn a_host_is_a_name_or_an_address_and_a_port_at_most() {
        let long = "x".repeat(63);
        for good in [
            "localhost",
            "LOCALHOST:8787",
            "localhost:",
            "localhost.",
            "localhost.:80",
            "a_b.example",
            "api.swarmvia.cloud:443",
            "127.0.0.1",
            "127.0.0.1:65535",
            "[::1]",
            "[::1]:80",
            "[::1]:",
            "[2001:db8::1]:8787",
            "xn--bcher-kva.example",
            &long,
        ] {
            assert!(is_host(good), "{good}");
        }
        let longer = "x".repeat(64);
        let too_long = "abc.".repeat(64) + "ab";
        for bad in [
            "",
            ".",
            ":80",
            "localhost/pools?x=",
            "localhost/",
            "a@localhost",
            "localhost@evil",
            "a:b@localhost",
            "local host",
            "local\thost",
            " localhost",
            "localhost#x",
            "localhost?x",
            "localhost\\pools",
            "localhost:99999",
            "localhost:65536",
            "localhost:abc",
            "localhost:+80",
            "localhost:-1",
            "localhost:80:80",
            "localhost:80/pools",
            "[::1",
            "[::1]x",
            "[::1]:x",
            "[::1]:80/pools",
            "[localhost]",
            "[]",
            "::1",
            "%6cocalhost",
            "127.0.0.1%00",
            "localhost, evil",
            "localhost*",
            "l\u{f6}calhost",
            "a..b",
            ".a",
            "localhost..",
            &longer,
            &too_long,
        ] {
            assert!(!is_host(bad), "{bad}");
        }
    }

    #[test]
    fn a_405_says_what_is_allowed() {
        let hosts = Hosts::parse("h", "d");
        let problem = route(&hosts, &Target::of_url("http://h/pools/a"), "POST").unwrap_err();
        assert_eq!(
            problem.headers,
            [("Allow", "GET, HEAD, PUT, DELETE".to_owned())]
        );
    }
}
