//! The reference of all settings: a page in Markdown, and a JSON Schema.

use serde_json::{Map, Value as Json, json};

use crate::{Config, Setting};

/// The settings of one part.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    subject: &'static str,
    /// The settings.
    pub settings: &'static [Setting],
}

impl Group {
    /// The settings of a part.
    pub const fn of<C: Config>() -> Self {
        Self {
            subject: C::SUBJECT,
            settings: C::SETTINGS,
        }
    }
}

/// One table for each group.
pub fn markdown(groups: &[Group]) -> String {
    let mut page = String::new();
    for group in groups {
        page.push_str(&format!(
            "\n## {}\n\n| Setting | Environment | Default | Allowed | Meaning |\n|---|---|---|---|---|\n",
            group.subject.trim()
        ));
        for setting in group.settings {
            let default = match (setting.default)() {
                text if text.is_empty() => "–".to_owned(),
                text => format!("`{text}`"),
            };
            let secret = if setting.secret { " *(secret)*" } else { "" };
            page.push_str(&format!(
                "| `{}`{secret} | `{}` | {default} | {} | {} |\n",
                setting.name,
                setting.variable(),
                setting.form.allowed(),
                setting.meaning.trim(),
            ));
        }
    }
    page
}

/// The JSON Schema (2020-12) of the configuration file.
pub fn schema(groups: &[Group]) -> Json {
    let mut properties = Map::new();
    for setting in groups.iter().flat_map(|group| group.settings) {
        let mut schema = setting.form.schema();
        schema["description"] = Json::from(setting.meaning.trim());
        let default = (setting.default)();
        if !default.is_empty() {
            schema["default"] = setting.form.example(&default);
        }
        properties.insert(setting.name.to_owned(), schema);
        if setting.secret {
            let file = json!({
                "type": "string",
                "description": format!("File that holds {}.", setting.name),
            });
            properties.insert(format!("{}_file", setting.name), file);
        }
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of Portolan",
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    })
}
