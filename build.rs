//! Turns `openapi.yaml` into the JSON that `/openapi.json` serves.

use std::{env, error::Error, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=openapi.yaml");
    let document: serde_json::Value =
        serde_yaml_ng::from_str(&fs::read_to_string("openapi.yaml")?)?;
    let out = env::var("OUT_DIR")?;
    fs::write(Path::new(&out).join("openapi.json"), document.to_string())?;
    Ok(())
}
