//! The counts as one text: as they are stored, and as they go to the directory.
//!
//! After the first figures, which stand by position since the version that had
//! nothing else reads them so, each stands by its name, unless it is 0. So a new
//! one shifts nothing, and an older version counts on.

use super::{BOUNDS_MS, Histogram, LONGEST_NAME, MOST_OTHERS, Outcome, Ref, Tally};

/// What stands by position: never to be changed. The histograms follow, each with
/// its buckets and the sum.
const FIRST: [&str; 14] = [
    "granted",
    "queue_full",
    "cooldown",
    "rpm",
    "no_free_slot",
    "queue_timeout",
    "unauthorized",
    "invalid_request",
    "payload_too_large",
    "left",
    "omitted",
    "released",
    "expired",
    "throttled",
];
const FIRST_HISTOGRAMS: [&str; 2] = ["queued", "held"];
const FIRST_BUCKETS: [&str; 13] = [
    "10", "50", "100", "500", "1000", "5000", "10000", "30000", "60000", "300000", "600000", OVER,
    SUM,
];

/// The last bucket, without a bound.
const OVER: &str = "over";
const SUM: &str = "sum";
/// Not a count: the last attempt that is counted.
const REF: &str = "ref";

fn first_names() -> impl Iterator<Item = String> {
    let single = FIRST.into_iter().map(str::to_owned);
    let spread = FIRST_HISTOGRAMS.into_iter().flat_map(|histogram| {
        let buckets = FIRST_BUCKETS.into_iter();
        buckets.map(move |bucket| format!("{histogram}.{bucket}"))
    });
    single.chain(spread)
}

impl Tally {
    /// All figures in one text that is plain in a URL.
    pub fn to_text(&self) -> String {
        let figures = self.figures();
        let of = |name: &String| figures.iter().find(|(known, _)| known == name);
        let first = first_names().map(|name| of(&name).map_or(0, |(_, figure)| *figure));
        let first = first.map(|figure| figure.to_string());
        let named = figures.iter().filter(|(_, figure)| *figure > 0);
        let named = named.map(|(name, figure)| format!("{name}:{figure}"));
        let counted = self.counted.map(|Ref(last)| format!("{REF}:{last}"));
        let all: Vec<String> = first.chain(named).chain(counted).collect();
        all.join(",")
    }

    /// Every figure under its name.
    fn figures(&self) -> Vec<(String, u64)> {
        let outcomes = Outcome::WORDS.into_iter().zip(self.outcomes);
        let single = [
            ("released", self.released),
            ("expired", self.expired),
            ("throttled", self.throttled),
            ("refresh_refused", self.refresh_refused),
        ];
        let others = self.others.iter().map(|(name, figure)| (&**name, *figure));
        let plain = outcomes.chain(single).chain(others);
        let mut all: Vec<_> = plain
            .map(|(name, figure)| (name.to_owned(), figure))
            .collect();
        for (name, histogram) in [("queued", &self.queued), ("held", &self.held)] {
            let bounds = BOUNDS_MS.iter().map(u64::to_string);
            let buckets = bounds.chain([OVER.to_owned()]).zip(histogram.counts);
            let whole = buckets.chain([(SUM.to_owned(), histogram.sum_ms)]);
            all.extend(whole.map(|(bucket, figure)| (format!("{name}.{bucket}"), figure)));
        }
        all
    }

    /// `None` if it is no such text. Of a text that is, what can't be read is left
    /// out.
    pub fn from_text(text: &str) -> Option<Self> {
        let mut tally = Self::default();
        let mut named = text.split(',').filter_map(|one| one.split_once(':'));
        if let Some(first) = named.next() {
            for (name, figure) in std::iter::once(first).chain(named) {
                match figure.parse() {
                    Ok(last) if name == REF => tally.counted = Some(Ref(last)),
                    Ok(figure) => tally.put(name, figure),
                    Err(_) => {}
                }
            }
            return Some(tally);
        }
        // As it was before there were names.
        let mut figures = text.split(',');
        for name in first_names() {
            tally.put(&name, figures.next()?.parse().ok()?);
        }
        Some(tally)
    }

    pub(super) fn put(&mut self, name: &str, figure: u64) {
        if let Some(known) = self.figure(name) {
            *known = figure;
        } else if self.others.len() < MOST_OTHERS && is_name(name) {
            self.others.push((name.into(), figure));
        }
    }

    /// The figure of this name, of another version too, if it was told before.
    pub(super) fn figure(&mut self, name: &str) -> Option<&mut u64> {
        let place = Outcome::WORDS.iter().position(|word| *word == name);
        if let Some(place) = place {
            return self.outcomes.get_mut(place);
        }
        let histogram = match name.split_once('.') {
            Some(("queued", bucket)) => self.queued.figure(bucket),
            Some(("held", bucket)) => self.held.figure(bucket),
            _ => None,
        };
        histogram.or(match name {
            "released" => Some(&mut self.released),
            "expired" => Some(&mut self.expired),
            "throttled" => Some(&mut self.throttled),
            "refresh_refused" => Some(&mut self.refresh_refused),
            _ => {
                let mut others = self.others.iter_mut();
                let found = others.find(|(known, _)| **known == *name);
                found.map(|(_, figure)| figure)
            }
        })
    }
}

impl Histogram {
    fn figure(&mut self, bucket: &str) -> Option<&mut u64> {
        match bucket {
            SUM => Some(&mut self.sum_ms),
            OVER => self.counts.last_mut(),
            bound => {
                let bound: u64 = bound.parse().ok()?;
                let place = BOUNDS_MS.iter().position(|known| *known == bound)?;
                self.counts.get_mut(place)
            }
        }
    }
}

fn is_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_.".contains(&b);
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::governor::time::Span;

    /// What the version before names wrote: 40 figures.
    const POSITIONAL: &str = "12,3,0,0,5,0,0,0,0,0,7,11,2,1,\
        10,2,0,0,0,0,0,0,0,0,0,0,64,11,0,0,0,0,0,0,0,0,0,0,0,42";

    fn full() -> Tally {
        let mut tally = Tally::default();
        for (reference, (_, outcome)) in (1..).zip(Outcome::AT_DOOR) {
            tally.attempt(Ref(reference), *outcome, Span::ZERO);
        }
        tally.attempt(Ref(7), Outcome::Granted, Span::from_ms(20));
        tally.attempt(Ref(8), Outcome::Omitted(7), Span::ZERO);
        tally.held.add(Span::from_seconds(10_000));
        tally.throttled = 3;
        tally.refresh_refused = 4;
        tally
    }

    #[test]
    fn figures_survive_their_text() {
        for tally in [Tally::default(), full()] {
            assert_eq!(Tally::from_text(&tally.to_text()), Some(tally));
        }
        for bad in ["", "1,2", "x", "1,2,x"] {
            assert_eq!(Tally::from_text(bad), None, "{bad}");
        }
    }

    #[test]
    fn every_figure_has_a_name_of_its_own_and_comes_back_under_it() {
        let mut tally = Tally::default();
        let names: Vec<String> = tally.figures().into_iter().map(|(name, _)| name).collect();
        for (figure, name) in (1..).zip(&names) {
            assert!(is_name(name), "{name}");
            tally.put(name, figure);
        }
        assert!(tally.others.is_empty());
        let read = Tally::from_text(&tally.to_text()).unwrap();
        let figures: Vec<u64> = read
            .figures()
            .into_iter()
            .map(|(_, figure)| figure)
            .collect();
        let expected: Vec<u64> = (1..).take(names.len()).collect();
        assert_eq!(figures, expected);
    }

    #[test]
    fn what_was_stored_by_position_is_read_and_still_written_in_front() {
        let tally = Tally::from_text(POSITIONAL).unwrap();
        let counts = Outcome::WORDS.into_iter().zip(tally.outcomes);
        let counts: Vec<_> = counts.filter(|(_, count)| *count > 0).collect();
        let expected = [
            ("granted", 12),
            ("queue_full", 3),
            ("no_free_slot", 5),
            ("omitted", 7),
        ];
        assert_eq!(counts, expected);
        assert_eq!((tally.released, tally.expired, tally.throttled), (11, 2, 1));
        assert_eq!((tally.queued.count(), tally.queued.sum_ms), (12, 64));
        assert_eq!((tally.held.count(), tally.held.sum_ms), (11, 42));
        assert_eq!(tally.counted, None, "it did not say");
        let written = tally.to_text();
        assert!(written.starts_with(&format!("{POSITIONAL},")), "{written}");
    }

    #[test]
    fn names_count_in_any_order_and_those_of_a_newer_version_are_kept() {
        let text = "tokens:9,released:2,granted:5,held.7:1,queued.over:1,ref:6";
        let mut tally = Tally::from_text(text).unwrap();
        assert_eq!((tally.outcomes[0], tally.released), (5, 2));
        tally.attempt(Ref(7), Outcome::Granted, Span::ZERO);
        let written = tally.to_text();
        for kept in ["tokens:9", "held.7:1", "granted:6", "ref:7"] {
            assert!(
                written.split(',').any(|one| one == kept),
                "{kept}: {written}"
            );
        }
        // What a newer one logged is counted on under its word too.
        tally.recount("tokens", 2, Span::ZERO);
        tally.recount("calls", 1, Span::ZERO);
        let written = tally.to_text();
        assert!(written.contains("tokens:11") && written.contains("calls:1"));
    }

    #[test]
    fn what_is_no_name_is_not_kept_nor_without_bound() {
        let many: Vec<String> = (0..500).map(|n| format!("n{n}:1")).collect();
        let tally = Tally::from_text(&many.join(",")).unwrap();
        assert_eq!(tally.others.len(), MOST_OTHERS);
        for bad in [
            "A:1",
            ":1",
            "a&b:1",
            "granted:-1",
            &format!("{}:1", "x".repeat(41)),
        ] {
            let tally = Tally::from_text(bad).unwrap();
            assert_eq!(tally, Tally::default(), "{bad}");
        }
    }
}
