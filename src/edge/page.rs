//! The files of the dashboard and of the API docs, from the assets binding.
//!
//! Nothing of the caller's request goes there but the file's name, and nothing
//! of the answer comes back but its body. Where a deployment has no assets,
//! there are no pages: 404, and nothing else changes.

use wasm_bindgen::{JsCast as _, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::Response;

use super::config::Config;
use super::{Fault, Reply, js};
use crate::governor::ids::RequestId;
use crate::wire::page::Page;
use crate::wire::problem::Problem;

pub async fn serve(config: &Config, page: Page<'_>, id: RequestId) -> Reply {
    match fetch(config, page, id).await {
        Ok(Some(response)) => Reply::Passed(response),
        Ok(None) => Problem::not_found().into(),
        Err(error) => Fault::because("a page was not served", error).into(),
    }
}

/// None if there is no such file.
async fn fetch(
    config: &Config,
    page: Page<'_>,
    id: RequestId,
) -> Result<Option<Response>, JsValue> {
    let Some(assets) = &config.assets else {
        return Ok(None);
    };
    // The host means nothing to the binding.
    let url = format!("http://assets{}", page.file());
    let found: Response = JsFuture::from(assets.fetch(&url)?).await?.unchecked_into();
    if !found.ok() {
        return Ok(None);
    }
    js::respond_with_body(found.body().as_ref(), &page.head(), id).map(Some)
}
