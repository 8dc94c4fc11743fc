//! Inviting people to a workspace (AUTH-M5, AUTH-M9).

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_keys::{SecretToken, TokenForm};
use portolan_model::{
    email::EmailAddress,
    id::{InvitationId, InvitationKind, TenantId},
    member::{Action, Role},
};
use portolan_site::{
    console_error::ConsoleError,
    mail::{self, texts::Stronger},
    request_context::RequestContext,
    state::AuthState,
    target::ConsolePage,
    throttle::AccountKey,
};
use portolan_storage::{
    Reason, SystemTx,
    accounts::{
        invitations::{self, NewInvitation},
        members,
    },
    platform::audit,
};
use serde::{Deserialize, Serialize};
use time::{Duration, OffsetDateTime};
use utoipa::ToSchema;

use crate::{
    input::{JsonBody, PathId},
    listing::Listing,
    members::{may_govern, tell_owners},
    workspace::Workspace,
    workspaces::RoleName,
};

/// Most invitations of a workspace in a day.
const MOST_A_DAY: i64 = 100;

/// A pending invitation.
#[derive(Debug, Serialize, ToSchema)]
pub struct Invitation {
    #[schema(value_type = String)]
    id: InvitationId,
    /// The invited address.
    email: String,
    /// The role after acceptance.
    #[schema(value_type = RoleName)]
    role: Role,
    /// The person who invited.
    invited_by: String,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    /// Time when it expires.
    #[serde(with = "time::serde::rfc3339")]
    expires_at: OffsetDateTime,
}

impl From<invitations::Invitation> for Invitation {
    fn from(invitation: invitations::Invitation) -> Self {
        Self {
            id: invitation.id,
            email: invitation.address,
            role: invitation.role,
            invited_by: invitation.inviter_name,
            created_at: invitation.created_at,
            expires_at: invitation.expires_at,
        }
    }
}

/// The pending invitations. For admins and owners.
#[utoipa::path(get, path = "/workspaces/{ws}/invitations", tag = "workspaces", params(("ws" = String, Path, description = "Slug")),
    responses((status = 200, description = "The invitations, newest first.", body = Listing<Invitation>)))]
pub(crate) async fn list_invitations(
    State(state): State<AuthState>,
    workspace: Workspace,
) -> Result<Json<Listing<Invitation>>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let items = invitations::list(&mut tx, workspace.id, state.now()).await?;
    Ok(Json(Listing::whole(
        items.into_iter().map(Invitation::from).collect(),
    )))
}

/// A new invitation.
#[derive(Debug, Deserialize, ToSchema)]
pub struct NewInvitationBody {
    /// Address.
    email: String,
    /// Role, no stronger than that of the inviter.
    #[schema(value_type = RoleName)]
    role: Role,
}

/// An invitation that was just sent.
#[derive(Debug, Serialize, ToSchema)]
pub struct SentInvitation {
    #[serde(flatten)]
    invitation: Invitation,
    /// True if it replaces a pending one for the same address. The link in the older message does
    /// not work any more.
    sent_again: bool,
}

/// Invites a person by mail. It requires a recent sign-in for every role, because each role can see
/// the workspace. A newer invitation replaces the older one to the same address. The response does
/// not reveal whether the address has an account. Owners get a message about invitations of admins
/// and owners.
#[utoipa::path(post, path = "/workspaces/{ws}/invitations", tag = "workspaces", params(("ws" = String, Path, description = "Slug")),
    request_body = NewInvitationBody, responses((status = 201, description = "On its way.", body = SentInvitation)))]
pub(crate) async fn invite(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    JsonBody(new): JsonBody<NewInvitationBody>,
) -> Result<(StatusCode, Json<SentInvitation>), ConsoleError> {
    workspace.require(Action::Administer)?;
    may_govern(&workspace, new.role)?;
    let address = address(&new.email)?;
    let now = state.now();
    workspace.require_recent(now, ConsolePage::Members)?;
    let session = workspace.caller.browser()?;
    let account = AccountKey::new(&state.keys, address.normalised());
    if state.throttle.mail(&account, now).await.is_err() {
        return Err(ConsoleError::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too_many_mails",
            "Enough mail went to this address for now. Try again in an hour.",
        )
        .field("email"));
    }
    let mut tx = state.store.system(Reason::Workspaces).await?;
    may_be_invited(&mut tx, workspace.id, &address, now).await?;
    let token = SecretToken::generate(TokenForm::Link)?;
    let id = InvitationId::generate();
    let invitation = NewInvitation {
        id,
        tenant: workspace.id,
        address: &address,
        role: new.role,
        digest: &token.digest(),
        inviter: session.user,
    };
    let sent_again = invitations::open(&mut tx, &invitation, now).await?;
    let link = state
        .site
        .url(&format!("/invitations?token={}", token.expose()));
    let letter = mail::texts::invitation(&workspace.name, &session.display_name, new.role, &link);
    let mail = mail::queue(&mut tx, address.as_typed(), &letter, now).await?;
    let notices = if new.role.may(Action::Administer) {
        let whom = address.as_typed();
        tell_owners(
            &state,
            &mut tx,
            &workspace,
            Stronger::Invited,
            whom,
            new.role,
        )
        .await?
    } else {
        Vec::new()
    };
    let detail = serde_json::json!({ "role": new.role });
    let event = workspace.event("invitation.sent", "invitation", id, detail);
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    state.mailer.deliver(&mail);
    for notice in &notices {
        state.mailer.deliver(notice);
    }
    let invitation = Invitation {
        id,
        email: address.as_typed().to_owned(),
        role: new.role,
        invited_by: session.display_name.clone(),
        created_at: now,
        expires_at: now + invitations::LIFE,
    };
    let sent = SentInvitation {
        invitation,
        sent_again,
    };
    Ok((StatusCode::CREATED, Json(sent)))
}

/// Reads the address of an invitation.
fn address(text: &str) -> Result<EmailAddress, ConsoleError> {
    EmailAddress::parse(text).map_err(|_| {
        ConsoleError::invalid(
            "email_invalid",
            "Enter an e-mail address such as name@example.com.",
        )
        .field("email")
    })
}

/// Refuses an invitation of a member, and one more than a workspace may send in a day.
async fn may_be_invited(
    tx: &mut SystemTx,
    tenant: TenantId,
    address: &EmailAddress,
    now: OffsetDateTime,
) -> Result<(), ConsoleError> {
    if members::is_member(tx, tenant, address.normalised()).await? {
        return Err(ConsoleError::conflict(
            "already_member",
            "This person is a member of the workspace already.",
        )
        .field("email"));
    }
    if invitations::count_since(tx, tenant, now - Duration::DAY).await? >= MOST_A_DAY {
        return Err(ConsoleError::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too_many_invitations",
            format!("A workspace can send {MOST_A_DAY} invitations a day."),
        ));
    }
    Ok(())
}

/// Withdraws an invitation.
#[utoipa::path(delete, path = "/workspaces/{ws}/invitations/{id}", tag = "workspaces",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Invitation")),
    responses((status = 204, description = "Taken back.")))]
pub(crate) async fn revoke_invitation(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<InvitationKind>,
    context: RequestContext,
) -> Result<StatusCode, ConsoleError> {
    workspace.require(Action::Administer)?;
    let now = state.now();
    let mut tx = state.store.system(Reason::Workspaces).await?;
    invitations::revoke(&mut tx, workspace.id, id, now)
        .await?
        .ok_or_else(|| ConsoleError::not_found("this invitation"))?;
    let event = workspace.event(
        "invitation.revoked",
        "invitation",
        id,
        serde_json::json!({}),
    );
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}
