//! Prompts and resources that are written in the console: created, replaced, enabled, deleted and
//! restored in one way. What only one of them has stands in [`crate::prompts`] and
//! [`crate::resources`].

use axum::Json;
use http::StatusCode;
use portolan_model::{
    Timestamp,
    id::{Id, SourceId},
};
use portolan_site::console_error::ConsoleError;
use portolan_storage::{
    StorageError, TenantTx,
    registry::{
        published_items::{self, PublishedItem},
        trash::{self, Restorable},
    },
};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::change::{Deleted, Editor};

/// Most prompts, and most resources, of one workspace.
const MOST: usize = 1_000;

/// A change of whether a prompt or resource can be published.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EnabledChange {
    enabled: bool,
}

/// The words of one kind of item: in refusals and in the audit log.
pub(crate) struct ItemWords {
    /// `prompt`: in texts, and the kind of the target in the audit log.
    pub(crate) noun: &'static str,
    /// The field under which servers publish it: `name` or `uri`.
    pub(crate) address: &'static str,
    /// The code of the refusal of one more.
    pub(crate) too_many: &'static str,
    /// Stands for the address of a deleted item in refusals.
    pub(crate) unknown_address: &'static str,
    pub(crate) created: &'static str,
    pub(crate) changed: &'static str,
    pub(crate) enabled: &'static str,
    pub(crate) disabled: &'static str,
    pub(crate) deleted: &'static str,
    pub(crate) restored: &'static str,
}

/// A prompt or resource, as storage reads it.
pub(crate) trait WrittenItem: Sized {
    /// The kind of its id.
    type Kind: PublishedItem + Restorable;
    /// A checked form of the API.
    type Checked;
    /// The item as the API shows it.
    type View;
    const WORDS: ItemWords;

    /// Its name or URI.
    fn address(&self) -> &str;
    /// The upstream that has it; none if it was written here.
    fn source(&self) -> Option<SourceId>;
    async fn view(self, tx: &mut TenantTx) -> Result<Self::View, ConsoleError>;

    async fn find(tx: &mut TenantTx, id: Id<Self::Kind>) -> Result<Option<Self>, StorageError>;
    async fn count(tx: &mut TenantTx) -> Result<usize, StorageError>;
    /// Inserts the item, or replaces `before`.
    async fn write(
        tx: &mut TenantTx,
        id: Id<Self::Kind>,
        new: &Self::Checked,
        before: Option<&Self>,
        now: Timestamp,
    ) -> Result<(), ConsoleError>;
    /// The name or URI in a form.
    fn new_address(new: &Self::Checked) -> &str;
    /// The details of a form for the audit log, without texts.
    fn detail(new: &Self::Checked) -> Value;
    /// The refusal of an address that another item has.
    fn taken(error: StorageError, address: &str) -> ConsoleError;
}

/// The item, or 404.
pub(crate) async fn found<T: WrittenItem>(
    tx: &mut TenantTx,
    id: Id<T::Kind>,
) -> Result<T, ConsoleError> {
    T::find(tx, id)
        .await?
        .ok_or_else(|| ConsoleError::not_found(&format!("this {}", T::WORDS.noun)))
}

/// The item, if it was written here. Only the upstream server can change one of its own.
async fn written_here<T: WrittenItem>(
    tx: &mut TenantTx,
    id: Id<T::Kind>,
) -> Result<T, ConsoleError> {
    let item: T = found(tx, id).await?;
    if item.source().is_some() {
        let noun = T::WORDS.noun;
        return Err(ConsoleError::conflict(
            "not_written_here",
            format!("This {noun} comes from an upstream server. Enable or disable it instead."),
        ));
    }
    Ok(item)
}

/// Commits a change of an item that stays, and returns the item as the API shows it. `detail` is of
/// the form; without one, the address stands in the audit log.
async fn commit<T: WrittenItem>(
    editor: &Editor,
    mut tx: TenantTx,
    id: Id<T::Kind>,
    action: &'static str,
    detail: Option<Value>,
) -> Result<T::View, ConsoleError> {
    let item: T = found(&mut tx, id).await?;
    let detail = detail.unwrap_or_else(|| json!({ T::WORDS.address: item.address() }));
    let view = item.view(&mut tx).await?;
    editor.commit(tx, action, T::WORDS.noun, id, detail).await?;
    Ok(view)
}

/// Creates an item.
pub(crate) async fn create<T: WrittenItem>(
    editor: &Editor,
    new: T::Checked,
) -> Result<(StatusCode, Json<T::View>), ConsoleError> {
    let mut tx = editor.begin().await?;
    let id = add::<T>(&mut tx, &new, editor.now).await?;
    let detail = Some(T::detail(&new));
    let made = commit::<T>(editor, tx, id, T::WORDS.created, detail).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

/// Adds an item to the workspace.
pub(crate) async fn add<T: WrittenItem>(
    tx: &mut TenantTx,
    new: &T::Checked,
    now: Timestamp,
) -> Result<Id<T::Kind>, ConsoleError> {
    if T::count(tx).await? >= MOST {
        let noun = T::WORDS.noun;
        return Err(ConsoleError::conflict(
            T::WORDS.too_many,
            format!("A workspace has up to {MOST} {noun}s. Delete one first."),
        ));
    }
    let id = Id::generate();
    T::write(tx, id, new, None, now).await?;
    Ok(id)
}

/// Replaces an item. Servers that publish it under its old address follow.
pub(crate) async fn replace<T: WrittenItem>(
    editor: &Editor,
    id: Id<T::Kind>,
    check: impl FnOnce() -> Result<T::Checked, ConsoleError>,
) -> Result<Json<T::View>, ConsoleError> {
    let mut tx = editor.begin().await?;
    let before: T = written_here(&mut tx, id).await?;
    let new = check()?;
    overwrite(&mut tx, id, &before, &new, editor.now).await?;
    let detail = Some(T::detail(&new));
    commit::<T>(editor, tx, id, T::WORDS.changed, detail)
        .await
        .map(Json)
}

/// Puts a definition in the place of `before`, which was written here.
pub(crate) async fn overwrite<T: WrittenItem>(
    tx: &mut TenantTx,
    id: Id<T::Kind>,
    before: &T,
    new: &T::Checked,
    now: Timestamp,
) -> Result<(), ConsoleError> {
    T::write(tx, id, new, Some(before), now).await?;
    let (old, address) = (before.address(), T::new_address(new));
    if old != address {
        published_items::rename(tx, id, old, address)
            .await
            .map_err(|error| T::taken(error, address))?;
    }
    Ok(())
}

/// Enables or disables an item, also one of an upstream server.
pub(crate) async fn switch<T: WrittenItem>(
    editor: &Editor,
    id: Id<T::Kind>,
    change: &EnabledChange,
) -> Result<Json<T::View>, ConsoleError> {
    let mut tx = editor.begin().await?;
    published_items::set_enabled(&mut tx, &[id], change.enabled, editor.now).await?;
    let action = if change.enabled {
        T::WORDS.enabled
    } else {
        T::WORDS.disabled
    };
    commit::<T>(editor, tx, id, action, None).await.map(Json)
}

/// Deletes an item. It can be restored for [`trash::KEPT`].
pub(crate) async fn delete<T: WrittenItem>(
    editor: &Editor,
    id: Id<T::Kind>,
) -> Result<Json<Deleted>, ConsoleError> {
    let mut tx = editor.begin().await?;
    let before: T = written_here(&mut tx, id).await?;
    trash::delete(&mut tx, id, editor.now).await?;
    let detail = json!({ T::WORDS.address: before.address() });
    editor
        .commit(tx, T::WORDS.deleted, T::WORDS.noun, id, detail)
        .await?;
    Ok(Json(Deleted::at(editor.now)))
}

/// Restores a deleted item.
pub(crate) async fn restore<T: WrittenItem>(
    editor: &Editor,
    id: Id<T::Kind>,
) -> Result<Json<T::View>, ConsoleError> {
    let mut tx = editor.begin().await?;
    let restored = trash::restore(&mut tx, id, editor.now).await;
    if !restored.map_err(|error| T::taken(error, T::WORDS.unknown_address))? {
        return Err(ConsoleError::not_restorable(T::WORDS.noun));
    }
    commit::<T>(editor, tx, id, T::WORDS.restored, None)
        .await
        .map(Json)
}
