//! The pages that the service brings along: the dashboard and the API docs.
//!
//! Which paths they have, which file each is, and the headers it is served
//! with. Nothing else is ever a page, so that a path of the API can't become
//! one by a file that lies about. Nothing here reads a file.

use super::answer::HttpAnswer;

/// What `/dashboard` may do: run its own script, show its own style, call the
/// API it came from. Nothing may be written into it as markup.
const DASHBOARD_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// The renderer of `/docs` styles itself inline and makes its elements from
/// markup of its own; scripts are held as above.
const DOCS_POLICY: &str = "default-src 'none'; script-src 'self'; \
     style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    Dashboard,
    Docs,
}

impl Site {
    const fn folder(self) -> &'static str {
        match self {
            Self::Dashboard => "dashboard",
            Self::Docs => "docs",
        }
    }

    const fn policy(self) -> &'static str {
        match self {
            Self::Dashboard => DASHBOARD_POLICY,
            Self::Docs => DOCS_POLICY,
        }
    }
}

/// One file of a page. The names of assets hold a hash of what is in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page<'a> {
    site: Site,
    /// None is the page itself.
    asset: Option<&'a str>,
    content_type: &'static str,
}

impl<'a> Page<'a> {
    /// What a path means, in segments; None if it is no page's.
    pub fn at(path: &[&'a str]) -> Option<Self> {
        let (first, rest) = path.split_first()?;
        let site = match *first {
            "dashboard" => Site::Dashboard,
            "docs" => Site::Docs,
            _ => return None,
        };
        let (asset, content_type) = match *rest {
            [] | [""] => (None, "text/html; charset=utf-8"),
            ["assets", name] => (Some(name), content_type(name)?),
            _ => return None,
        };
        Some(Self {
            site,
            asset,
            content_type,
        })
    }

    /// Where the file is among the assets, as a path.
    pub fn file(&self) -> String {
        let folder = self.site.folder();
        match self.asset {
            None => format!("/{folder}/index.html"),
            Some(name) => format!("/{folder}/assets/{name}"),
        }
    }

    /// The answer that carries the file, without the file.
    pub fn head(&self) -> HttpAnswer {
        let cache = match self.asset {
            None => "no-cache",
            Some(_) => "public, max-age=31536000, immutable",
        };
        let headers = [
            ("Content-Type", self.content_type),
            ("Cache-Control", cache),
            ("Content-Security-Policy", self.site.policy()),
            ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
        ];
        HttpAnswer {
            status: 200,
            headers: headers.map(|(name, value)| (name, value.to_owned())).into(),
            body: String::new(),
        }
    }
}

/// By the end of a plain name; None for anything that the build doesn't make.
fn content_type(name: &str) -> Option<&'static str> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let (stem, end) = name.rsplit_once('.')?;
    if stem.is_empty() || stem.starts_with('.') || !name.bytes().all(plain) {
        return None;
    }
    match end {
        "js" => Some("text/javascript; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        "txt" => Some("text/plain; charset=utf-8"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> Option<String> {
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        Page::at(&segments).map(|page| page.file())
    }

    #[test]
    fn a_path_is_one_file_or_none() {
        for (path, expected) in [
            ("/dashboard", Some("/dashboard/index.html")),
            ("/dashboard/", Some("/dashboard/index.html")),
            ("/docs", Some("/docs/index.html")),
            (
                "/docs/assets/main-A_1b.js",
                Some("/docs/assets/main-A_1b.js"),
            ),
            (
                "/dashboard/assets/x-1.css",
                Some("/dashboard/assets/x-1.css"),
            ),
            ("/", None),
            ("/dashboards", None),
            ("/dashboard/index.html", None),
            ("/dashboard/assets", None),
            ("/dashboard/assets/", None),
            ("/dashboard/assets/.js", None),
            ("/dashboard/assets/...js", None),
            ("/dashboard/assets/..%2fx.js", None),
            ("/dashboard/assets/x.js.map", None),
            ("/dashboard/assets/x/y.js", None),
            ("/dashboard/other", None),
            ("/assets/x.js", None),
        ] {
            assert_eq!(file(path).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn a_page_is_asked_for_anew_and_what_it_draws_on_is_kept() {
        let cache = |path: &[&str]| {
            let head = Page::at(path).unwrap().head();
            let found = head
                .headers
                .iter()
                .find(|(name, _)| *name == "Cache-Control");
            found.unwrap().1.clone()
        };
        assert_eq!(cache(&["dashboard"]), "no-cache");
        assert!(cache(&["docs", "assets", "x.js"]).ends_with("immutable"));
    }

    #[test]
    fn no_page_may_run_a_script_that_is_not_its_own() {
        for path in ["dashboard", "docs"] {
            let head = Page::at(&[path]).unwrap().head();
            let policy = head
                .headers
                .iter()
                .find(|(name, _)| *name == "Content-Security-Policy")
                .unwrap();
            assert!(
                policy
                    .1
                    .starts_with("default-src 'none'; script-src 'self'; ")
            );
            assert!(policy.1.contains("frame-ancestors 'none'"));
            assert!(!policy.1.contains("http"), "{path}");
        }
    }
}
