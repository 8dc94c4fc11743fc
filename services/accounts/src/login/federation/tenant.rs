//! The provider of a tenant (AUTH-F7): found by its id, with its secret opened. Its claims are
//! trusted inside that tenant only.

use axum::response::{AppendHeaders, IntoResponse, Response};
use http::{StatusCode, header};
use portolan_connections::{SealError, open_provider_secret};
use portolan_keys::Secret;
use portolan_model::{
    Timestamp,
    audit::{Actor, Event, Outcome},
    email::EmailAddress,
    id::{IdentityProviderId, TenantId, UserId},
};
use portolan_site::{
    identity_providers::{LoginProvider, Proved, ProviderClient, ProviderKind, openid::OpenId},
    pages::{self, fault::PageError},
    request_context::RequestContext,
    session::{self, BrowserSession},
    state::AuthState,
};
use portolan_storage::{
    Reason, StorageError, SystemTx,
    accounts::{
        browser_sessions, identities, identity_offers::Offer, login_attempts::LoginPurpose,
        members, single_sign_on as stored, tenant_domains, users,
    },
    platform::audit,
};
use serde_json::json;

use crate::login::{
    continuation::path_after,
    federation::account_resolution::{Arrived, FEDERATED},
};

/// The provider with this name: one of the platform, or one of an active tenant.
pub(crate) async fn find(
    state: &AuthState,
    slug: &str,
) -> Result<Option<LoginProvider>, PageError> {
    if let Some(provider) = state.config.sign_in_with.find(slug) {
        return Ok(Some(provider.clone()));
    }
    let Ok(id) = slug.parse::<IdentityProviderId>() else {
        return Ok(None);
    };
    let mut tx = state.store.system(Reason::SignIn).await?;
    let Some(tenant) = stored::tenant_of(&mut tx, id).await? else {
        return Ok(None);
    };
    drop(tx);
    let mut tx = state.store.tenant(tenant).await?;
    let Some(row) = stored::of(&mut tx).await?.filter(|row| row.id == id) else {
        return Ok(None);
    };
    provider(state, tenant, &row)
        .map(Some)
        .map_err(|_| PageError::Internal("secret of a provider"))
}

/// Makes a provider from its row.
pub fn provider(
    state: &AuthState,
    tenant: TenantId,
    row: &stored::Provider,
) -> Result<LoginProvider, SealError> {
    let secret = match &row.secret {
        None => None,
        Some((sealed, key)) => Some(Secret::new(open_provider_secret(
            &state.keys,
            tenant,
            key,
            (row.id, row.version),
            sealed,
            state.now(),
        )?)),
    };
    Ok(LoginProvider {
        slug: row.id.to_string(),
        name: row.name.clone(),
        tenant: Some(tenant),
        kind: ProviderKind::OpenId(OpenId::new(row.issuer.clone())),
        client: ProviderClient {
            id: row.client_id.clone(),
            secret,
        },
    })
}

/// Returns true if the tenant has proved the address's domain.
pub(crate) async fn speaks_for(
    tx: &mut SystemTx,
    tenant: TenantId,
    address: &EmailAddress,
) -> Result<bool, StorageError> {
    match address.normalised().rsplit_once('@') {
        Some((_, domain)) => tenant_domains::is_proved(tx, tenant, domain).await,
        None => Ok(false),
    }
}

/// The address with which a new person becomes a member at once. The tenant has proved its domain,
/// the provider does not deny it, and no account has it.
async fn joining<'a>(
    tx: &mut SystemTx,
    tenant: TenantId,
    proved: &'a Proved,
) -> Result<Option<&'a EmailAddress>, StorageError> {
    let Some(address) = &proved.email else {
        return Ok(None);
    };
    let may_join = proved.email_verified != Some(false)
        && speaks_for(tx, tenant, address).await?
        && !users::is_address_verified(tx, address.normalised()).await?;
    Ok(may_join.then_some(address))
}

impl Arrived<'_> {
    /// Signs in to the tenant and to nothing else. A new person becomes a member if the tenant has
    /// proved the domain of their address. A person with an account signs in to that first
    /// (CASE-107). A confirmation must come from the same person.
    pub(crate) async fn sign_in_to(
        self,
        tenant: TenantId,
        before: Option<BrowserSession>,
        purpose: LoginPurpose,
        proved: Proved,
    ) -> Result<Response, PageError> {
        let now = self.state.now();
        let since = proved.since(now);
        let mut tx = self.state.store.system(Reason::SignIn).await?;
        let mut holder = identities::holder(&mut tx, &self.identity(&proved)).await?;
        if holder.is_none() && purpose == LoginPurpose::Confirm {
            return self.another();
        }
        let mut newcomer = None;
        let joining = match &holder {
            Some(_) => None,
            None => joining(&mut tx, tenant, &proved).await?,
        };
        if holder.is_none() && joining.is_none() {
            // The account with the address may be theirs by now: created a moment ago in another
            // window.
            holder = identities::holder(&mut tx, &self.identity(&proved)).await?;
        }
        if let Some(address) = joining {
            // Not counted as sign-ups of the IP address: all members of a company may come from one
            // address on one morning.
            self.state.throttle.join(tenant, now).await?;
            match self.newcomer_of(&mut tx, tenant, &proved, address).await {
                Ok(Some(user)) => newcomer = Some(user),
                // The provider or the tenant was just removed.
                Ok(None) => return self.no_member(),
                Err(error)
                    if error.is_conflict_on("user_emails_verified")
                        || error.is_conflict_on("identity_links_key") =>
                {
                    // Another request was faster: the same person's in another window, or that of
                    // the address's present owner.
                    drop(tx);
                    tx = self.state.store.system(Reason::SignIn).await?;
                    holder = identities::holder(&mut tx, &self.identity(&proved)).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        let is_other = |user: UserId| before.as_ref().is_none_or(|session| session.user != user);
        let user = match (newcomer, holder) {
            (Some(newcomer), _) => newcomer,
            (None, Some(holder)) => {
                let role = members::role_of(&mut tx, tenant, holder.user).await?;
                let is_wrong = purpose == LoginPurpose::Confirm && is_other(holder.user);
                if !holder.is_active || role.is_none() || is_wrong {
                    self.note(
                        &mut tx,
                        Some(holder.user),
                        "session.refused",
                        Outcome::Refused,
                    )
                    .await?;
                    tx.commit().await?;
                    return if is_wrong {
                        self.another()
                    } else {
                        self.no_member()
                    };
                }
                identities::used(&mut tx, holder.link, &proved.label, now).await?;
                holder.user
            }
            (None, None) => {
                drop(tx);
                return self.offer(proved, "/login/connect").await;
            }
        };
        self.enter_only(tx, tenant, user, before, since).await
    }

    /// Creates an account and its membership.
    async fn newcomer_of(
        &self,
        tx: &mut SystemTx,
        tenant: TenantId,
        proved: &Proved,
        address: &EmailAddress,
    ) -> Result<Option<UserId>, StorageError> {
        let Ok(provider) = self.provider.slug.parse() else {
            return Ok(None);
        };
        let user = self.create(tx, proved, address).await?;
        let joined = join(self.state, self.context, tx, (tenant, provider), user).await?;
        Ok(joined.then_some(user))
    }

    /// Starts a session for this tenant. An ordinary session of the person continues, and records
    /// the proof.
    async fn enter_only(
        self,
        mut tx: SystemTx,
        tenant: TenantId,
        user: UserId,
        before: Option<BrowserSession>,
        since: Option<Timestamp>,
    ) -> Result<Response, PageError> {
        let now = self.state.now();
        let provider: IdentityProviderId = self
            .provider
            .slug
            .parse()
            .map_err(|_| PageError::Internal("provider of a tenant"))?;
        let own = before.filter(|session| session.user == user && session.only_tenant.is_none());
        let cookie = if let Some(session) = own {
            stored::step(&mut tx, session.id, tenant, provider, now).await?;
            self.note(&mut tx, Some(user), "session.step", Outcome::Ok)
                .await?;
            None
        } else {
            let (id, cookie) = session::start(
                &mut tx,
                self.state,
                self.headers,
                self.context,
                user,
                &[FEDERATED],
            )
            .await?;
            stored::confine(&mut tx, id, tenant).await?;
            stored::step(&mut tx, id, tenant, provider, now).await?;
            if let Some(since) = since {
                browser_sessions::proved_at(&mut tx, id, since).await?;
            }
            Some(cookie)
        };
        tx.commit().await?;
        // Computed last, because it reads the person's workspaces as they are now.
        let path = path_after(self.state, user, &self.target).await?;
        let cookies = AppendHeaders(cookie.map(|cookie| (header::SET_COOKIE, cookie)));
        Ok((self.browser, cookies, pages::see_other(&path)?).into_response())
    }

    fn no_member(self) -> Result<Response, PageError> {
        let text = "You are no longer a member of this workspace. Ask one of its admins for an invitation.";
        self.says(StatusCode::FORBIDDEN, "Not signed in", text)
    }

    fn another(self) -> Result<Response, PageError> {
        let text = "You signed in there as another person than here. To use that account, sign out here first.";
        self.says(StatusCode::FORBIDDEN, "Not confirmed", text)
    }
}

/// Returns true if the session's person is a member of the tenant whose provider made this offer,
/// or becomes one. To become one, the tenant must have proved the domain, and the address must be
/// the person's here too. The session then records the proof.
pub(crate) async fn admit(
    state: &AuthState,
    context: &RequestContext,
    tx: &mut SystemTx,
    offer: &Offer,
    session: &BrowserSession,
) -> Result<bool, StorageError> {
    let (Some(tenant), Ok(provider)) = (offer.tenant, offer.provider.parse()) else {
        return Ok(false);
    };
    if members::role_of(tx, tenant, session.user).await?.is_none() {
        let address = offer
            .email
            .as_deref()
            .and_then(|email| EmailAddress::parse(email).ok());
        let Some(address) = address else {
            return Ok(false);
        };
        // A person cannot become a member with another person's address.
        let joined = users::has_address(tx, session.user, address.normalised()).await?
            && speaks_for(tx, tenant, &address).await?
            && join(state, context, tx, (tenant, provider), session.user).await?;
        if !joined {
            return Ok(false);
        }
    }
    stored::step(tx, session.id, tenant, provider, state.now()).await?;
    Ok(true)
}

/// Makes a person a member, because the tenant's provider vouches for them. Returns false for a
/// removed member, or if the provider no longer exists.
async fn join(
    state: &AuthState,
    context: &RequestContext,
    tx: &mut SystemTx,
    (tenant, provider): (TenantId, IdentityProviderId),
    user: UserId,
) -> Result<bool, StorageError> {
    let now = state.now();
    if !stored::join(tx, tenant, provider, user, now).await? {
        return Ok(false);
    }
    let event = Event {
        tenant: Some(tenant),
        actor: Actor::User(user),
        action: "member.joined_by_sso",
        target_kind: "user",
        target_id: user.to_string(),
        outcome: Outcome::Ok,
        detail: json!({}),
    };
    audit::record(tx, &event, &context.origin(), now).await?;
    Ok(true)
}
