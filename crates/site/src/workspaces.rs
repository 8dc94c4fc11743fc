//! The creation of a workspace, from the console and from the login pages.

use portolan_model::{
    audit::{Actor, Event, Outcome},
    id::UserId,
    member::Role,
    slug::Slug,
};
use portolan_storage::{
    Reason, StorageError,
    accounts::members,
    platform::{
        audit,
        tenants::{self, SLUG_TAKEN, Tenant},
    },
};

use crate::{console_error::ConsoleError, request_context::RequestContext, state::AuthState};

/// Most workspaces that one person may own (AUTH-M9).
pub const MOST_OWNED: usize = 20;

/// Longest display name, in characters.
pub const NAME_LENGTH: usize = 80;

/// Why a workspace cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The name is empty or too long.
    #[error("Give the workspace a name of 1 to {NAME_LENGTH} characters.")]
    Name,
    /// The slug is against the rules.
    #[error("This address cannot be used: {0}.")]
    Slug(#[from] portolan_model::slug::InvalidSlug),
    /// A workspace has or had this slug (AUTH-M3).
    #[error("This address is taken. Choose another one.")]
    Taken,
    /// The person owns too many (AUTH-M9).
    #[error("You own {MOST_OWNED} workspaces already, which is the most one person can have.")]
    TooMany,
    /// The database failed.
    #[error("storage")]
    Storage(#[from] StorageError),
}

impl From<CreateError> for ConsoleError {
    fn from(error: CreateError) -> Self {
        let message = error.to_string();
        match error {
            CreateError::Name => Self::invalid("name_invalid", message).field("name"),
            CreateError::Slug(_) => Self::invalid("slug_invalid", message).field("slug"),
            CreateError::Taken => Self::conflict("slug_taken", message).field("slug"),
            CreateError::TooMany => Self::conflict("too_many_workspaces", message),
            CreateError::Storage(error) => error.into(),
        }
    }
}

/// Reads a display name: trimmed, not empty, of bounded length, without control characters.
pub fn display_name(text: &str) -> Option<&str> {
    let name = text.trim();
    let fits = !name.is_empty()
        && name.chars().count() <= NAME_LENGTH
        && !name.chars().any(char::is_control);
    fits.then_some(name)
}

/// Creates a workspace that `owner` owns. For the console and for the page without script.
pub async fn create(
    state: &AuthState,
    context: &RequestContext,
    owner: UserId,
    name: &str,
    slug: &str,
) -> Result<Tenant, CreateError> {
    let name = display_name(name).ok_or(CreateError::Name)?;
    let slug: Slug = slug.trim().parse()?;
    let now = state.now();
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let owned = members::workspaces_of(&mut tx, owner)
        .await?
        .iter()
        .filter(|workspace| workspace.role == Role::Owner)
        .count();
    if owned >= MOST_OWNED {
        return Err(CreateError::TooMany);
    }
    let tenant = tenants::create(&mut tx, name, &slug, owner, now)
        .await
        .map_err(|error| {
            if error.is_conflict_on(SLUG_TAKEN) {
                CreateError::Taken
            } else {
                CreateError::Storage(error)
            }
        })?;
    let event = Event {
        tenant: Some(tenant.id),
        actor: Actor::User(owner),
        action: "tenant.created",
        target_kind: "tenant",
        target_id: tenant.id.to_string(),
        outcome: Outcome::Ok,
        detail: serde_json::json!({ "slug": tenant.slug, "name": tenant.name }),
    };
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    Ok(tenant)
}
