//! The tables as JSON Schema (draft 2020-12), for programs that read what is printed.
//!
//! A schema says what each column's value is. It does not forbid others, because a new column does
//! not make a new version, and requires none, because what the evidence does not tell is absent.

use super::{Column, Kind, Place, Record, SCHEMA_VERSION};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// The schema of a document, or of what stands at a place in it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct JsonSchema {
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    dialect: Option<&'static str>,
    #[serde(skip_serializing_if = "String::is_empty")]
    title: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
    #[serde(rename = "type")]
    types: Vec<&'static str>,
    #[serde(skip_serializing_if = "Properties::is_empty")]
    properties: Properties,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Box<JsonSchema>>,
}

/// What an object has, in the order of its table.
#[derive(Debug, Clone, Default, PartialEq)]
struct Properties(Vec<(&'static str, JsonSchema)>);

impl Properties {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Properties {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, schema) in &self.0 {
            map.serialize_entry(name, schema)?;
        }
        map.end()
    }
}

impl JsonSchema {
    /// An object that has these columns where JSON has them; `what` says what it is.
    pub fn of<K: Record>(what: &str, columns: &[Column<K>]) -> Self {
        JsonSchema { description: what.into(), ..Self::object() }.and(columns)
    }

    /// The same with these columns, too.
    pub fn and<K: Record>(mut self, columns: &[Column<K>]) -> Self {
        for column in columns {
            match column.place {
                Place::Everywhere => self.put(column.name, Self::value(column)),
                Place::At(path) | Place::Json(path) => self.put(path, Self::value(column)),
                Place::InDirection(path) => {
                    for direction in ["client_to_server", "server_to_client"] {
                        self.at(direction).put(path, Self::value(column));
                    }
                }
                Place::Rows => {}
            }
        }
        self
    }

    /// A flat object that has these columns under their names, as a line of rows.
    pub fn of_rows<K: Record>(what: &str, columns: &[Column<K>]) -> Self {
        JsonSchema { description: what.into(), ..Self::object() }.and_rows(columns)
    }

    /// The same with these columns, too.
    pub fn and_rows<K: Record>(mut self, columns: &[Column<K>]) -> Self {
        for column in columns.iter().filter(|column| column.place.is_in_rows()) {
            self.put(column.name, Self::value(column));
        }
        self
    }

    /// A flat object that has the columns of these names, in this order, as a line of rows.
    pub fn of_chosen<K: Record>(what: &str, columns: &[Column<K>], names: &[&str]) -> Self {
        let mut schema = JsonSchema { description: what.into(), ..Self::object() };
        let chosen = names.iter().filter_map(|name| columns.iter().find(|one| one.name == *name));
        for column in chosen {
            schema.put(column.name, Self::value(column));
        }
        schema
    }

    /// The same with a list of such objects under `name`.
    pub fn with_list(mut self, name: &'static str, items: JsonSchema) -> Self {
        let list = JsonSchema {
            types: vec!["array"],
            items: Some(Box::new(items)),
            ..JsonSchema::default()
        };
        self.properties.0.push((name, list));
        self
    }

    /// The schema as a document of its own.
    pub fn titled(self, title: &str) -> Self {
        JsonSchema {
            dialect: Some("https://json-schema.org/draft/2020-12/schema"),
            title: format!("fullpipe: {title}, version {SCHEMA_VERSION}"),
            ..self
        }
    }

    fn object() -> Self {
        JsonSchema { types: vec!["object"], ..JsonSchema::default() }
    }

    fn value<K: Record>(column: &Column<K>) -> Self {
        let (name, items) = match column.kind {
            Kind::Text => ("string", None),
            Kind::Number => ("integer", None),
            Kind::Fraction => ("number", None),
            Kind::Boolean => ("boolean", None),
            Kind::Words | Kind::Texts => ("array", Some("string")),
            Kind::Objects => ("array", Some("object")),
        };
        let mut types = vec![name];
        let mut description = column.meaning.to_owned();
        if !column.unit().is_empty() {
            description += &format!(" ({})", column.unit());
        }
        if !column.null.is_empty() {
            types.push("null");
            description += &format!("; absent: {}", column.null);
        }
        let items =
            items.map(|items| Box::new(JsonSchema { types: vec![items], ..JsonSchema::default() }));
        JsonSchema { types, description, items, ..JsonSchema::default() }
    }

    /// The object under `name`, which is made if there is none.
    fn at(&mut self, name: &'static str) -> &mut Self {
        let all = &mut self.properties.0;
        let place = all.iter().position(|(other, _)| *other == name).unwrap_or_else(|| {
            all.push((name, Self::object()));
            all.len() - 1
        });
        &mut all[place].1
    }

    /// Puts a value where a path leads, its parts parted by dots.
    fn put(&mut self, path: &'static str, value: JsonSchema) {
        match path.split_once('.') {
            Some((object, rest)) => self.at(object).put(rest, value),
            None => *self.at(path) = value,
        }
    }

    /// Every value, with the path that leads to it and a sentence about it. `findings[].limit` is
    /// of each object in a list.
    pub fn values(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        self.add_values("", &mut found);
        found
    }

    fn add_values(&self, path: &str, found: &mut Vec<(String, String)>) {
        for (name, schema) in &self.properties.0 {
            let path = if path.is_empty() { (*name).into() } else { format!("{path}.{name}") };
            match &schema.items {
                Some(items) if !items.properties.is_empty() => {
                    items.add_values(&format!("{path}[]"), found);
                }
                _ if schema.properties.is_empty() => {
                    let types = schema.types.join(" or ");
                    found.push((path, format!("{} ({types})", schema.description)));
                }
                _ => schema.add_values(&path, found),
            }
        }
    }
}
