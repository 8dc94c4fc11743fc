//! Where settings come from: a TOML file, the environment over it, and files of secrets.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail};
use portolan_config::{Form, Setting, Values};

use super::GROUPS;

/// Every setting there is.
pub(crate) fn all() -> impl Iterator<Item = &'static Setting> {
    GROUPS.iter().flat_map(|group| group.settings)
}

/// Reads the file, if one is named, and then the environment. An unknown name in either place is
/// an error: a typo in a security setting must not become a default.
pub fn load(
    file: Option<&Path>,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<Values> {
    let mut values = Values::default();
    if let Some(path) = file {
        read_file(&mut values, path)?;
    }
    read_environment(&mut values, environment)?;
    read_secret_files(&mut values)?;
    Ok(values)
}

fn read_file(values: &mut Values, path: &Path) -> Result<()> {
    let text = fs::read_to_string(path)
        .with_context(|| format!("cannot read the configuration file {}", path.display()))?;
    let table: toml::Table = text
        .parse()
        .with_context(|| format!("{} is not valid TOML", path.display()))?;
    for (name, value) in table {
        let setting = known(&name).with_context(|| format!("in {}", path.display()))?;
        let is_table = matches!(setting.form, Form::Tables(_));
        let text = match value {
            toml::Value::String(text) => text,
            toml::Value::Integer(number) => number.to_string(),
            toml::Value::Float(number) => number.to_string(),
            toml::Value::Boolean(yes) => yes.to_string(),
            // Tables: written as in the environment, to be read in one way.
            toml::Value::Array(_) if is_table => {
                toml::Table::from_iter([(name.clone(), value)]).to_string()
            }
            toml::Value::Array(items) => items
                .into_iter()
                .map(|item| {
                    item.as_str()
                        .map(str::to_owned)
                        .with_context(|| format!("{name}: a list of strings is expected"))
                })
                .collect::<Result<Vec<_>>>()?
                .join(","),
            _ => {
                bail!("{name}: a string, a number, true, false or a list of strings is expected")
            }
        };
        values.set(&name, text);
    }
    Ok(())
}

fn read_environment(
    values: &mut Values,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<()> {
    for (variable, value) in environment {
        let Some(name) = variable.strip_prefix("PORTOLAN_") else {
            continue;
        };
        // Named by the command line, or meant for the test suites.
        if matches!(name, "CONFIG" | "ROLE" | "POSTGRES_BIN")
            || name.starts_with("TEST_")
            || name.starts_with("DEV_")
        {
            continue;
        }
        let name = name.to_ascii_lowercase();
        known(&name).with_context(|| format!("environment variable {variable}"))?;
        // A secret given directly replaces one from a file, and the other way round.
        match name.strip_suffix("_file") {
            Some(base) => values.remove(base),
            None => values.remove(&format!("{name}_file")),
        };
        values.set(&name, value);
    }
    Ok(())
}

fn read_secret_files(values: &mut Values) -> Result<()> {
    for setting in all().filter(|setting| setting.secret) {
        let name = setting.name;
        let Some(path) = values.remove(&format!("{name}_file")) else {
            continue;
        };
        if values.text(name).is_some() {
            bail!("{name} and {name}_file are both set: keep one");
        }
        let text = fs::read_to_string(&path)
            .with_context(|| format!("{name}_file: cannot read {path}"))?;
        values.set(name, text.trim_end_matches(['\r', '\n']));
    }
    Ok(())
}

/// The setting of this name, or of the secret whose file this name is.
fn known(name: &str) -> Result<&'static Setting> {
    let found = all().find(|setting| {
        setting.name == name || (setting.secret && name.strip_suffix("_file") == Some(setting.name))
    });
    if let Some(setting) = found {
        return Ok(setting);
    }
    let near = all()
        .map(|setting| setting.name)
        .find(|known| known.contains(name) || name.contains(known));
    match near {
        Some(near) => bail!(
            "unknown setting {name:?}: did you mean {near:?}? (portolan emit configuration lists all)"
        ),
        None => bail!("unknown setting {name:?} (portolan emit configuration lists all)"),
    }
}
