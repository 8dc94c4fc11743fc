//! Saved views of the log of calls: filters by name, of a person or shared (CAPTURE-10).

use std::collections::BTreeMap;

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_model::{
    id::{CallViewId, CallViewKind, UserId},
    member::Action,
};
use portolan_site::{
    console_error::ConsoleError, request_context::RequestContext, state::AuthState,
};
use portolan_storage::{
    StorageError,
    platform::{
        audit,
        call_views::{self, Deletes, NewCallView},
    },
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    input::{JsonBody, PathId},
    listing::Listing,
    workspace::Workspace,
};

/// Most views that a person keeps in a workspace.
const MOST: i64 = 50;

/// The filters of the page of calls.
const FILTERS: [&str; 9] = [
    "tool", "server", "client", "user", "outcome", "era", "dur", "from", "to",
];

/// Longest value of a filter, in characters.
const LONGEST: usize = 200;

/// A saved view.
#[derive(Debug, Serialize, ToSchema)]
pub struct CallView {
    #[schema(value_type = String)]
    id: CallViewId,
    name: String,
    /// Values by filter, as the address of the page has them.
    filter: BTreeMap<String, String>,
    /// All members see it.
    is_shared: bool,
    /// The person of this request saved it.
    is_own: bool,
}

/// A view to save.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewCallViewBody {
    /// Unique for the person.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// Values by filter: `tool`, `server`, `client`, `user`, `outcome`, `era`, `dur`, `from`, `to`.
    filter: BTreeMap<String, String>,
    /// All members see it. Developers may share.
    is_shared: bool,
}

fn person(workspace: &Workspace) -> Result<UserId, ConsoleError> {
    workspace
        .caller
        .user()
        .ok_or_else(ConsoleError::person_only)
}

/// The saved views that the person sees, by name.
#[utoipa::path(get, path = "/workspaces/{ws}/call-views", tag = "calls",
    params(("ws" = String, Path, description = "Slug")),
    responses((status = 200, description = "The views.", body = Listing<CallView>)))]
pub(crate) async fn list_call_views(
    State(state): State<AuthState>,
    workspace: Workspace,
) -> Result<Json<Listing<CallView>>, ConsoleError> {
    workspace.require(Action::Read)?;
    let user = person(&workspace)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let views = call_views::list(&mut tx, user).await?;
    let items = views.into_iter().map(|view| {
        let filter = serde_json::from_value(view.filter);
        Ok(CallView {
            id: view.id,
            name: view.name,
            filter: filter.map_err(|fault| ConsoleError::internal("saved view", fault))?,
            is_shared: view.is_shared,
            is_own: view.user == user,
        })
    });
    let items = items.collect::<Result<_, ConsoleError>>()?;
    Ok(Json(Listing::whole(items)))
}

/// Saves a view.
#[utoipa::path(post, path = "/workspaces/{ws}/call-views", tag = "calls",
    params(("ws" = String, Path, description = "Slug")), request_body = NewCallViewBody,
    responses((status = 201, description = "Saved.", body = CallView)))]
pub(crate) async fn save_call_view(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    JsonBody(body): JsonBody<NewCallViewBody>,
) -> Result<(StatusCode, Json<CallView>), ConsoleError> {
    let (wanted, user) = (WantedView::read(&workspace, body)?, person(&workspace)?);
    let now = state.now();
    let mut tx = state.store.tenant(workspace.id).await?;
    if call_views::count(&mut tx, user).await? >= MOST {
        return Err(ConsoleError::conflict(
            "too_many",
            format!("You keep at most {MOST} views here. Delete some first."),
        ));
    }
    let id = CallViewId::generate();
    call_views::insert(&mut tx, id, &wanted.row(user), now)
        .await
        .map_err(name_taken)?;
    let event = workspace.event("call_view.created", "call_view", id, wanted.detail());
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    Ok((StatusCode::CREATED, Json(wanted.view(id))))
}

/// Replaces a view of the person.
#[utoipa::path(put, path = "/workspaces/{ws}/call-views/{id}", tag = "calls",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "View")),
    request_body = NewCallViewBody,
    responses((status = 200, description = "Replaced.", body = CallView)))]
pub(crate) async fn change_call_view(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<CallViewKind>,
    context: RequestContext,
    JsonBody(body): JsonBody<NewCallViewBody>,
) -> Result<Json<CallView>, ConsoleError> {
    let (wanted, user) = (WantedView::read(&workspace, body)?, person(&workspace)?);
    let now = state.now();
    let mut tx = state.store.tenant(workspace.id).await?;
    let is_there = call_views::replace(&mut tx, id, &wanted.row(user), now)
        .await
        .map_err(name_taken)?;
    if !is_there {
        return Err(ConsoleError::not_found("this view"));
    }
    let event = workspace.event("call_view.changed", "call_view", id, wanted.detail());
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    Ok(Json(wanted.view(id)))
}

/// Deletes a view of the person. Administrators delete shared ones of others too.
#[utoipa::path(delete, path = "/workspaces/{ws}/call-views/{id}", tag = "calls",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "View")),
    responses((status = 204, description = "Deleted.")))]
pub(crate) async fn delete_call_view(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<CallViewKind>,
    context: RequestContext,
) -> Result<StatusCode, ConsoleError> {
    workspace.require(Action::Read)?;
    let user = person(&workspace)?;
    let deletes = if workspace.role.may(Action::Administer) {
        Deletes::Shared
    } else {
        Deletes::Own
    };
    let mut tx = state.store.tenant(workspace.id).await?;
    let name = call_views::delete(&mut tx, id, user, deletes).await?;
    let name = name.ok_or_else(|| ConsoleError::not_found("this view"))?;
    let detail = json!({ "name": name });
    let event = workspace.event("call_view.deleted", "call_view", id, detail);
    audit::record(&mut tx, &event, &context.origin(), state.now()).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A view that may be saved.
struct WantedView {
    name: String,
    filter: BTreeMap<String, String>,
    value: Value,
    is_shared: bool,
}

impl WantedView {
    fn read(workspace: &Workspace, body: NewCallViewBody) -> Result<Self, ConsoleError> {
        workspace.require(Action::Read)?;
        if body.is_shared {
            workspace.require(Action::EditRegistry)?;
        }
        let invalid = |field: &'static str, text: &'static str| {
            Err(ConsoleError::invalid("view_invalid", text).field(field))
        };
        let name = body.name.trim().to_owned();
        if name.is_empty() || name.chars().count() > 100 {
            return invalid("name", "Enter 1 to 100 characters.");
        }
        let is_filter = |(name, value): (&String, &String)| {
            FILTERS.contains(&name.as_str()) && (1..=LONGEST).contains(&value.chars().count())
        };
        if !body.filter.iter().all(is_filter) || body.filter.values().any(|one| one.contains('\0'))
        {
            return invalid("filter", "The page of calls has no such filter.");
        }
        Ok(Self {
            name,
            value: json!(body.filter),
            filter: body.filter,
            is_shared: body.is_shared,
        })
    }

    fn row(&self, user: UserId) -> NewCallView<'_> {
        NewCallView {
            user,
            name: &self.name,
            filter: &self.value,
            is_shared: self.is_shared,
        }
    }

    fn detail(&self) -> Value {
        json!({ "name": self.name, "shared": self.is_shared })
    }

    fn view(self, id: CallViewId) -> CallView {
        CallView {
            id,
            name: self.name,
            filter: self.filter,
            is_shared: self.is_shared,
            is_own: true,
        }
    }
}

fn name_taken(error: StorageError) -> ConsoleError {
    if error.is_conflict_on("call_views_name") {
        return ConsoleError::conflict("name_taken", "You have a view of this name already.")
            .field("name");
    }
    error.into()
}
