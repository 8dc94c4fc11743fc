//! A request with everything that is fetched for it before its transaction: documents, and offers
//! of MCP servers.

use std::collections::BTreeMap;

use portolan_bundle::{
    Parsed, SecretReference,
    changes::ObjectKind,
    format::{self, Bundle, DeclaredKind},
    parse,
    secret::SecretStore,
    selection::{Selection, keys},
};
use portolan_http_tools::{Credential, CredentialSlot};
use portolan_keys::digest;
use portolan_model::Digest;
use portolan_site::console_error::ConsoleError;
use portolan_storage::registry::upstream_oauth::Leaving;
use portolan_upstream::Offer;
use serde::{Deserialize, Serialize};
use url::Url;
use utoipa::ToSchema;

use crate::{
    change::Editor,
    configuration::{
        current::{self, Contents, Current, CurrentSource},
        declared_webhooks::{self, PreparedWebhook, Stage},
        forms,
    },
    credentials,
    imports::{self, Loaded},
    sources, upstreams,
};

/// Which objects that the file does not have are deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Prune {
    /// None.
    None,
    /// Those that the file owns.
    #[default]
    Owned,
    /// All of the workspace.
    All,
}

/// The document of a source, as it was fetched.
#[derive(Serialize, Deserialize)]
struct Fetched {
    text: String,
    url: Url,
}

/// A request, with the documents that were fetched for it. It is kept sealed: it has secrets.
#[derive(Serialize, Deserialize)]
pub(super) struct SentFile {
    /// The file.
    pub(super) text: String,
    /// Texts of `file:` locations, by path.
    pub(super) files: BTreeMap<String, String>,
    /// Values of secrets, by reference.
    pub(super) secrets: BTreeMap<String, String>,
    pub(super) prune: Prune,
    /// Objects of other files are taken over.
    pub(super) claim: bool,
    /// Selectors of the objects that are meant; all without one.
    #[serde(default)]
    pub(super) select: Vec<String>,
    /// Documents of `https:` locations, by source.
    fetched: BTreeMap<String, Fetched>,
}

impl SentFile {
    pub(super) fn new(
        text: String,
        (files, secrets): (BTreeMap<String, String>, BTreeMap<String, String>),
        (prune, claim): (Prune, bool),
        select: Vec<String>,
    ) -> Self {
        Self {
            text,
            files,
            secrets,
            prune,
            claim,
            select,
            fetched: BTreeMap::new(),
        }
    }
}

/// A request that is ready for its transaction.
pub(super) struct Prepared {
    pub(super) sent: SentFile,
    /// The whole file, with the places of its objects.
    pub(super) parsed: Parsed,
    pub(super) selection: Selection,
    /// The selected objects of the file.
    pub(super) wanted: Bundle,
    /// Documents of sources that are new or have another one, by source.
    pub(super) documents: BTreeMap<String, Loaded>,
    /// Offers of MCP servers that are new, by source.
    pub(super) offers: BTreeMap<String, Offer>,
    /// Accounts of sources whose address changes.
    pub(super) leaving: Vec<Leaving>,
    /// By URL.
    pub(super) webhooks: BTreeMap<String, PreparedWebhook>,
}

impl Prepared {
    /// Reads the file, and fetches what it names.
    pub(super) async fn of(
        editor: &Editor,
        mut sent: SentFile,
        stage: Stage,
    ) -> Result<Self, ConsoleError> {
        let parsed = parsed(&sent.text)?;
        let mut tx = editor.begin().await?;
        let wanted = (&editor.workspace, Contents::Digests);
        let current = current::read(&editor.state, &mut tx, wanted).await?;
        drop(tx);
        let selection = selected(&sent.select, [&parsed.bundle, &current.bundle])?;
        let wanted = selection.of(&parsed.bundle);
        let (mut documents, mut offers) = (BTreeMap::new(), BTreeMap::new());
        let mut leaving = Vec::new();
        for source in &wanted.sources {
            let have = current.sources.get(&source.name);
            let key = (ObjectKind::Source, source.name.as_str());
            let at = |error: ConsoleError| refused_in(&parsed, key, error);
            check_secrets(source, &sent).map_err(at)?;
            match source.kind {
                DeclaredKind::Openapi => {
                    let loaded = document(editor, &mut sent, source, have).await;
                    if let Some(loaded) = loaded.map_err(at)? {
                        documents.insert(source.name.clone(), loaded);
                    }
                }
                DeclaredKind::Mcp if have.is_none() => {
                    let offer = offer(editor, &sent, source).await.map_err(at)?;
                    offers.insert(source.name.clone(), offer);
                }
                DeclaredKind::Mcp | DeclaredKind::Http => {}
            }
            if let Some(have) = have.filter(|have| moves(source, have)) {
                leaving.extend(sources::accounts_of(editor, have.row.id).await?);
            }
        }
        let mut webhooks = BTreeMap::new();
        for webhook in &wanted.webhooks {
            let url = webhook.url.as_str();
            let pair = (webhook, current.webhooks.get(url));
            let prepared = declared_webhooks::prepare(editor, &sent.secrets, pair, stage).await;
            let at = |error| refused_in(&parsed, (ObjectKind::Webhook, url), error);
            webhooks.insert(webhook.url.clone(), prepared.map_err(at)?);
        }
        Ok(Self {
            sent,
            parsed,
            selection,
            wanted,
            documents,
            offers,
            leaving,
            webhooks,
        })
    }

    /// The checked credential of a source, with its secrets. `have` is the stored one, whose
    /// secrets a reference to the vault keeps.
    pub(super) fn credential(
        &self,
        editor: &Editor,
        source: &format::Source,
        have: Option<&Credential>,
    ) -> Result<Option<Credential>, ConsoleError> {
        let Some(wanted) = &source.credential else {
            return Ok(None);
        };
        filled(editor, &self.sent, wanted, have).map(Some)
    }
}

/// The file, or 422 with the place of its first fault.
pub(super) fn parsed(text: &str) -> Result<Parsed, ConsoleError> {
    let mut parsed = parse(text).map_err(|fault| {
        let error = ConsoleError::invalid("configuration_invalid", format!("{fault}."));
        let error = match fault.place {
            Some(place) => error
                .detail("line", place.line)
                .detail("column", place.column),
            None => error,
        };
        error.field(if fault.path.is_empty() {
            "bundle"
        } else {
            fault.path.as_str()
        })
    })?;
    match declared_webhooks::normalise(&mut parsed.bundle) {
        Ok(()) => Ok(parsed),
        Err((index, error)) => {
            let url = parsed.bundle.webhooks[index].url.as_str();
            Err(located(&parsed, (ObjectKind::Webhook, index, url), error))
        }
    }
}

/// The selection of a request, each of whose selectors selects an object of the bundles.
fn selected(texts: &[String], bundles: [&Bundle; 2]) -> Result<Selection, ConsoleError> {
    let read = Selection::read(texts).and_then(|selection| {
        selection.check(keys(bundles).iter())?;
        Ok(selection)
    });
    read.map_err(|fault| {
        ConsoleError::invalid("selector_unknown", format!("{fault}."))
            .field(format!("select[{}]", fault.index))
    })
}

/// A refusal of an object, with its kind, key and place in the file.
pub(super) fn located(
    parsed: &Parsed,
    (kind, index, key): (ObjectKind, usize, &str),
    error: ConsoleError,
) -> ConsoleError {
    if error.status().is_server_error() {
        return error;
    }
    let place = parsed.place(kind.section(), index, error.at_field());
    let error = error.within(&format!("{}/{key}", kind.section()));
    match place {
        Some(place) => error
            .detail("line", place.line)
            .detail("column", place.column),
        None => error,
    }
}

/// Each secret of a source has a value, or is the workspace's own for this source.
fn check_secrets(source: &format::Source, sent: &SentFile) -> Result<(), ConsoleError> {
    let references = source
        .credential
        .iter()
        .flat_map(format::Credential::references);
    for reference in references {
        let is_sent = sent.secrets.contains_key(reference.as_str());
        let (store, name) = reference.parts();
        if store == SecretStore::Vault && name != source.name {
            return Err(ConsoleError::invalid(
                "secret_unknown",
                format!("{reference} is not of this source: write {}.", own(source)),
            )
            .field("credential"));
        }
        if store != SecretStore::Vault && !is_sent {
            return Err(missing(reference));
        }
    }
    Ok(())
}

fn own(source: &format::Source) -> SecretReference {
    SecretReference::vault(&source.name)
}

fn missing(reference: &SecretReference) -> ConsoleError {
    ConsoleError::invalid(
        "secret_missing",
        format!("{reference} has no value. Send it in `secrets`."),
    )
    .field("credential")
}

fn filled(
    editor: &Editor,
    sent: &SentFile,
    wanted: &format::Credential,
    have: Option<&Credential>,
) -> Result<Credential, ConsoleError> {
    let filled = forms::filled(wanted, |reference, header| {
        if let Some(value) = sent.secrets.get(reference.as_str()) {
            return Ok(value.clone());
        }
        have.and_then(|have| forms::kept_secret(have, wanted, header))
            .ok_or_else(|| missing(reference))
    })?;
    credentials::checked(&editor.state, filled)
}

/// Whether the address of a source changes.
fn moves(source: &format::Source, have: &CurrentSource) -> bool {
    let wanted = match source.kind {
        DeclaredKind::Mcp => &source.location,
        DeclaredKind::Openapi | DeclaredKind::Http => &source.base_url,
    };
    wanted
        .as_ref()
        .is_some_and(|wanted| *wanted != have.row.base_url)
}

/// The document of a source, unless the source has the same one already.
async fn document(
    editor: &Editor,
    sent: &mut SentFile,
    source: &format::Source,
    have: Option<&CurrentSource>,
) -> Result<Option<Loaded>, ConsoleError> {
    let (text, url) = text_of(editor, sent, source).await?;
    let same = have.is_some_and(|have| {
        let present: Option<&Digest> = have.row.document_digest.as_ref();
        present == Some(&digest(&text))
            && have.row.document_url.as_deref() == url.as_ref().map(Url::as_str)
    });
    if same {
        return Ok(None);
    }
    let tools = have.map(|have| have.tools.as_slice()).unwrap_or_default();
    let names = tools
        .iter()
        .map(|tool| (tool.operation_key.clone(), tool.original.name.clone()));
    let (state, tenant) = (&editor.state, editor.workspace.id);
    let loaded = imports::read_document(state, tenant, (text, url), names.collect()).await;
    loaded.map(Some).map_err(|error| error.field("location"))
}

/// The text of a document, with its address if it was fetched.
async fn text_of(
    editor: &Editor,
    sent: &mut SentFile,
    source: &format::Source,
) -> Result<(Vec<u8>, Option<Url>), ConsoleError> {
    let Some(location) = &source.location else {
        let text = source.document.clone().unwrap_or_default();
        return Ok((text.into_bytes(), None));
    };
    if let Some(path) = location.strip_prefix("file:") {
        let text = sent.files.get(path).ok_or_else(|| {
            ConsoleError::invalid(
                "file_missing",
                format!("The text of `{path}` is missing. Send it in `files`."),
            )
            .field("location")
        })?;
        return Ok((text.clone().into_bytes(), None));
    }
    if let Some(fetched) = sent.fetched.get(&source.name) {
        return Ok((fetched.text.clone().into_bytes(), Some(fetched.url.clone())));
    }
    let fetched = imports::fetched(&editor.state, location).await;
    let (text, url) = fetched.map_err(|error| error.field("location"))?;
    let text = String::from_utf8(text).map_err(|_not_utf8| {
        ConsoleError::invalid("document_invalid", "The document is not UTF-8.").field("location")
    })?;
    let kept = Fetched {
        text: text.clone(),
        url: url.clone(),
    };
    sent.fetched.insert(source.name.clone(), kept);
    Ok((text.into_bytes(), Some(url)))
}

/// The offer of a new MCP server.
async fn offer(
    editor: &Editor,
    sent: &SentFile,
    source: &format::Source,
) -> Result<Offer, ConsoleError> {
    let location = source.location.as_deref().unwrap_or_default();
    let url = upstreams::endpoint_url(&editor.state, location)
        .map_err(|error| error.field("location"))?;
    let credential = source.credential.as_ref();
    let credential = credential
        .map(|wanted| filled(editor, sent, wanted, None))
        .transpose()?;
    let slot = credential.map(|credential| CredentialSlot::new("look".to_owned(), credential));
    let (state, workspace) = (&editor.state, &editor.workspace);
    let offer = upstreams::look_at(state, workspace, &url, slot.as_ref()).await;
    offer.map_err(|error| error.field("location"))
}

/// The index of an object in its section of a bundle.
pub(super) fn index_of(parsed: &Parsed, kind: ObjectKind, key: &str) -> Option<usize> {
    let bundle = &parsed.bundle;
    match kind {
        ObjectKind::Source => bundle.sources.iter().position(|one| one.name == key),
        ObjectKind::Prompt => bundle.prompts.iter().position(|one| one.name == key),
        ObjectKind::Resource => bundle.resources.iter().position(|one| one.uri == key),
        ObjectKind::Server => bundle.servers.iter().position(|one| one.slug == key),
        ObjectKind::Webhook => bundle.webhooks.iter().position(|one| one.url == key),
    }
}

/// A refusal of the object with this kind and key.
pub(super) fn refused(
    prepared: &Prepared,
    (kind, key): (ObjectKind, &str),
    error: ConsoleError,
) -> ConsoleError {
    refused_in(&prepared.parsed, (kind, key), error)
}

fn refused_in(
    parsed: &Parsed,
    (kind, key): (ObjectKind, &str),
    error: ConsoleError,
) -> ConsoleError {
    match index_of(parsed, kind, key) {
        Some(index) => located(parsed, (kind, index, key), error),
        None => error.within(&format!("{}/{key}", kind.section())),
    }
}

/// Refuses a file that owns objects of another file, unless they are taken over.
pub(super) fn check_owners(prepared: &Prepared, current: &Current) -> Result<usize, ConsoleError> {
    let bundle = &prepared.wanted;
    let mut claimed = 0;
    for key in portolan_bundle::changes::objects(bundle).into_keys() {
        match current.owner(&key) {
            Some(owner) if owner == bundle.name => {}
            Some(owner) if !prepared.sent.claim => {
                let message = format!(
                    "The file `{owner}` manages it. Remove it there first, or claim it here."
                );
                let error = ConsoleError::conflict("managed_by_another", message);
                let error = error.detail("managed_by", owner);
                return Err(refused(prepared, (key.0, key.1.as_str()), error));
            }
            owner => {
                let is_there = owner.is_some() || current.has(&key);
                claimed += usize::from(is_there);
            }
        }
    }
    Ok(claimed)
}
