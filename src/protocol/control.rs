//! Control calls on their way from the Worker to a source's object.

use super::{Query, Url};
use crate::access::refresh::SecretDigest;
use crate::fields::FieldError;
use crate::governor::ids::{KeyId, Ref, RequestId, Version};
use crate::governor::time::Span;
use crate::wire::paging::{Cursor, Sought};

const BASE: &str = "http://source/v1/control/";

/// One control call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlCall {
    pub request: RequestId,
    /// The address at the door, for the audit log.
    pub ip: Option<Box<str>>,
    pub action: Action,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The settings come as the body; `version` is theirs if they are taken.
    Put {
        source: String,
        version: Version,
        condition: Condition,
    },
    Show,
    Delete {
        condition: Condition,
    },
    /// What was learned is forgotten.
    Reset,
    /// A report comes as the body: what it would change.
    Explain,
    Slots {
        limit: u32,
        after: Option<Ref>,
    },
    Force {
        reference: Ref,
    },
    /// The name comes as the body, if there is one.
    Mint {
        key: KeyId,
        ttl: Span,
        refresh_ttl: Span,
        digest: SecretDigest,
    },
    /// The digests of the refresh token that was shown and of its successor.
    Refresh {
        key: KeyId,
        shown: SecretDigest,
        successor: SecretDigest,
    },
    Keys {
        limit: u32,
        after: Option<KeyId>,
    },
    Revoke {
        key: KeyId,
    },
    Log {
        limit: u32,
        before: Option<Cursor>,
        sought: Sought,
    },
    Audit {
        limit: u32,
        before: Option<Cursor>,
    },
}

impl Action {
    /// Whether doing it twice is as doing it once, but for the answer.
    pub const fn is_repeatable(&self) -> bool {
        !matches!(
            self,
            Self::Mint { .. }
                | Self::Put { .. }
                | Self::Delete { .. }
                | Self::Reset
                | Self::Revoke { .. }
                | Self::Force { .. }
        )
    }
}

/// What must hold before settings are replaced or a source is ended: `If-Match`, `If-None-Match`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// `If-Match: *`, or a version that stands.
    pub matches: Option<Matches>,
    /// `If-None-Match: *`: only create.
    pub is_new: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matches {
    Any,
    /// One of these; none of them where the header held no version of ours.
    OneOf(Vec<Version>),
}

impl Condition {
    /// Reads the two headers. What is no version of ours matches nothing.
    ///
    /// # Errors
    /// If one is empty, as a script's unset variable makes it, or `If-None-Match`
    /// is anything but `*`: it would guard nothing.
    pub fn parse(if_match: Option<&str>, if_none_match: Option<&str>) -> Result<Self, FieldError> {
        if if_match.is_some_and(|value| value.trim().is_empty()) {
            let message =
                "If-Match is empty and would guard nothing; send the ETag, * or no such header.";
            return Err(FieldError::new("If-Match", message));
        }
        if if_none_match.is_some_and(|value| value.trim() != "*") {
            let message = "If-None-Match can only be * here, to create and never replace.";
            return Err(FieldError::new("If-None-Match", message));
        }
        Ok(Self {
            matches: if_match.map(|value| match value.trim() {
                "*" => Matches::Any,
                list => Matches::OneOf(list.split(',').filter_map(version).collect()),
            }),
            is_new: if_none_match.is_some(),
        })
    }

    fn put_into(&self, url: Url) -> Url {
        let matches = self.matches.as_ref().map(|matches| match matches {
            Matches::Any => "*".to_owned(),
            Matches::OneOf(versions) => versions
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(","),
        });
        url.put_some("matches", matches.as_ref())
    }

    /// An earlier version sends none with a deletion.
    fn of(query: &Query) -> Self {
        Self {
            matches: query.text("matches").map(|text| match text {
                "*" => Matches::Any,
                list => Matches::OneOf(list.split(',').filter_map(|v| v.parse().ok()).collect()),
            }),
            is_new: query.parse("isNew").unwrap_or(false),
        }
    }

    /// `standing`: the version of the source; `None` if there is no source.
    pub fn holds(&self, standing: Option<Version>) -> bool {
        let matches = match &self.matches {
            None => true,
            Some(Matches::Any) => standing.is_some(),
            Some(Matches::OneOf(versions)) => {
                standing.is_some_and(|standing| versions.contains(&standing))
            }
        };
        matches && !(self.is_new && standing.is_some())
    }
}

/// An entity tag as we write it. One that was weakened on the way, as happens
/// where an answer is compressed, still names its version.
fn version(tag: &str) -> Option<Version> {
    let tag = tag.trim();
    tag.strip_prefix("W/")
        .unwrap_or(tag)
        .strip_prefix('"')?
        .strip_suffix('"')?
        .parse()
        .ok()
}

impl ControlCall {
    pub fn to_url(&self) -> String {
        let path = match self.action {
            Action::Put { .. } => "put",
            Action::Show => "show",
            Action::Delete { .. } => "delete",
            Action::Reset => "reset",
            Action::Explain => "explain",
            Action::Slots { .. } => "slots",
            Action::Force { .. } => "force",
            Action::Mint { .. } => "mint",
            Action::Keys { .. } => "keys",
            Action::Revoke { .. } => "revoke",
            Action::Refresh { .. } => "refresh",
            Action::Log { .. } => "log",
            Action::Audit { .. } => "audit",
        };
        let url = Url::new(BASE, path)
            .put("request", &self.request)
            .put_some("ip", self.ip.as_ref());
        let url = match &self.action {
            Action::Put {
                source,
                version,
                condition,
            } => {
                let url = url.put("source", source).put("version", version);
                condition.put_into(url).put("isNew", &condition.is_new)
            }
            Action::Delete { condition } => condition
                .put_into(url)
                .put_some("isNew", condition.is_new.then_some(true).as_ref()),
            Action::Slots { limit, after } => {
                url.put("limit", limit).put_some("after", after.as_ref())
            }
            Action::Keys { limit, after } => {
                url.put("limit", limit).put_some("after", after.as_ref())
            }
            Action::Force { reference } => url.put("ref", reference),
            Action::Mint {
                key,
                ttl,
                refresh_ttl,
                digest,
            } => url
                .put("key", key)
                .put("ttl", &ttl.ms())
                .put("refreshTtl", &refresh_ttl.ms())
                .put("digest", digest),
            Action::Refresh {
                key,
                shown,
                successor,
            } => url
                .put("key", key)
                .put("shown", shown)
                .put("successor", successor),
            Action::Log {
                limit,
                before,
                sought,
            } => url
                .put("limit", limit)
                .put_some("before", before.as_ref())
                .put_some("outcome", sought.outcome.as_ref())
                .put_some("keyId", sought.key.as_ref())
                .put_some("requestId", sought.request.as_ref()),
            Action::Audit { limit, before } => {
                url.put("limit", limit).put_some("before", before.as_ref())
            }
            Action::Revoke { key } => url.put("key", key),
            Action::Show | Action::Reset | Action::Explain => url,
        };
        url.0
    }

    /// `None` if the URL is no control call.
    pub fn from_url(url: &str) -> Option<Self> {
        let (path, query) = Query::of(url, BASE)?;
        let action = match path {
            "put" => Action::Put {
                source: query.text("source")?.to_owned(),
                version: query.parse("version")?,
                condition: Condition::of(&query),
            },
            "show" => Action::Show,
            "delete" => Action::Delete {
                condition: Condition::of(&query),
            },
            "reset" => Action::Reset,
            "explain" => Action::Explain,
            "slots" => Action::Slots {
                limit: query.parse("limit")?,
                after: query.parse("after"),
            },
            "force" => Action::Force {
                reference: query.parse("ref")?,
            },
            "mint" => Action::Mint {
                key: query.parse("key")?,
                ttl: Span::from_ms(query.parse("ttl")?),
                refresh_ttl: Span::from_ms(query.parse("refreshTtl")?),
                digest: query.parse("digest")?,
            },
            "refresh" => Action::Refresh {
                key: query.parse("key")?,
                shown: query.parse("shown")?,
                successor: query.parse("successor")?,
            },
            "log" => Action::Log {
                limit: query.parse("limit")?,
                before: query.parse("before"),
                sought: Sought {
                    outcome: query.parse("outcome"),
                    key: query.parse("keyId"),
                    request: query.parse("requestId"),
                },
            },
            "audit" => Action::Audit {
                limit: query.parse("limit")?,
                before: query.parse("before"),
            },
            "keys" => Action::Keys {
                limit: query.parse("limit")?,
                after: query.parse("after"),
            },
            "revoke" => Action::Revoke {
                key: query.parse("key")?,
            },
            _ => return None,
        };
        Some(Self {
            request: query.parse("request")?,
            ip: query.text("ip").map(Box::from),
            action,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::paging::REFUSED;

    #[test]
    fn every_call_survives_its_url() {
        let one_of = |versions: &[u64]| {
            Some(Matches::OneOf(
                versions.iter().copied().map(Version).collect(),
            ))
        };
        let mut actions = vec![
            Action::Show,
            Action::Delete {
                condition: Condition::default(),
            },
            Action::Delete {
                condition: Condition {
                    matches: one_of(&[7]),
                    is_new: false,
                },
            },
            Action::Reset,
            Action::Explain,
            Action::Slots {
                limit: 5,
                after: None,
            },
            Action::Slots {
                limit: 5,
                after: Some(Ref(7)),
            },
            Action::Force { reference: Ref(9) },
            Action::Mint {
                key: KeyId(1),
                ttl: Span::from_ms(2),
                refresh_ttl: Span::from_ms(3),
                digest: SecretDigest([4; 32]),
            },
            Action::Refresh {
                key: KeyId(1),
                shown: SecretDigest([5; 32]),
                successor: SecretDigest([6; 32]),
            },
            Action::Log {
                limit: 5,
                before: Some(Cursor { at: 7, ordinal: 8 }),
                sought: Sought {
                    outcome: Some(REFUSED),
                    key: Some(KeyId(9)),
                    request: Some(RequestId(10)),
                },
            },
            Action::Log {
                limit: 5,
                before: None,
                sought: Sought::default(),
            },
            Action::Audit {
                limit: 5,
                before: None,
            },
            Action::Keys {
                limit: 5,
                after: Some(KeyId(7)),
            },
            Action::Revoke { key: KeyId(3) },
        ];
        for matches in [None, Some(Matches::Any), one_of(&[]), one_of(&[1, 2])] {
            actions.push(Action::Put {
                source: "demo".into(),
                version: Version(4),
                condition: Condition {
                    matches,
                    is_new: true,
                },
            });
        }
        for action in actions {
            let call = ControlCall {
                request: RequestId(8),
                ip: Some("::1".into()),
                action,
            };
            assert_eq!(ControlCall::from_url(&call.to_url()).as_ref(), Some(&call));
        }
    }

    #[test]
    fn an_empty_precondition_is_an_error_wherever_it_stands() {
        for empty in ["", " ", "\t", " \t "] {
            let error = Condition::parse(Some(empty), None).unwrap_err();
            assert_eq!(error.field, "If-Match", "{empty:?}");
            let error = Condition::parse(None, Some(empty)).unwrap_err();
            assert_eq!(error.field, "If-None-Match", "{empty:?}");
            assert!(Condition::parse(Some(empty), Some("*")).is_err());
        }
        // A list without a tag in it isn't empty, and matches nothing.
        let condition = Condition::parse(Some(","), None).unwrap();
        assert!(!condition.holds(Some(Version(1))));
    }

    #[test]
    fn conditions_guard_against_lost_updates() {
        let tag = format!("\"{}\"", Version(5));
        let weak = format!("W/{tag}");
        assert!(Condition::parse(None, Some(&tag)).is_err());
        for (if_match, if_none_match, standing, holds) in [
            (None, None, None, true),
            (None, None, Some(5), true),
            (Some("*"), None, Some(5), true),
            (Some("*"), None, None, false),
            (Some(tag.as_str()), None, Some(5), true),
            (Some(weak.as_str()), None, Some(5), true),
            (Some(tag.as_str()), None, Some(6), false),
            (Some(tag.as_str()), None, None, false),
            (Some("\"x\", W/\"y\""), None, Some(5), false),
            (None, Some("*"), None, true),
            (None, Some("*"), Some(5), false),
        ] {
            let condition = Condition::parse(if_match, if_none_match).unwrap();
            let name = format!("{if_match:?} {if_none_match:?} {standing:?}");
            assert_eq!(condition.holds(standing.map(Version)), holds, "{name}");
        }
    }
}
