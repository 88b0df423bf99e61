//! Calls to the directory: the list of sources, with a line of state each.

use super::{Query, Url};
use crate::access::refused::{Credential, Refusals};
use crate::governor::ids::RequestId;
use crate::governor::tally::Tally;
use crate::governor::time::Millis;
use crate::wire::paging::Cursor;

const BASE: &str = "http://directory/v1/";

/// A line of state that an active source pushes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    pub at: Millis,
    pub limit: u32,
    pub in_use: u32,
    pub depth: u32,
    /// Since the source was made, so that a push that is repeated or lost does
    /// no harm.
    pub tally: Tally,
}

impl Summary {
    /// Whether it says the same, whenever that was.
    pub fn says_as(&self, other: &Self) -> bool {
        let figures = |one: &Self| (one.limit, one.in_use, one.depth);
        figures(self) == figures(other) && self.tally == other.tally
    }
}

/// Who changed the list of sources, for the audit log; a Worker of the version
/// before doesn't say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct By {
    pub request: Option<RequestId>,
    pub ip: Option<Box<str>>,
}

/// One call to the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectoryCall {
    /// A source was created or changed.
    Register {
        source: String,
        created_at: Millis,
        updated_at: Millis,
        by: By,
    },
    Remove {
        source: String,
        by: By,
    },
    Has {
        source: String,
    },
    /// Counts only for a source that is registered.
    Push {
        source: String,
        summary: Box<Summary>,
    },
    List {
        limit: u32,
        after: String,
    },
    /// The figures of all sources that pushed any.
    Metrics,
    /// Tokens were refused at the door.
    Refused {
        credential: Credential,
        refusals: Refusals,
    },
    /// A page of its own audit log.
    Audit {
        limit: u32,
        before: Option<Cursor>,
    },
}

impl DirectoryCall {
    pub fn to_url(&self) -> String {
        let url = match self {
            Self::Register {
                source,
                created_at,
                updated_at,
                by,
            } => Url::new(BASE, "register")
                .put("source", source)
                .put("createdAt", &created_at.epoch_ms())
                .put("updatedAt", &updated_at.epoch_ms())
                .put_by(by),
            Self::Has { source } => Url::new(BASE, "has").put("source", source),
            Self::Remove { source, by } => {
                Url::new(BASE, "remove").put("source", source).put_by(by)
            }
            Self::Push { source, summary } => Url::new(BASE, "push")
                .put("source", source)
                .put("at", &summary.at.epoch_ms())
                .put("limit", &summary.limit)
                .put("inUse", &summary.in_use)
                .put("depth", &summary.depth)
                .put("tally", &summary.tally.to_text()),
            Self::Metrics => Url::new(BASE, "metrics"),
            Self::Refused {
                credential,
                refusals,
            } => Url::new(BASE, "refused")
                .put("credential", &credential.word())
                .put("count", &refusals.count)
                .put_some("source", refusals.source.as_ref())
                .put_some("ip", refusals.ip.as_ref()),
            Self::Audit { limit, before } => Url::new(BASE, "audit")
                .put("limit", limit)
                .put_some("before", before.as_ref()),
            Self::List { limit, after } => Url::new(BASE, "list")
                .put("limit", limit)
                .put("after", after),
        };
        url.0
    }

    /// `None` if the URL is no call to the directory.
    pub fn from_url(url: &str) -> Option<Self> {
        let (path, query) = Query::of(url, BASE)?;
        let source = || query.text("source").map(str::to_owned);
        let moment = |name| query.parse(name).map(Millis::from_epoch);
        let by = || By {
            request: query.parse("request"),
            ip: query.text("ip").map(Box::from),
        };
        match path {
            "register" => Some(Self::Register {
                source: source()?,
                created_at: moment("createdAt")?,
                updated_at: moment("updatedAt")?,
                by: by(),
            }),
            "remove" => Some(Self::Remove {
                source: source()?,
                by: by(),
            }),
            "has" => Some(Self::Has { source: source()? }),
            "push" => Some(Self::Push {
                source: source()?,
                summary: Box::new(Summary {
                    at: moment("at")?,
                    limit: query.parse("limit")?,
                    in_use: query.parse("inUse")?,
                    depth: query.parse("depth")?,
                    // None where it can't be read: then what is stored stays.
                    tally: query
                        .text("tally")
                        .and_then(Tally::from_text)
                        .unwrap_or_default(),
                }),
            }),
            "metrics" => Some(Self::Metrics),
            "refused" => Some(Self::Refused {
                credential: Credential::of_word(query.text("credential")?)?,
                refusals: Refusals {
                    count: query.parse("count")?,
                    source: source(),
                    ip: query.text("ip").map(Box::from),
                },
            }),
            "audit" => Some(Self::Audit {
                limit: query.parse("limit")?,
                before: query.parse("before"),
            }),
            "list" => Some(Self::List {
                limit: query.parse("limit")?,
                after: query.text("after")?.to_owned(),
            }),
            _ => None,
        }
    }
}

impl Url {
    fn put_by(self, by: &By) -> Self {
        self.put_some("request", by.request.as_ref())
            .put_some("ip", by.ip.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_survives_its_url() {
        let source = || "demo".to_owned();
        let at = Millis::from_epoch;
        let by = || By {
            request: Some(RequestId(6)),
            ip: Some("2001:db8::1".into()),
        };
        let mut tally = Tally::default();
        tally.released = 5;
        let summary = Summary {
            at: at(1),
            limit: 2,
            in_use: 3,
            depth: 4,
            tally,
        };
        for call in [
            DirectoryCall::Register {
                source: source(),
                created_at: at(1),
                updated_at: at(2),
                by: By::default(),
            },
            DirectoryCall::Metrics,
            DirectoryCall::Remove {
                source: source(),
                by: by(),
            },
            DirectoryCall::Refused {
                credential: Credential::Admin,
                refusals: Refusals {
                    count: 3,
                    ip: Some("::1".into()),
                    source: Some(source()),
                },
            },
            DirectoryCall::Refused {
                credential: Credential::Refresh,
                refusals: Refusals::default(),
            },
            DirectoryCall::Audit {
                limit: 5,
                before: Some(Cursor { at: 1, ordinal: 2 }),
            },
            DirectoryCall::Has { source: source() },
            DirectoryCall::Push {
                source: source(),
                summary: Box::new(summary),
            },
            DirectoryCall::List {
                limit: 5,
                after: String::new(),
            },
            DirectoryCall::List {
                limit: 5,
                after: source(),
            },
        ] {
            assert_eq!(
                DirectoryCall::from_url(&call.to_url()).as_ref(),
                Some(&call)
            );
        }
    }
}
