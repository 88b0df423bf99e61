//! From where key sets may be fetched.

/// The longest URL of a key set, in characters.
pub const MOST_URL_CHARS: usize = 2048;

/// Whether `http://` on a loopback host is taken as a key set URL: under
/// `npm start` and `npm run serve` only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loopback {
    Allowed,
    Refused,
}

/// Whether keys may be fetched from there: `https` only, but on loopback where
/// that is allowed. Strict, so that no parser can read another host in it.
pub fn is_key_set_url(url: &str, loopback: Loopback) -> bool {
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"#@\\".contains(&byte);
    if url.len() > MOST_URL_CHARS || !url.bytes().all(plain) {
        return false;
    }
    let (is_https, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(rest), _) => (true, rest),
        (None, Some(rest)) => (false, rest),
        (None, None) => return false,
    };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    if !port.is_none_or(is_port) {
        return false;
    }
    if is_https {
        is_host(host)
    } else {
        loopback == Loopback::Allowed && matches!(host, "localhost" | "127.0.0.1" | "[::1]")
    }
}

fn is_host(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-';
    !text.is_empty() && text.bytes().all(inner)
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok_and(|port| port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_set_url_is_https_and_says_its_host_plainly() {
        for good in [
            "https://idp.example/keys",
            "https://idp.example",
            "https://idp.example?tenant=1",
            "https://idp.example:8443/a/b.json?c=d&e=%20",
            "https://192.0.2.1/keys",
            "https://localhost/keys",
            "https://a/~!$&'()*+,;=:%[]|{}\"<>^`",
        ] {
            assert!(is_key_set_url(good, Loopback::Refused), "{good}");
            assert!(is_key_set_url(good, Loopback::Allowed), "{good}");
        }
        for bad in [
            "",
            "https://",
            "https:///keys",
            "https:idp.example",
            "//idp.example/keys",
            "HTTPS://idp.example/keys",
            " https://idp.example/keys",
            "https://idp.example/a b",
            "https://idp.example/a\tb",
            "https://idp.example/ä",
            "https://idp.example/#keys",
            "https://user@idp.example/",
            "https://user:pass@idp.example/",
            "https://idp.example\\.evil.example/",
            "https://idp.example:/keys",
            "https://idp.example:0/keys",
            "https://idp.example:65536/keys",
            "https://idp.example:+443/keys",
            "https://idp.example:44a/keys",
            "https://a:1:2/keys",
            "https://[::1]/keys",
            "https://idp_example/keys",
            "https://idp%2eexample/keys",
            "http://idp.example/keys",
            "http://localhost.evil.example/keys",
            "http://127.0.0.1.evil.example/keys",
            "http://127.0.0.2/keys",
            "http://localhost@evil.example/keys",
            "ftp://localhost/keys",
            "file:///etc/passwd",
            "data:application/json,{}",
            &format!("https://idp.example/{}", "a".repeat(2048)),
        ] {
            assert!(!is_key_set_url(bad, Loopback::Allowed), "{bad}");
        }
    }

    #[test]
    fn http_is_for_loopback_where_that_is_allowed() {
        for url in [
            "http://localhost:9000/keys",
            "http://127.0.0.1/keys",
            "http://127.0.0.1:9000",
            "http://[::1]:9000/keys",
            "http://[::1]/keys",
        ] {
            assert!(is_key_set_url(url, Loopback::Allowed), "{url}");
            assert!(!is_key_set_url(url, Loopback::Refused), "{url}");
        }
    }
}
