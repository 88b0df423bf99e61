//! Calls to the directory: the list of sources, with a line of state each.

use super::{Query, Url};
use crate::governor::tally::Tally;
use crate::governor::time::Millis;

const BASE: &str = "http://directory/v1/";

/// A line of state that an active source pushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    pub at: Millis,
    pub limit: u32,
    pub in_use: u32,
    pub depth: u32,
    /// Since the source was made, so that a push that is repeated or lost does
    /// no harm.
    pub tally: Tally,
}

/// One call to the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectoryCall {
    /// A source was created or changed.
    Register {
        source: String,
        created_at: Millis,
        updated_at: Millis,
    },
    Remove {
        source: String,
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
}

impl DirectoryCall {
    pub fn to_url(&self) -> String {
        let url = match self {
            Self::Register {
                source,
                created_at,
                updated_at,
            } => Url::new(BASE, "register")
                .put("source", source)
                .put("createdAt", &created_at.epoch_ms())
                .put("updatedAt", &updated_at.epoch_ms()),
            Self::Has { source } => Url::new(BASE, "has").put("source", source),
            Self::Remove { source } => Url::new(BASE, "remove").put("source", source),
            Self::Push { source, summary } => Url::new(BASE, "push")
                .put("source", source)
                .put("at", &summary.at.epoch_ms())
                .put("limit", &summary.limit)
                .put("inUse", &summary.in_use)
                .put("depth", &summary.depth)
                .put("tally", &summary.tally.to_text()),
            Self::Metrics => Url::new(BASE, "metrics"),
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
        match path {
            "register" => Some(Self::Register {
                source: source()?,
                created_at: moment("createdAt")?,
                updated_at: moment("updatedAt")?,
            }),
            "remove" => Some(Self::Remove { source: source()? }),
            "has" => Some(Self::Has { source: source()? }),
            "push" => Some(Self::Push {
                source: source()?,
                summary: Box::new(Summary {
                    at: moment("at")?,
                    limit: query.parse("limit")?,
                    in_use: query.parse("inUse")?,
                    depth: query.parse("depth")?,
                    // Neighbouring versions may count otherwise.
                    tally: query
                        .text("tally")
                        .and_then(Tally::from_text)
                        .unwrap_or_default(),
                }),
            }),
            "metrics" => Some(Self::Metrics),
            "list" => Some(Self::List {
                limit: query.parse("limit")?,
                after: query.text("after")?.to_owned(),
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_survives_its_url() {
        let source = || "demo".to_owned();
        let at = Millis::from_epoch;
        let summary = Summary {
            at: at(1),
            limit: 2,
            in_use: 3,
            depth: 4,
            tally: Tally {
                released: 5,
                ..Tally::default()
            },
        };
        for call in [
            DirectoryCall::Register {
                source: source(),
                created_at: at(1),
                updated_at: at(2),
            },
            DirectoryCall::Metrics,
            DirectoryCall::Remove { source: source() },
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
