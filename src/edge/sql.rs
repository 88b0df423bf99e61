//! SQL as the runtime takes it: a statement's values go over as one text, and
//! so do the rows that come back. What they mean is for those who ask.
//!
//! Numbers are bound as real ones, whatever they are: a column makes whole ones
//! of them, a division doesn't.

use std::cell::RefCell;
use std::fmt::{Display, Write as _};
use std::panic::RefUnwindSafe;
use std::rc::Rc;

use js_sys::JsString;
use serde_json::value::RawValue;
use wasm_bindgen::JsValue;

use super::js::{self, SqlStorage, Storage};
use crate::governor::time::Millis;
use crate::json::write_text;

/// The database of an object.
pub struct Sql {
    storage: SqlStorage,
    /// The statements that were run; there are a dozen.
    statements: RefCell<Vec<(&'static str, JsString)>>,
}

/// The statements that are known are whole at every moment.
impl RefUnwindSafe for Sql {}

impl Sql {
    pub fn of(storage: &Storage) -> Self {
        Self {
            storage: storage.sql(),
            statements: RefCell::default(),
        }
    }

    /// Runs a statement for what it does.
    ///
    /// # Errors
    /// What storage says.
    pub fn run(&self, statement: &'static str, bindings: Bindings) -> Result<(), JsValue> {
        js::run(&self.storage, &self.known(statement), &bindings.into_json())
    }

    /// Runs a query for its rows.
    ///
    /// # Errors
    /// What storage says.
    pub fn rows(&self, query: &str, bindings: Bindings) -> Result<Vec<Row>, JsValue> {
        let text = js::rows(&self.storage, query, &bindings.into_json())?;
        let (names, rows): (Vec<Box<str>>, Vec<Vec<&RawValue>>) =
            serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let names: Rc<[Box<str>]> = names.into();
        let row = |values: Vec<&RawValue>| Row {
            names: names.clone(),
            values: values.into_iter().map(|value| value.get().into()).collect(),
        };
        Ok(rows.into_iter().map(row).collect())
    }

    /// The text of a statement as the runtime has it: taken over once.
    fn known(&self, statement: &'static str) -> JsString {
        let mut known = self.statements.borrow_mut();
        let found = known
            .iter()
            .find(|(text, _)| std::ptr::eq(*text, statement));
        if let Some((_, known)) = found {
            return known.clone();
        }
        let text = JsString::from(statement);
        known.push((statement, text.clone()));
        text
    }
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

/// A page of at most `limit` rows, and its last one if there are more: one more
/// than the page takes was asked for, to tell.
pub fn page(rows: &[Row], limit: u32) -> (&[Row], Option<&Row>) {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let page = rows.get(..limit).unwrap_or(rows);
    (page, page.last().filter(|_| rows.len() > limit))
}

/// One row as it was read. A column that isn't there is as one that is null.
pub struct Row {
    names: Rc<[Box<str>]>,
    /// In JSON.
    values: Vec<Box<str>>,
}

impl Row {
    pub fn natural(&self, name: &str) -> Option<u64> {
        self.value(name)?.parse().ok()
    }

    pub fn small(&self, name: &str) -> Option<u32> {
        self.value(name)?.parse().ok()
    }

    pub fn moment(&self, name: &str) -> Option<Millis> {
        self.natural(name).map(Millis::from_epoch)
    }

    pub fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.value(name)?).ok()
    }

    fn value(&self, name: &str) -> Option<&str> {
        let at = self.names.iter().position(|known| **known == *name)?;
        self.values.get(at).map(AsRef::as_ref)
    }
}
