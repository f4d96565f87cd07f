// SPDX-License-Identifier: GPL-2.0
//! As much of JSON Schema as docs/schemas uses, read strictly: a word that is not known is an
//! error, as is a name that a schema does not have.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test states what it expects by failing loudly"
)]

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The folder with the schemas.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas")
}

/// The names of all schemas.
pub fn names() -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let schemas = names.filter_map(|name| Some(name.strip_suffix(".json")?.to_string()));
    schemas.collect()
}

/// The schema of that name.
pub fn schema(name: &str) -> Value {
    let file = folder().join(format!("{name}.json"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|_| panic!("no {file:?}"));
    serde_json::from_str(&text).unwrap()
}

/// What `value`, which stands at `at`, has against `schema`.
pub fn wrongs(schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (word, wanted) in schema.as_object().unwrap() {
        match word.as_str() {
            "$schema" | "title" | "description" => {}
            "const" if value == wanted => {}
            "const" => found.push(format!("{at}: {value} is not {wanted}")),
            "enum" if wanted.as_array().unwrap().contains(value) => {}
            "enum" => found.push(format!("{at}: {value} is none of {wanted}")),
            "type" if types(wanted).iter().any(|kind| is(value, kind)) => {}
            "type" => found.push(format!("{at}: {value} is no {wanted}")),
            "items" => {
                for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                    found.extend(wrongs(wanted, item, &format!("{at}[{number}]")));
                }
            }
            "required" => {
                let names = wanted
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|it| it.as_str().unwrap());
                let missing = names.filter(|name| value.get(name).is_none());
                found.extend(missing.map(|name| format!("{at}: has no '{name}'")));
            }
            "properties" => {
                for (name, schema) in wanted.as_object().unwrap() {
                    let value = value.get(name).into_iter();
                    found.extend(value.flat_map(|it| wrongs(schema, it, &format!("{at}.{name}"))));
                }
            }
            "additionalProperties" => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    let at = format!("{at}.{name}");
                    if schema["properties"].get(name).is_some() {
                    } else if *wanted == Value::Bool(false) {
                        found.push(format!("{at}: the schema has no such name"));
                    } else {
                        found.extend(wrongs(wanted, value, &at));
                    }
                }
            }
            other => panic!("{at}: '{other}' is not known here"),
        }
    }
    found
}

/// One type or several.
fn types(wanted: &Value) -> Vec<&str> {
    let several = wanted.as_array().into_iter().flatten();
    several.chain([wanted]).filter_map(Value::as_str).collect()
}

fn is(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no type: {other}"),
    }
}

/// A line for each thing that a reader may rely on: where it stands, what it is, and whether it may
/// be missing.
pub fn shape(schema: &Value, at: &str, lines: &mut BTreeSet<String>) {
    let kind = match (schema.get("type"), schema.get("const"), schema.get("enum")) {
        (Some(kind), _, _) => types(kind).join("|"),
        (_, Some(one), _) => one.to_string(),
        (_, _, one) => one.unwrap().to_string(),
    };
    lines.insert(format!("{at}: {kind}"));
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let mark = if required.contains(&name.as_str()) {
            ""
        } else {
            "?"
        };
        shape(schema, &format!("{at}.{name}{mark}"), lines);
    }
    if schema["additionalProperties"].is_object() {
        shape(&schema["additionalProperties"], &format!("{at}.*"), lines);
    }
    if schema["items"].is_object() {
        shape(&schema["items"], &format!("{at}[]"), lines);
    }
}

/// Adds what `value` has of `schema`, by the places that [`shape`] names.
pub fn met(schema: &Value, value: &Value, at: &str, places: &mut BTreeSet<String>) {
    places.insert(at.to_string());
    let properties = &schema["properties"];
    for (name, value) in value.as_object().into_iter().flatten() {
        match (properties.get(name), &schema["additionalProperties"]) {
            (Some(schema), _) => met(schema, value, &format!("{at}.{name}"), places),
            (None, others @ Value::Object(_)) => met(others, value, &format!("{at}.*"), places),
            _ => {}
        }
    }
    for value in value.as_array().into_iter().flatten() {
        met(&schema["items"], value, &format!("{at}[]"), places);
    }
}
