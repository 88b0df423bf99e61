//! Refusals at the door on their way into a source's log, in batches.

use super::{Query, Url};
use crate::governor::command::{Outcome, TurnedAway};
use crate::governor::ids::{KeyId, RequestId};
use crate::governor::time::{Millis, Span};

const BASE: &str = "http://source/v1/";
const PATH: &str = "turned-away";

/// What an isolate has gathered since its last batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch(pub Vec<TurnedAway>);

/// Entries of one call: what is sent as a URL stays within 16 KiB.
const MOST_IN_A_CALL: usize = 96;

impl Batch {
    /// The batch in as many calls as it takes.
    pub fn into_calls(self) -> impl Iterator<Item = Self> {
        let mut rest = self.0.into_iter();
        std::iter::from_fn(move || {
            let call: Vec<_> = rest.by_ref().take(MOST_IN_A_CALL).collect();
            (!call.is_empty()).then_some(Self(call))
        })
    }

    pub fn to_url(&self) -> String {
        let mut url = Url::new(BASE, PATH);
        for one in &self.0 {
            let key = one.key.map(|key| key.to_string()).unwrap_or_default();
            let ip = one.ip.as_deref().unwrap_or_default();
            let count = one.outcome.omitted().unwrap_or_default();
            let word = door_word(one.outcome);
            let ago = one.ago.ms();
            let dead = if one.is_dead() { "~dead" } else { "" };
            let entry = format!("{}~{key}~{word}~{count}~{ago}~{ip}{dead}", one.request);
            url = url.put("entry", &entry);
        }
        url.0
    }

    /// Without what was refused before the source was made: that knocked at
    /// another one of the name, or at none. An entry for those that were left out
    /// is as old as the last of them.
    pub fn since(mut self, created_at: Millis, now: Millis) -> Vec<TurnedAway> {
        self.0.retain(|one| created_at.plus(one.ago) <= now);
        self.0
    }

    /// `None` if the URL is no batch. An entry that can't be read is left out.
    pub fn from_url(url: &str) -> Option<Self> {
        let (path, query) = Query::of(url, BASE)?;
        let entries = query.all("entry").filter_map(entry).collect();
        (path == PATH).then_some(Self(entries))
    }
}

fn entry(text: &str) -> Option<TurnedAway> {
    let mut parts = text.split('~');
    let request: RequestId = parts.next()?.parse().ok()?;
    let key: Option<KeyId> = parts.next()?.parse().ok();
    let word = parts.next()?;
    let count = parts.next()?.parse().ok()?;
    let ago = Span::from_ms(parts.next()?.parse().ok()?);
    let ip = parts.next().filter(|ip| !ip.is_empty()).map(Box::from);
    let outcome = match word {
        "omitted" => Outcome::Omitted(count),
        word => door_outcome(word)?,
    };
    // An earlier version doesn't say.
    let is_dead = parts.next().is_some_and(|part| part == "dead");
    Some(TurnedAway {
        request,
        key,
        ip,
        outcome,
        ago,
        is_live: key.is_some() && !is_dead,
    })
}

/// The word of an outcome at the door: unlike the log's, each has its own.
pub(super) fn door_word(outcome: Outcome) -> &'static str {
    let mut known = Outcome::AT_DOOR.iter();
    let found = known.find(|(_, known)| *known == outcome);
    found.map_or(outcome.word(), |(word, _)| *word)
}

pub(super) fn door_outcome(word: &str) -> Option<Outcome> {
    let mut known = Outcome::AT_DOOR.iter();
    known
        .find(|(known, _)| *known == word)
        .map(|(_, outcome)| *outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_before_the_source_was_made_is_not_its_own() {
        let one = |outcome, ago| TurnedAway {
            request: RequestId(1),
            key: None,
            ip: None,
            outcome,
            ago: Span::from_ms(ago),
            is_live: false,
        };
        let refused = |ago| one(Outcome::Unauthorized, ago);
        let omitted = |ago| one(Outcome::Omitted(9), ago);
        let (created_at, now) = (Millis::from_epoch(10_000), Millis::from_epoch(10_300));
        for (entries, kept) in [
            (vec![refused(400), refused(301)], vec![]),
            (vec![refused(400), refused(300)], vec![refused(300)]),
            (vec![refused(400), omitted(301)], vec![]),
            (vec![refused(400), omitted(0)], vec![omitted(0)]),
            (vec![refused(u64::MAX)], vec![]),
        ] {
            assert_eq!(Batch(entries).since(created_at, now), kept);
        }
    }

    #[test]
    fn a_large_batch_goes_out_in_calls_whose_urls_are_short_and_lose_nothing() {
        let one = |request| TurnedAway {
            request: RequestId(request),
            key: Some(KeyId(u64::MAX)),
            ip: Some(Box::from("2001:db8:1111:2222:3333:4444:5555:6666")),
            outcome: Outcome::PayloadTooLarge,
            ago: Span::from_ms(499),
            is_live: false,
        };
        for count in [0, 1, 96, 97, 1060] {
            let all: Vec<_> = (0..count).map(|n| one(u128::MAX - n)).collect();
            let mut arrived = Vec::new();
            for call in Batch(all.clone()).into_calls() {
                let url = call.to_url();
                assert!(url.len() <= 16 * 1024, "{}", url.len());
                arrived.extend(Batch::from_url(&url).unwrap().0);
            }
            assert_eq!(arrived, all);
        }
        assert_eq!(Batch::default().into_calls().count(), 0);
    }

    #[test]
    fn a_batch_survives_its_url() {
        let one = |outcome, key, ip: Option<&str>| TurnedAway {
            request: RequestId(1),
            key,
            ip: ip.map(Box::from),
            outcome,
            ago: Span::from_ms(7),
            is_live: key.is_some(),
        };
        let batch = Batch(vec![
            one(Outcome::Unauthorized, None, Some("2001:db8::1")),
            one(Outcome::Forbidden, Some(KeyId(2)), Some("127.0.0.1")),
            one(Outcome::PayloadTooLarge, None, None),
            one(Outcome::InvalidRequest, Some(KeyId(3)), None),
            one(Outcome::Left, Some(KeyId(3)), None),
            one(Outcome::Omitted(7), None, None),
            TurnedAway {
                is_live: false,
                ..one(Outcome::Unauthorized, Some(KeyId(4)), Some("::1"))
            },
            TurnedAway {
                is_live: false,
                ..one(Outcome::Omitted(8), Some(KeyId(4)), None)
            },
        ]);
        assert_eq!(Batch::from_url(&batch.to_url()), Some(batch));
        assert_eq!(Batch::from_url("http://source/v1/other"), None);
    }
}
