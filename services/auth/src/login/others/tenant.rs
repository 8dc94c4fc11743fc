//! The provider of a tenant (F7): found by its id, with its secret opened; and what it says, which is believed inside that tenant only.

use axum::response::{AppendHeaders, IntoResponse, Response};
use http::{StatusCode, header};
use portolan_connections::{SealError, open_provider_secret};
use portolan_keys::Secret;
use portolan_model::{
    audit::{Actor, Event, Outcome},
    email::EmailAddress,
    id::{IdentityProviderId, TenantId, UserId},
};
use portolan_storage::{
    Reason, StorageError, SystemTx, audit, identities, members, single_sign_on as stored,
    tenant_domains, users,
};
use serde_json::json;

use super::{
    openid::OpenId,
    providers::{LoginProvider, Proved, ProviderClient, ProviderKind},
    settle::{Arrived, FEDERATED},
};
use crate::{
    login::continuation::path_after,
    pages::{self, PageError},
    session::{self, BrowserSession},
    state::AuthState,
};

/// The provider of this name: one of the platform, or one of a tenant that works.
pub(super) async fn find(
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

/// A row as a provider.
pub(crate) fn provider(
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

/// Whether a tenant speaks for an address: its domain is proved.
pub(super) async fn speaks_for(
    tx: &mut SystemTx,
    tenant: TenantId,
    address: &EmailAddress,
) -> Result<bool, StorageError> {
    match address.normalised().rsplit_once('@') {
        Some((_, domain)) => tenant_domains::is_proved(tx, tenant, domain).await,
        None => Ok(false),
    }
}

impl Arrived<'_> {
    /// Signs in to the tenant and to nothing else. Somebody new becomes a member if the tenant has proved the domain of their address;
    /// whoever has an account signs in to that first (case 107).
    pub(super) async fn sign_in_to(
        self,
        tenant: TenantId,
        before: Option<BrowserSession>,
        proved: Proved,
    ) -> Result<Response, PageError> {
        let now = self.state.now();
        let mut tx = self.state.store.system(Reason::SignIn).await?;
        let holder = identities::holder(&mut tx, &self.identity(&proved)).await?;
        let user = match (holder, &proved.email) {
            (Some(holder), _) => {
                let is_member = members::role_of(&mut tx, tenant, holder.user)
                    .await?
                    .is_some();
                if !holder.is_active || !is_member {
                    drop(tx);
                    return self.no_member();
                }
                identities::used(&mut tx, holder.link, &proved.label, now).await?;
                holder.user
            }
            (None, Some(address))
                if speaks_for(&mut tx, tenant, address).await?
                    && !users::is_address_verified(&mut tx, address.normalised()).await? =>
            {
                // Not counted among sign-ups of the address: a company comes from one, all on one morning.
                match self.join(&mut tx, tenant, &proved, address).await {
                    Ok(user) => user,
                    Err(error)
                        if error.is_conflict_on("user_emails_verified")
                            || error.is_conflict_on("identity_links_key") =>
                    {
                        drop(tx);
                        return self.offer(proved, "/login/connect").await;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            (None, _) => {
                drop(tx);
                return self.offer(proved, "/login/connect").await;
            }
        };
        self.enter_only(tx, tenant, user, before).await
    }

    /// A new account, and a member.
    async fn join(
        &self,
        tx: &mut SystemTx,
        tenant: TenantId,
        proved: &Proved,
        address: &EmailAddress,
    ) -> Result<UserId, StorageError> {
        let user = self.create(tx, proved, address).await?;
        join(self.state, self.visitor, tx, tenant, user).await?;
        Ok(user)
    }

    /// A session for this tenant; one that the person has of their own goes on, and knows of the proof.
    async fn enter_only(
        self,
        mut tx: SystemTx,
        tenant: TenantId,
        user: UserId,
        before: Option<BrowserSession>,
    ) -> Result<Response, PageError> {
        let now = self.state.now();
        let provider: IdentityProviderId = self
            .provider
            .slug
            .parse()
            .map_err(|_| PageError::Internal("provider of a tenant"))?;
        let path = path_after(self.state, user, &self.target).await?;
        let own = before.filter(|session| session.user == user && session.only_tenant.is_none());
        if let Some(session) = own {
            stored::step(&mut tx, session.id, tenant, provider, now).await?;
            tx.commit().await?;
            return Ok((self.browser, pages::see_other(&path)?).into_response());
        }
        let (id, cookie) = session::start(
            &mut tx,
            self.state,
            self.headers,
            self.visitor,
            user,
            &[FEDERATED],
        )
        .await?;
        stored::confine(&mut tx, id, tenant).await?;
        stored::step(&mut tx, id, tenant, provider, now).await?;
        tx.commit().await?;
        let cookies = AppendHeaders([(header::SET_COOKIE, cookie)]);
        Ok((self.browser, cookies, pages::see_other(&path)?).into_response())
    }

    fn no_member(self) -> Result<Response, PageError> {
        let text = "You are no member of this workspace any more. Ask one of its admins for an invitation.";
        self.says(StatusCode::FORBIDDEN, "Not signed in", text)
    }
}

/// Makes a person a member, on the word of the tenant's provider. False if they were one before and are no more.
pub(super) async fn join(
    state: &AuthState,
    visitor: &crate::visitor::Visitor,
    tx: &mut SystemTx,
    tenant: TenantId,
    user: UserId,
) -> Result<bool, StorageError> {
    let now = state.now();
    if !stored::join(tx, tenant, user, now).await? {
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
    audit::record(tx, &event, &visitor.origin(), now).await?;
    Ok(true)
}
