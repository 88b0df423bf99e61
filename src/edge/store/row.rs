//! Values on their way into rows and out of them. Nothing here writes.

use std::fmt::{Display, Write as _};

use js_sys::Array;
use wasm_bindgen::JsValue;

use super::Header;
use crate::access::families::Family;
use crate::edge::js;
use crate::fields::whole;
use crate::governor::ids::{KeyId, Ref, SlotSecret};
use crate::governor::slots::Slot;
use crate::governor::tally::Tally;
use crate::governor::time::{Millis, Span};
use crate::json::write_text;
use crate::protocol::directory::Summary;

pub fn optional<T>(value: Option<T>, write: impl FnOnce(T) -> JsValue) -> JsValue {
    value.map_or(JsValue::NULL, write)
}

pub fn row<const N: usize>(values: [JsValue; N]) -> Array {
    values.into_iter().collect()
}

/// Exact: nothing here is above 2^53.
#[expect(clippy::cast_precision_loss, reason = "values stay below 2^53")]
pub fn number(value: u64) -> f64 {
    value as f64
}

pub fn moment(at: Millis) -> JsValue {
    number(at.epoch_ms()).into()
}

/// The values of a statement as a list in JSON: one text is taken over by the
/// runtime, where each value by itself would cost as much.
pub struct Bindings(String);

impl Bindings {
    pub fn new() -> Self {
        let mut text = String::with_capacity(320);
        text.push('[');
        Self(text)
    }

    pub fn number(mut self, value: impl Into<u64>) -> Self {
        self.0.push_str(&value.into().to_string());
        self.next()
    }

    pub fn moment(self, at: Millis) -> Self {
        self.number(at.epoch_ms())
    }

    pub fn text(mut self, value: &str) -> Self {
        write_text(value, &mut self.0);
        self.next()
    }

    /// An id, as the text that it is shown as: nothing in it needs an escape.
    pub fn id(mut self, id: impl Display) -> Self {
        // Writing to a String can't fail.
        let _ = write!(self.0, "\"{id}\"");
        self.next()
    }

    pub fn optional<T>(mut self, value: Option<T>, put: impl FnOnce(Self, T) -> Self) -> Self {
        let Some(value) = value else {
            self.0.push_str("null");
            return self.next();
        };
        put(self, value)
    }

    fn next(mut self) -> Self {
        self.0.push(',');
        self
    }

    pub fn into_json(mut self) -> String {
        if self.0.ends_with(',') {
            self.0.pop();
        }
        self.0.push(']');
        self.0
    }
}

/// One row as it was read.
pub struct Row(pub JsValue);

impl Row {
    pub fn natural(&self, name: &str) -> Option<u64> {
        js::property(&self.0, name).as_f64().map(whole)
    }

    pub fn small(&self, name: &str) -> Option<u32> {
        u32::try_from(self.natural(name)?).ok()
    }

    pub fn moment(&self, name: &str) -> Option<Millis> {
        self.natural(name).map(Millis::from_epoch)
    }

    pub fn text(&self, name: &str) -> Option<String> {
        js::property(&self.0, name).as_string()
    }

    pub fn header(&self) -> Option<Header> {
        Some(Header {
            name: self.text("name")?,
            version: self.text("version")?.parse().ok()?,
            created_at: self.moment("created_at")?,
            updated_at: self.moment("updated_at")?,
        })
    }

    /// `at`: the column of its moment. What was counted is 0 where it can't be
    /// read.
    pub fn summary(&self, at: &str) -> Option<Summary> {
        let tally = self.text("tally");
        Some(Summary {
            at: self.moment(at)?,
            limit: self.small("effective_limit")?,
            in_use: self.small("in_use")?,
            depth: self.small("depth")?,
            tally: tally
                .and_then(|text| Tally::from_text(&text))
                .unwrap_or_default(),
        })
    }

    pub fn slot(&self) -> Option<Slot> {
        let secret = u128::from_str_radix(&self.text("secret")?, 16).ok()?;
        Some(Slot {
            row: self.small("row")?,
            reference: Ref(self.natural("ref")?),
            secret: SlotSecret(secret),
            attempt: self.text("attempt")?.parse().ok()?,
            request: self.text("request")?.parse().ok()?,
            key: self.text("key")?.parse().ok()?,
            granted_at: self.moment("at")?,
            in_use: 0,
            lease_deadline: self.moment("lease_deadline")?,
            request_deadline: self.moment("request_deadline")?,
        })
    }

    pub fn family(&self) -> Option<(KeyId, Family)> {
        let key = self.text("key")?.parse().ok()?;
        let retired = self.text("retired").and_then(|digest| digest.parse().ok());
        let family = Family {
            name: self.text("name"),
            created_at: self.moment("created_at")?,
            ttl: Span::from_ms(self.natural("ttl_ms")?),
            refresh_ttl: Span::from_ms(self.natural("refresh_ttl_ms")?),
            expires_at: self.moment("expires_at")?,
            current: self.text("current")?.parse().ok()?,
            refresh_expires_at: self.moment("refresh_expires_at")?,
            retired: retired.zip(self.moment("retired_at")),
            revoked_at: self.moment("revoked_at"),
        };
        Some((key, family))
    }
}
