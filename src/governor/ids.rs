//! The names that the governor works with: requests, attempts, keys, slots.
//!
//! All are fixed-size values; text forms are parsed here, once, and nothing
//! else in the crate takes them apart. Randomness comes in as an argument.

use core::fmt;
use std::str::FromStr;

use base64ct::{Base64UrlUnpadded, Encoding as _};
use subtle::ConstantTimeEq as _;

macro_rules! hex_id {
    ($(#[$doc:meta])* $name:ident($int:ty), $digits:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $int);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:0width$x}", self.0, width = $digits)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl FromStr for $name {
            type Err = NotAnId;

            /// Exactly the form that `Display` writes: lowercase hex, full width.
            fn from_str(text: &str) -> Result<Self, NotAnId> {
                let lower = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
                if text.len() != $digits || !text.bytes().all(lower) {
                    return Err(NotAnId);
                }
                <$int>::from_str_radix(text, 16).map(Self).map_err(|_| NotAnId)
            }
        }
    };
}

/// A text that is not of an id's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnId;

hex_id! {
    /// One call at the door: `x-swarmvia-request-id`, made by the Worker.
    /// A retry inside the service keeps it.
    RequestId(u128), 32
}

hex_id! {
    /// What makes two acquires the same one: a digest of the caller's
    /// `Idempotency-Key` and its key family, else the request's own id.
    AttemptId(u128), 32
}

hex_id! {
    /// `keyId`: a family of access keys, the minted one and its descendants.
    KeyId(u64), 16
}

hex_id! {
    /// A version of a source's settings: its `ETag`. A new one with each change.
    Version(u64), 16
}

impl From<RequestId> for AttemptId {
    fn from(request: RequestId) -> Self {
        Self(request.0)
    }
}

/// A slot's public name: the ordinal of its attempt, never the slot id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ref(pub u64);

impl FromStr for Ref {
    type Err = NotAnId;

    /// Decimal digits without a leading zero.
    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let plain = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
        let value = text.parse().ok().filter(|_| plain);
        value.map(Self).ok_or(NotAnId)
    }
}

impl fmt::Display for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The secret part of a slot id: 128 random bits. Compared in constant time
/// and never shown by `Debug`.
#[derive(Clone, Copy)]
pub struct SlotSecret(pub u128);

impl SlotSecret {
    pub fn matches(self, other: Self) -> bool {
        self.0.to_be_bytes().ct_eq(&other.0.to_be_bytes()).into()
    }
}

impl fmt::Debug for SlotSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SlotSecret(…)")
    }
}

/// A bearer secret that names one grant: the row that holds it and 128 random
/// bits. On the wire 27 URL-safe characters: base64url of 4 + 16 bytes.
#[derive(Clone, Copy, Debug)]
pub struct SlotId {
    pub row: u32,
    pub secret: SlotSecret,
}

const SLOT_ID_CHARS: usize = 27;

impl fmt::Display for SlotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = [0; 20];
        let (row, secret) = bytes.split_at_mut(4);
        row.copy_from_slice(&self.row.to_be_bytes());
        secret.copy_from_slice(&self.secret.0.to_be_bytes());
        let mut text = [0; SLOT_ID_CHARS];
        f.write_str(Base64UrlUnpadded::encode(&bytes, &mut text).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for SlotId {
    type Err = NotAnId;

    /// Accepts only the one form that `Display` writes.
    fn from_str(text: &str) -> Result<Self, NotAnId> {
        if text.len() != SLOT_ID_CHARS {
            return Err(NotAnId);
        }
        let mut bytes = [0; 20];
        let bytes = Base64UrlUnpadded::decode(text, &mut bytes).map_err(|_| NotAnId)?;
        let (row, secret) = bytes.split_first_chunk().ok_or(NotAnId)?;
        let secret = secret.first_chunk().ok_or(NotAnId)?;
        Ok(Self {
            row: u32::from_be_bytes(*row),
            secret: SlotSecret(u128::from_be_bytes(*secret)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_slot_id_survives_its_text(row: u32, secret: u128) {
            let id = SlotId { row, secret: SlotSecret(secret) };
            let text = id.to_string();
            prop_assert_eq!(text.len(), SLOT_ID_CHARS);
            let back: SlotId = text.parse().unwrap();
            prop_assert_eq!(back.row, row);
            prop_assert!(back.secret.matches(id.secret));
        }

        #[test]
        fn a_text_that_parses_is_the_one_that_is_written(text in "[A-Za-z0-9_-]{27}") {
            if let Ok(id) = text.parse::<SlotId>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }

    #[test]
    fn ids_have_one_form_only() {
        assert_eq!(
            "0f".repeat(8).parse::<KeyId>().unwrap().0,
            0x0f0f_0f0f_0f0f_0f0f
        );
        for bad in [
            "",
            "0",
            &"0F".repeat(8),
            &"0f".repeat(9),
            "+123456789abcdef",
        ] {
            assert_eq!(bad.parse::<KeyId>(), Err(NotAnId), "{bad}");
        }
    }

    #[test]
    fn a_secret_is_not_shown() {
        let id = SlotId {
            row: 1,
            secret: SlotSecret(0xfeed),
        };
        assert!(!format!("{id:?}").contains("feed"));
    }
}
