//! The IP allowlist: where callers may come from.
//!
//! Addresses and ranges are brought to one form first: an IPv4 address written
//! as an IPv6 one (`::ffff:192.0.2.1`) is that IPv4 address.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::value::RawValue;

use crate::fields::{FieldError, Fields};

/// The most ranges of one source.
pub const MOST_RANGES: usize = 1000;
/// The prefix under which IPv6 holds the IPv4 addresses.
const MAPPED_BITS: u8 = 96;

/// Ranges of addresses; an empty list admits everyone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IpAllowlist {
    ranges: Vec<IpNet>,
}

impl IpAllowlist {
    /// Reads a field that is a list of ranges. Absent, the list is empty.
    ///
    /// # Errors
    /// If it is no list, too long, or an entry is neither an address nor a range;
    /// the message says which entry.
    pub fn parse(fields: &Fields, name: &'static str) -> Result<Self, FieldError> {
        let Some(raw) = fields.raw(name) else {
            return Ok(Self::default());
        };
        let path = fields.path_of(name);
        let refuse = |what: String| FieldError::new(path.clone(), format!("{path}{what}"));
        let entries: Vec<&RawValue> = serde_json::from_str(raw.get()).map_err(|_| {
            refuse(" must be a list of addresses and ranges, like [\"192.0.2.0/24\"].".into())
        })?;
        if entries.len() > MOST_RANGES {
            return Err(refuse(format!(" must have at most {MOST_RANGES} entries.")));
        }
        let ranges = entries.iter().enumerate().map(|(index, entry)| {
            let text: Option<String> = serde_json::from_str(entry.get()).ok();
            text.as_deref().and_then(range).ok_or_else(|| {
                let shown: String = entry.get().chars().take(64).collect();
                refuse(format!(
                    "[{index}] must be an IPv4 or IPv6 address or range, \
                     like 192.0.2.1 or 2001:db8::/32; it is {shown}."
                ))
            })
        });
        Ok(Self {
            ranges: ranges.collect::<Result<_, _>>()?,
        })
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether a caller from there may come in. Where there is a list, someone
    /// without an address may not.
    pub fn admits(&self, address: Option<IpAddr>) -> bool {
        if self.ranges.is_empty() {
            return true;
        }
        let Some(address) = address else { return false };
        let address = address.to_canonical();
        self.ranges.iter().any(|range| range.contains(&address))
    }

    /// The ranges as text, each in its shortest form.
    pub fn texts(&self) -> Vec<String> {
        let text = |range: &IpNet| {
            if range.prefix_len() == range.max_prefix_len() {
                range.addr().to_string()
            } else {
                range.to_string()
            }
        };
        self.ranges.iter().map(text).collect()
    }
}

/// The address that a text says, with an IPv4-mapped one as IPv4.
///
/// Strict: no zone id, no port, no brackets, no leading zeros in IPv4 (which
/// some read as octal).
pub fn address(text: &str) -> Option<IpAddr> {
    let address: IpAddr = text.trim().parse().ok()?;
    Some(address.to_canonical())
}

/// A range, or an address, which is a range of one. Host bits are cut off.
fn range(text: &str) -> Option<IpNet> {
    let Some((base, bits)) = text.split_once('/') else {
        let base: IpAddr = text.parse().ok()?;
        return Some(IpNet::from(base.to_canonical()));
    };
    let base: IpAddr = base.parse().ok()?;
    let bits = prefix_length(bits)?;
    let canonical = base.to_canonical();
    let bits = if canonical.is_ipv4() && base.is_ipv6() {
        // A wider one would hold all of IPv4 and more: not what anyone means.
        bits.checked_sub(MAPPED_BITS)?
    } else {
        bits
    };
    let net = IpNet::new(canonical, bits).ok()?;
    Some(net.trunc())
}

/// Decimal digits without sign or leading zero.
fn prefix_length(text: &str) -> Option<u8> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    if !plain || (text.len() > 1 && text.starts_with('0')) {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(list: &str) -> Result<IpAllowlist, FieldError> {
        let body = format!(r#"{{"ips":{list}}}"#);
        IpAllowlist::parse(&Fields::of_body(body.as_bytes()).unwrap(), "ips")
    }

    fn list(entries: &[&str]) -> IpAllowlist {
        parse(&serde_json::to_string(entries).unwrap()).unwrap()
    }

    #[test]
    fn an_address_has_one_form() {
        for (text, canonical) in [
            ("192.0.2.1", "192.0.2.1"),
            ("  192.0.2.1\t", "192.0.2.1"),
            ("0.0.0.0", "0.0.0.0"),
            ("255.255.255.255", "255.255.255.255"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("::FFFF:c000:201", "192.0.2.1"),
            ("0:0:0:0:0:ffff:192.0.2.1", "192.0.2.1"),
            ("2001:DB8::0001", "2001:db8::1"),
            ("2001:0db8:0000:0000:0000:0000:0000:0001", "2001:db8::1"),
            ("::", "::"),
            ("::1", "::1"),
            // Compatible and translated ones are IPv6.
            ("::192.0.2.1", "::c000:201"),
            ("64:ff9b::192.0.2.1", "64:ff9b::c000:201"),
        ] {
            assert_eq!(address(text).unwrap().to_string(), canonical, "{text}");
        }
    }

    #[test]
    fn what_is_no_plain_address_is_none() {
        for text in [
            "",
            " ",
            "unknown",
            "192.0.2",
            "192.0.2.1.1",
            "192.0.2.256",
            "192.0.2.-1",
            "192.0.2.01",
            "010.0.0.1",
            "0x7f.0.0.1",
            "3221225985",
            "192.0.2.1:80",
            "192.0.2.1/32",
            "192.0.2.1, 192.0.2.2",
            "[::1]",
            "[::1]:80",
            "fe80::1%eth0",
            "fe80::1%25eth0",
            "::1%1",
            "::ffff:192.0.2.01",
            "::ffff:192.0.2.1%1",
            "1::2::3",
            "12345::",
            "1:2:3:4:5:6:7",
            "1:2:3:4:5:6:7:8:9",
            "１92.0.2.1",
            "192.0.2.1\0",
        ] {
            assert_eq!(address(text), None, "{text}");
        }
    }

    #[test]
    fn a_range_admits_what_is_in_it_and_nothing_else() {
        #[rustfmt::skip]
        let table: &[(&str, &[&str], &[&str])] = &[
            ("192.0.2.0/24", &["192.0.2.0", "192.0.2.255", "::ffff:192.0.2.7"],
                &["192.0.1.255", "192.0.3.0", "::192.0.2.7", "::1"]),
            ("192.0.2.77/24", &["192.0.2.0", "192.0.2.255"], &["192.0.3.0"]),
            ("192.0.2.1", &["192.0.2.1", "::ffff:c000:201"], &["192.0.2.0", "192.0.2.2"]),
            ("192.0.2.1/32", &["192.0.2.1"], &["192.0.2.0", "192.0.2.2"]),
            ("192.0.2.1/31", &["192.0.2.0", "192.0.2.1"], &["192.0.2.2"]),
            ("128.0.0.0/1", &["128.0.0.0", "255.255.255.255"], &["127.255.255.255"]),
            ("0.0.0.0/0", &["0.0.0.0", "255.255.255.255", "::ffff:1.2.3.4"], &["::", "2001:db8::1"]),
            ("203.0.113.9/0", &["0.0.0.0", "198.51.100.1"], &["::1"]),
            ("2001:db8::/32", &["2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"],
                &["2001:db7:ffff::", "2001:db9::", "32.1.13.184"]),
            ("2001:db8::dead/32", &["2001:db8::", "2001:db8:1::"], &["2001:db9::"]),
            ("2001:db8::1", &["2001:db8::1", "2001:DB8:0::1"], &["2001:db8::", "2001:db8::2"]),
            ("2001:db8::1/128", &["2001:db8::1"], &["2001:db8::", "2001:db8::2"]),
            ("2001:db8::/127", &["2001:db8::", "2001:db8::1"], &["2001:db8::2"]),
            ("::/0", &["::", "::1", "2001:db8::1", "fe80::1"], &["192.0.2.1", "::ffff:192.0.2.1"]),
            ("::ffff:192.0.2.0/120", &["192.0.2.0", "::ffff:192.0.2.255"], &["192.0.3.0"]),
            ("::ffff:192.0.2.9", &["192.0.2.9", "::ffff:192.0.2.9"], &["192.0.2.8"]),
            ("::ffff:192.0.2.9/128", &["192.0.2.9"], &["192.0.2.8"]),
            ("::ffff:0:0/96", &["0.0.0.0", "255.255.255.255"], &["::1"]),
        ];
        for (range, admitted, refused) in table {
            let list = list(&[range]);
            for text in *admitted {
                assert!(list.admits(address(text)), "{range} {text}");
                // Also in the form in which it came.
                assert!(list.admits(text.parse().ok()), "{range} {text}");
            }
            for text in *refused {
                assert!(!list.admits(address(text)), "{range} {text}");
                assert!(!list.admits(text.parse().ok()), "{range} {text}");
            }
        }
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in [
            "",
            "/",
            "/24",
            "192.0.2.0/",
            "192.0.2.0/33",
            "192.0.2.0/-1",
            "192.0.2.0/+8",
            "192.0.2.0/08",
            "192.0.2.0/8/8",
            "192.0.2.0/255.255.255.0",
            "192.0.2.0/ 24",
            " 192.0.2.0/24",
            "192.0.2.00/24",
            "192.0.2/24",
            "2001:db8::/129",
            "2001:db8::/256",
            "fe80::%eth0/64",
            "[2001:db8::]/32",
            // Half of it would never match.
            "::ffff:0:0/95",
            "::ffff:192.0.2.1/32",
            "example.com",
            "*",
        ] {
            let error = parse(&serde_json::to_string(&["::1", text]).unwrap()).unwrap_err();
            assert_eq!(error.field, "ips", "{text}");
            assert!(error.message.starts_with("ips[1] must be"), "{text}");
        }
        for bad in ["{}", "\"::1\"", "1", "[1]", "[null]", "[[]]"] {
            assert_eq!(parse(bad).unwrap_err().field, "ips", "{bad}");
        }
    }

    #[test]
    fn an_empty_list_admits_everyone_and_a_list_no_one_without_an_address() {
        for empty in ["[]", "null"] {
            let list = parse(empty).unwrap();
            assert!(list.is_empty() && list.admits(None) && list.admits(address("::1")));
        }
        assert!(!list(&["0.0.0.0/0", "::/0"]).admits(None));
    }

    #[test]
    fn any_of_several_ranges_admits_and_their_number_is_bounded() {
        let two = list(&["192.0.2.0/24", "2001:db8::/32"]);
        assert!(two.admits(address("192.0.2.1")) && two.admits(address("2001:db8::1")));
        assert!(!two.admits(address("192.0.3.1")));
        let many = vec!["::1"; MOST_RANGES];
        assert!(list(&many).admits(address("::1")));
        let more = serde_json::to_string(&vec!["::1"; MOST_RANGES + 1]).unwrap();
        assert!(parse(&more).unwrap_err().message.contains("1000"));
    }

    #[test]
    fn the_texts_are_canonical_and_read_the_same() {
        let given = list(&[
            "192.0.2.77/24",
            "::ffff:192.0.2.9",
            "2001:DB8::1/48",
            "::/0",
        ]);
        let texts = given.texts();
        assert_eq!(
            texts,
            ["192.0.2.0/24", "192.0.2.9", "2001:db8::/48", "::/0"]
        );
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        assert_eq!(list(&texts), given);
    }
}
