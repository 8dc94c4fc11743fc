//! `portolan validate`, `plan`, `apply`, `export` and `drift`: a workspace as a file
//! (CONF-10, CONF-11; `docs/configuration-as-code.md`).

mod service;
mod shown;

use std::{
    collections::BTreeMap,
    io::{BufRead, IsTerminal, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use portolan_bundle::{
    Bundle, SecretReference,
    format::{Credential, DeclaredKind},
    secret::SecretStore,
    selection::{Selection, keys},
    written::yaml,
};
use serde_json::{Value, json};

use crate::{connect::Environment, output::say, workspace_api::WorkspaceOptions};

use service::Service;

/// The workspace differs from the file.
const CHANGES: u8 = 2;

/// Most bytes of a document that the file names.
const MOST_DOCUMENT_BYTES: u64 = 10 * 1024 * 1024;

/// The file of a verb.
#[derive(Debug, Args)]
pub struct FileOptions {
    /// The file.
    #[arg(
        short = 'f',
        long = "file",
        value_name = "FILE",
        default_value = "portolan.yaml"
    )]
    file: PathBuf,
}

/// Which objects that the file does not have are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PruneOption {
    /// None.
    None,
    /// Those that the file owns.
    Owned,
    /// All of the workspace.
    All,
}

/// How a plan is made.
#[derive(Debug, Args)]
pub struct PlanOptions {
    #[command(flatten)]
    file: FileOptions,
    #[command(flatten)]
    workspace: WorkspaceOptions,
    /// Which objects that the file does not have are deleted.
    #[arg(long, value_enum, default_value = "owned")]
    prune: PruneOption,
    /// Take over objects that another file manages.
    #[arg(long)]
    claim: bool,
    /// Only this object of the file: `servers/sales`, `sources/*`. May stand several times.
    #[arg(long, value_name = "KIND/KEY")]
    select: Vec<String>,
    /// Another value for a reference: `vault:crm=env:CRM_KEY`. May stand several times.
    #[arg(long = "secret", value_name = "REFERENCE=FROM")]
    secrets: Vec<String>,
    /// Print the answer of the service as JSON.
    #[arg(long)]
    json: bool,
}

/// Options of `portolan validate`.
#[derive(Debug, Args)]
pub struct ValidateArguments {
    #[command(flatten)]
    file: FileOptions,
}

/// Options of `portolan apply`.
#[derive(Debug, Args)]
pub struct ApplyArguments {
    #[command(flatten)]
    plan: PlanOptions,
    /// Apply this plan, instead of a new one of the file.
    #[arg(long = "plan", value_name = "ID")]
    id: Option<String>,
    /// Do not ask before the changes are applied.
    #[arg(long)]
    auto_approve: bool,
    /// A fact for the audit log: `commit=1a2b3c`. May stand several times.
    #[arg(long, value_name = "NAME=VALUE")]
    meta: Vec<String>,
}

/// Options of `portolan export`.
#[derive(Debug, Args)]
pub struct ExportArguments {
    #[command(flatten)]
    workspace: WorkspaceOptions,
    /// Name of the file. If absent: of the file that owns most objects, else the workspace's slug.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Print JSON instead of YAML.
    #[arg(long)]
    json: bool,
    /// Only this object, as a part of the file: `servers/sales`, `sources/*`. May stand several
    /// times.
    #[arg(long, value_name = "KIND/KEY")]
    select: Vec<String>,
}

/// Checks a file without a workspace. Exit codes: 0 it is sound, 1 it is not.
pub(crate) fn validate(arguments: &ValidateArguments) -> Result<ExitCode> {
    let (_, bundle) = read_file(&arguments.file.file)?;
    let counts = [
        (bundle.sources.len(), "sources"),
        (bundle.prompts.len(), "prompts"),
        (bundle.resources.len(), "resources"),
        (bundle.servers.len(), "servers"),
        (bundle.webhooks.len(), "webhooks"),
    ];
    let counts = counts.map(|(count, noun)| format!("{count} {noun}"));
    let path = arguments.file.file.display();
    say(&format!("{path} is sound: {}.", counts.join(", ")));
    Ok(ExitCode::SUCCESS)
}

/// Shows what would change. Exit codes: 0 nothing, 2 something, 1 an error.
pub(crate) fn plan(options: &PlanOptions, environment: &Environment) -> Result<ExitCode> {
    let service = Service::new(&options.workspace, environment)?;
    let plan = make_plan(&service, options, environment)?;
    if options.json {
        say(&serde_json::to_string_pretty(&plan)?);
    } else {
        say(&shown::plan(&plan));
        if has_changes(&plan) {
            let id = plan["id"].as_str().unwrap_or_default();
            let until = plan["expires_at"].as_str().unwrap_or_default();
            say(&format!(
                "Apply with: portolan apply --plan {id} (until {until})"
            ));
        }
    }
    Ok(exit_code(&plan))
}

/// Shows how a workspace differs from the file. Exit codes: 0 not at all, 2 it does, 1 an error.
pub(crate) fn drift(options: &PlanOptions, environment: &Environment) -> Result<ExitCode> {
    let service = Service::new(&options.workspace, environment)?;
    let plan = make_plan(&service, options, environment)?;
    if options.json {
        say(&serde_json::to_string_pretty(&plan)?);
    } else {
        say(&shown::plan(&plan));
    }
    Ok(exit_code(&plan))
}

/// Makes a plan, asks, and applies it. Exit codes: 0 the workspace is as the file says, 1 it is
/// not.
pub(crate) fn apply(arguments: &ApplyArguments, environment: &Environment) -> Result<ExitCode> {
    let options = &arguments.plan;
    let service = Service::new(&options.workspace, environment)?;
    let facts = facts(&arguments.meta)?;
    let id = match &arguments.id {
        Some(id) => id.clone(),
        None => {
            let plan = make_plan(&service, options, environment)?;
            let claimed = plan["claimed"].as_u64().unwrap_or_default();
            if !has_changes(&plan) && claimed == 0 {
                say_unless_json(options, &shown::plan(&plan));
                print_json(options, &json!({ "changes": [], "claimed": 0 }))?;
                return Ok(ExitCode::SUCCESS);
            }
            if !arguments.auto_approve {
                // The question stands below the changes, also where the answer is JSON.
                eprintln!("{}", shown::plan(&plan));
                approve()?;
            }
            let id = plan["id"].as_str().context("the plan has no id")?;
            id.to_owned()
        }
    };
    let path = format!("configuration/plans/{id}/apply");
    let answer = service.post(&path, &json!({ "meta": facts }));
    let applied = answer.map_err(|refusal| refusal.in_file(&options.file.file))?;
    say_unless_json(options, &shown::applied(&applied));
    print_json(options, &applied)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints a workspace as a file.
pub(crate) fn export(arguments: &ExportArguments, environment: &Environment) -> Result<ExitCode> {
    let service = Service::new(&arguments.workspace, environment)?;
    if !arguments.select.is_empty() {
        return export_selected(arguments, &service);
    }
    let format = if arguments.json { "json" } else { "yaml" };
    let mut query = vec![("format", format)];
    query.extend(arguments.name.as_deref().map(|name| ("name", name)));
    let text = service.get("configuration", &query)?;
    if arguments.json {
        let value: Value = serde_json::from_str(&text)?;
        say(&serde_json::to_string_pretty(&value)?);
    } else {
        say(text.trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the selected objects. They are a part of a file: without a name, no plan takes them for the
/// whole (CONF-13).
fn export_selected(arguments: &ExportArguments, service: &Service) -> Result<ExitCode> {
    let selection = Selection::read(&arguments.select)?;
    let text = service.get("configuration", &[("format", "json")])?;
    let bundle: Bundle = serde_json::from_str(&text)?;
    selection.check(keys([&bundle]).iter())?;
    let mut part = serde_json::to_value(selection.of(&bundle))?;
    if let Some(members) = part.as_object_mut() {
        members.retain(|name, _| name != "format" && name != "name");
    }
    if arguments.json {
        say(&serde_json::to_string_pretty(&part)?);
    } else {
        say(yaml(&part)?.trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

fn say_unless_json(options: &PlanOptions, text: &str) {
    if !options.json {
        say(text);
    }
}

fn print_json(options: &PlanOptions, value: &Value) -> Result<()> {
    if options.json {
        say(&serde_json::to_string_pretty(value)?);
    }
    Ok(())
}

fn has_changes(plan: &Value) -> bool {
    plan["changes"]
        .as_array()
        .is_some_and(|changes| !changes.is_empty())
}

fn exit_code(plan: &Value) -> ExitCode {
    if has_changes(plan) {
        ExitCode::from(CHANGES)
    } else {
        ExitCode::SUCCESS
    }
}

/// Asks whether the changes are to be applied. An error is a no.
fn approve() -> Result<()> {
    let input = std::io::stdin();
    if !input.is_terminal() {
        bail!("nothing was applied: this is no terminal, so say --auto-approve");
    }
    eprint!("Apply these changes? Only `yes` does: ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    input.lock().read_line(&mut answer)?;
    if answer.trim() != "yes" {
        bail!("nothing was applied");
    }
    Ok(())
}

/// The text of the file, and its content. The error has the place of the fault.
fn read_file(path: &Path) -> Result<(String, Bundle)> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    match portolan_console::configuration::validate(&text) {
        Ok(bundle) => Ok((text, bundle)),
        Err(fault) => bail!("{shown}:{fault}"),
    }
}

fn make_plan(service: &Service, options: &PlanOptions, environment: &Environment) -> Result<Value> {
    let path = &options.file.file;
    let (text, bundle) = read_file(path)?;
    // Only what is selected needs its documents and secrets.
    let bundle = Selection::read(&options.select)?.of(&bundle);
    let prune = match options.prune {
        PruneOption::None => "none",
        PruneOption::Owned => "owned",
        PruneOption::All => "all",
    };
    let body = json!({
        "bundle": text, "files": documents(&bundle, path)?, "prune": prune,
        "claim": options.claim, "select": options.select, "secrets": secrets(&bundle, &options.secrets, environment)?,
    });
    service
        .post("configuration/plans", &body)
        .map_err(|refusal| refusal.in_file(path))
}

/// The texts of `file:` locations, which are relative to the file.
fn documents(bundle: &Bundle, file: &Path) -> Result<BTreeMap<String, String>> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let mut texts = BTreeMap::new();
    for source in &bundle.sources {
        let location = source
            .location
            .as_deref()
            .filter(|_| source.kind == DeclaredKind::Openapi);
        let Some(path) = location.and_then(|location| location.strip_prefix("file:")) else {
            continue;
        };
        let whole = folder.join(path);
        let about = || {
            format!(
                "sources/{}.location: cannot read {}",
                source.name,
                whole.display()
            )
        };
        let size = std::fs::metadata(&whole).with_context(about)?.len();
        if size > MOST_DOCUMENT_BYTES {
            bail!(
                "sources/{}.location: {path} is larger than 10 MiB",
                source.name
            );
        }
        let text = std::fs::read_to_string(&whole).with_context(about)?;
        texts.insert(path.to_owned(), text);
    }
    Ok(texts)
}

/// The values of all references that have one here.
fn secrets(
    bundle: &Bundle,
    given: &[String],
    environment: &Environment,
) -> Result<BTreeMap<String, String>> {
    let mut values = BTreeMap::new();
    for text in given {
        let (reference, from) = reference_and_origin(text)
            .context("--secret is written REFERENCE=FROM, such as vault:crm=env:CRM_KEY")?;
        let from = SecretReference::try_from(from.to_owned());
        let from = from.map_err(|message| anyhow::anyhow!("--secret {reference}: {message}"))?;
        let value = value_of(&from, environment)
            .with_context(|| format!("--secret {reference}"))?
            .context("--secret takes env:NAME or file:PATH")?;
        values.insert(reference.to_owned(), value);
    }
    for (place, reference) in references(bundle) {
        if values.contains_key(reference.as_str()) {
            continue;
        }
        if let Some(value) = value_of(reference, environment).context(place)? {
            values.insert(reference.to_string(), value);
        }
    }
    Ok(values)
}

/// The references of a file with their places.
fn references(bundle: &Bundle) -> impl Iterator<Item = (String, &SecretReference)> {
    let of_sources = bundle.sources.iter().flat_map(|source| {
        let references = source.credential.iter().flat_map(Credential::references);
        references.map(|reference| (format!("sources/{}.credential", source.name), reference))
    });
    let of_webhooks = bundle.webhooks.iter().flat_map(|webhook| {
        let place = format!("webhooks/{}.headers", webhook.url);
        let headers = webhook.headers.iter();
        headers.map(move |header| (place.clone(), &header.secret))
    });
    of_sources.chain(of_webhooks)
}

/// The two parts of `REFERENCE=FROM`. The name of a reference may have a `=` itself: it can be a URL.
fn reference_and_origin(text: &str) -> Option<(&str, &str)> {
    let stores = ["=env:", "=file:"];
    let at = stores
        .into_iter()
        .filter_map(|store| text.find(store))
        .min();
    at.map_or_else(
        || text.split_once('='),
        |at| Some((&text[..at], &text[at + 1..])),
    )
}

/// The value of a reference; none for one to the workspace. No error has a value.
fn value_of(reference: &SecretReference, environment: &Environment) -> Result<Option<String>> {
    let (store, name) = reference.parts();
    match store {
        SecretStore::Environment => {
            let value = environment.get(name).filter(|value| !value.is_empty());
            let value = value.with_context(|| format!("{name} is not set"))?;
            Ok(Some(value.clone()))
        }
        SecretStore::File => {
            let text =
                std::fs::read_to_string(name).with_context(|| format!("cannot read {name}"))?;
            Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
        }
        SecretStore::Vault => Ok(None),
    }
}

fn facts(given: &[String]) -> Result<BTreeMap<String, String>> {
    given
        .iter()
        .map(|text| {
            let (name, value) = text
                .split_once('=')
                .context("--meta is written NAME=VALUE, such as commit=1a2b3c")?;
            Ok((name.to_owned(), value.to_owned()))
        })
        .collect()
}
