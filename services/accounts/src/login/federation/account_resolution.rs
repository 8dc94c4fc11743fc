//! Results of a proved identity: a session, the offer to connect, or a new account (AUTH-F4,
//! AUTH-F5).

use axum::response::{AppendHeaders, IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use portolan_model::{
    Timestamp,
    audit::{Actor, Event, Outcome},
    email::EmailAddress,
    id::{IdentityOfferId, UserId},
};
use portolan_site::{
    browser::Browser,
    identity_providers::{LoginProvider, Proved},
    mail,
    pages::{self, Message, fault::PageError},
    request_context::RequestContext,
    session::{self, BrowserSession},
    state::AuthState,
    target::Target,
    throttle::AccountKey,
};
use portolan_storage::{
    Reason, StorageError, SystemTx,
    accounts::{
        browser_sessions,
        identities::{self, Holder, Identity},
        identity_offers::{self, Offer},
        second_factors, users,
        ways_in::WayIn,
    },
    platform::{audit, mails::Mail},
};
use serde_json::json;

use crate::login::{
    code,
    continuation::{Continuation, path_after},
    federation::tenant,
};

/// The `amr` value of a session that a provider proved. RFC 8176 does not define one; this value is
/// in common use.
pub(crate) const FEDERATED: &str = "fed";

/// A browser that returned from a provider.
pub(crate) struct Arrived<'a> {
    pub(crate) state: &'a AuthState,
    pub(crate) browser: Browser,
    pub(crate) context: &'a RequestContext,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) provider: &'a LoginProvider,
    pub(crate) target: Target,
}

/// The path after a sign-in at a provider failed.
pub(crate) fn way_back(target: &Target) -> String {
    match target {
        Target::Account(page) => page.path().to_owned(),
        other => other.on("/login"),
    }
}

impl Arrived<'_> {
    pub(crate) fn identity<'p>(&'p self, proved: &'p Proved) -> Identity<'p> {
        Identity {
            tenant: self.provider.tenant,
            provider: &self.provider.slug,
            issuer: &proved.issuer,
            subject: &proved.subject,
        }
    }

    /// Signs in the account with this identity. Without one, the person is new, or has an account
    /// with another sign-in method.
    pub(crate) async fn sign_in(self, proved: Proved) -> Result<Response, PageError> {
        let mut tx = self.state.store.system(Reason::SignIn).await?;
        let Some(holder) = identities::holder(&mut tx, &self.identity(&proved)).await? else {
            drop(tx);
            return self.newcomer(proved).await;
        };
        self.returning(tx, holder, proved).await
    }

    /// Signs in a person whose identity is known.
    async fn returning(
        self,
        mut tx: SystemTx,
        holder: Holder,
        proved: Proved,
    ) -> Result<Response, PageError> {
        let now = self.state.now();
        if !holder.is_active {
            self.note(
                &mut tx,
                Some(holder.user),
                "session.refused",
                Outcome::Refused,
            )
            .await?;
            tx.commit().await?;
            return self.stopped();
        }
        identities::used(&mut tx, holder.link, &proved.label, now).await?;
        self.enter(tx, holder, proved.since(now)).await
    }

    /// Starts the session, unless the person's own second factor comes first (AUTH-L14).
    async fn enter(
        self,
        mut tx: SystemTx,
        Holder { link, user, .. }: Holder,
        since: Option<Timestamp>,
    ) -> Result<Response, PageError> {
        if second_factors::is_enrolled(&mut tx, user).await? {
            let person = users::find(&mut tx, user)
                .await?
                .ok_or(PageError::Internal("person"))?;
            tx.commit().await?;
            let address = EmailAddress::parse(&person.email)
                .map_err(|_| PageError::Internal("stored address"))?;
            let account = AccountKey::new(&self.state.keys, address.normalised());
            let word = self.target.to_string();
            let continuation = Continuation::load(self.state, &self.browser, Some(&word)).await?;
            return code::ask(
                self.state,
                self.browser,
                &continuation,
                user,
                &account,
                (&[FEDERATED], Some(link), false),
            )
            .await;
        }
        let (id, cookie) = session::start(
            &mut tx,
            self.state,
            self.headers,
            self.context,
            user,
            &[FEDERATED],
        )
        .await?;
        browser_sessions::began_by(&mut tx, id, WayIn::Identity(link)).await?;
        // A sign-in at the provider hours ago is not a proof of now (AUTH-S2).
        if let Some(since) = since {
            browser_sessions::proved_at(&mut tx, id, since).await?;
        }
        tx.commit().await?;
        let path = path_after(self.state, user, &self.target).await?;
        let cookies = AppendHeaders([(header::SET_COOKIE, cookie)]);
        Ok((self.browser, cookies, pages::see_other(&path)?).into_response())
    }

    /// Handles an identity without an account.
    async fn newcomer(self, proved: Proved) -> Result<Response, PageError> {
        let address = match &proved.email {
            Some(address) if proved.is_email_verified() => address.clone(),
            // The provider vouches for no address, so a mail has to prove one.
            _ => return self.offer(proved, "/login/address").await,
        };
        let now = self.state.now();
        let mut tx = self.state.store.system(Reason::SignIn).await?;
        if users::is_address_verified(&mut tx, address.normalised()).await? {
            return self.known_address(tx, proved).await;
        }
        self.state.throttle.sign_up(self.context.ip, now).await?;
        let user = match self.create(&mut tx, &proved, &address).await {
            Ok(user) => user,
            // A concurrent request proved the address or signed in with this identity, so the
            // account exists now.
            Err(error)
                if error.is_conflict_on("user_emails_verified")
                    || error.is_conflict_on("identity_links_key") =>
            {
                drop(tx);
                let tx = self.state.store.system(Reason::SignIn).await?;
                return self.known_address(tx, proved).await;
            }
            Err(error) => return Err(error.into()),
        };
        let holder = identities::holder(&mut tx, &self.identity(&proved)).await?;
        let holder = holder.filter(|holder| holder.user == user);
        let holder = holder.ok_or(PageError::Internal("identity of a new person"))?;
        self.enter(tx, holder, proved.since(now)).await
    }

    /// Handles an address that has an account by now: the same person's in another window, or one
    /// with another sign-in method.
    async fn known_address(self, mut tx: SystemTx, proved: Proved) -> Result<Response, PageError> {
        match identities::holder(&mut tx, &self.identity(&proved)).await? {
            Some(holder) => self.returning(tx, holder, proved).await,
            None => {
                drop(tx);
                self.offer(proved, "/login/connect").await
            }
        }
    }

    /// Creates an account with a proved address and without a password. Sign-ups that others began
    /// with the address are deleted (AUTH-F5).
    pub(crate) async fn create(
        &self,
        tx: &mut SystemTx,
        proved: &Proved,
        address: &EmailAddress,
    ) -> Result<UserId, StorageError> {
        let now = self.state.now();
        let name = display_name(proved, address);
        let user = users::create_verified(tx, &name, address, now).await?;
        users::forget_unverified(tx, address.normalised(), user).await?;
        let seen = Some(address.as_typed());
        let link =
            identities::link(tx, user, &self.identity(proved), (&proved.label, seen), now).await?;
        identities::used(tx, link, &proved.label, now).await?;
        let event = Event {
            tenant: self.provider.tenant,
            actor: Actor::User(user),
            action: "user.signed_up",
            target_kind: "user",
            target_id: user.to_string(),
            outcome: Outcome::Ok,
            detail: json!({ "provider": self.provider.slug }),
        };
        audit::record(tx, &event, &self.context.origin(), now).await?;
        Ok(user)
    }

    /// Stores the identity for this browser, and redirects to the page that offers the choices.
    pub(crate) async fn offer(self, proved: Proved, page: &str) -> Result<Response, PageError> {
        let id = IdentityOfferId::generate();
        let name = proved.name.clone();
        let offer = Offer {
            id,
            tenant: self.provider.tenant,
            provider: self.provider.slug.clone(),
            issuer: proved.issuer,
            subject: proved.subject,
            display_name: name.unwrap_or_else(|| proved.label.clone()),
            label: proved.label,
            // An address that a workspace's provider denies is not used.
            email: proved
                .email
                .filter(|_| self.provider.tenant.is_none() || proved.email_verified != Some(false))
                .map(|email| email.as_typed().to_owned()),
            target: self.target.to_string(),
        };
        let now = self.state.now();
        let mut tx = self.state.store.system(Reason::SignIn).await?;
        identity_offers::open(&mut tx, &offer, self.browser.digest(), now).await?;
        tx.commit().await?;
        let path = format!("{page}/{id}");
        Ok((self.browser, pages::see_other(&path)?).into_response())
    }

    /// Connects the identity with the signed-in account. The person had a recent sign-in when this
    /// began (AUTH-S2).
    pub(crate) async fn link(
        self,
        session: &BrowserSession,
        proved: Proved,
    ) -> Result<Response, PageError> {
        let identity = self.identity(&proved);
        let seen = proved.email.as_ref().map(EmailAddress::as_typed);
        let said = (proved.label.as_str(), seen);
        let linked = connect(
            self.state,
            self.context,
            session,
            &identity,
            (&self.provider.name, said),
            None,
        )
        .await?;
        match linked {
            Linked::Now => Ok((
                self.browser,
                pages::see_other("/account/sign-in?done=added")?,
            )
                .into_response()),
            Linked::Before => Ok((
                self.browser,
                pages::see_other("/account/sign-in?done=there")?,
            )
                .into_response()),
            Linked::Elsewhere | Linked::Gone | Linked::Stranger => {
                let name = &self.provider.name;
                let text = format!(
                    "This {name} account is connected to another Portolan account. Disconnect it there first, or use another {name} account."
                );
                self.says(StatusCode::CONFLICT, "Not connected", &text)
            }
        }
    }

    /// Starts a new session for the same person (AUTH-S3), who proved their identity again.
    pub(crate) async fn confirm(
        self,
        session: &BrowserSession,
        proved: Proved,
    ) -> Result<Response, PageError> {
        let now = self.state.now();
        let mut tx = self.state.store.system(Reason::SignIn).await?;
        let holder = identities::holder(&mut tx, &self.identity(&proved)).await?;
        match holder.filter(|holder| holder.user == session.user && holder.is_active) {
            Some(holder) => {
                identities::used(&mut tx, holder.link, &proved.label, now).await?;
                self.note(
                    &mut tx,
                    Some(session.user),
                    "session.confirmed",
                    Outcome::Ok,
                )
                .await?;
                self.enter(tx, holder, proved.since(now)).await
            }
            None => {
                self.note(
                    &mut tx,
                    Some(session.user),
                    "session.refused",
                    Outcome::Refused,
                )
                .await?;
                tx.commit().await?;
                let text = format!(
                    "This is not the {} account that is connected to your Portolan account.",
                    self.provider.name
                );
                self.says(StatusCode::FORBIDDEN, "Not confirmed", &text)
            }
        }
    }

    /// Writes an audit entry about a person who came from this provider.
    pub(crate) async fn note(
        &self,
        tx: &mut SystemTx,
        user: Option<UserId>,
        action: &'static str,
        outcome: Outcome,
    ) -> Result<(), StorageError> {
        let event = Event {
            tenant: self.provider.tenant,
            actor: user.map_or(Actor::Anonymous, Actor::User),
            action,
            target_kind: "provider",
            target_id: self.provider.slug.clone(),
            outcome,
            detail: json!({}),
        };
        audit::record(tx, &event, &self.context.origin(), self.state.now()).await
    }

    /// The page for a locked or deactivated account. The person has proved their identity, so the
    /// page says so.
    fn stopped(self) -> Result<Response, PageError> {
        let text = "This account is disabled. Contact the operator of this service.";
        self.says(StatusCode::FORBIDDEN, "Not signed in", text)
    }

    pub(crate) fn says(
        self,
        status: StatusCode,
        title: &str,
        text: &str,
    ) -> Result<Response, PageError> {
        let path = way_back(&self.target);
        let page = Message {
            status: None,
            title,
            text,
            link: Some(("Go back", &path)),
            request_id: None,
        };
        Ok((self.browser, pages::html(status, &page)?).into_response())
    }
}

fn display_name(proved: &Proved, address: &EmailAddress) -> String {
    let local = address.as_typed().split('@').next().unwrap_or_default();
    proved.name.clone().unwrap_or_else(|| local.to_owned())
}

/// The result of connecting.
pub(crate) enum Linked {
    /// The identity is connected now.
    Now,
    /// The identity was already connected with this account.
    Before,
    /// The identity is connected with another account.
    Elsewhere,
    /// The offer was used or has expired.
    Gone,
    /// The person is no member of the provider's workspace.
    Stranger,
}

/// Connects an identity with the signed-in person, and notifies them by mail (AUTH-L16).
///
/// An offer is used up. An offer of a workspace's provider requires a member, or makes the person
/// one, and the session records the proof. All of it happens in one transaction.
pub(crate) async fn connect(
    state: &AuthState,
    context: &RequestContext,
    session: &BrowserSession,
    identity: &Identity<'_>,
    (provider, said): (&str, (&str, Option<&str>)),
    offer: Option<(&Offer, &Browser)>,
) -> Result<Linked, PageError> {
    let now = state.now();
    let mut tx = state.store.system(Reason::SignIn).await?;
    if let Some((offer, browser)) = offer {
        if !identity_offers::consume(&mut tx, offer.id, browser.digest(), now).await? {
            return Ok(Linked::Gone);
        }
        if offer.tenant.is_some() && !tenant::admit(state, context, &mut tx, offer, session).await?
        {
            return Ok(Linked::Stranger);
        }
    }
    let before = identities::holder(&mut tx, identity).await?;
    match before {
        Some(holder) if holder.user != session.user => return Ok(Linked::Elsewhere),
        Some(_) => {
            tx.commit().await?;
            return Ok(Linked::Before);
        }
        None => {}
    }
    match identities::link(&mut tx, session.user, identity, said, now).await {
        Ok(_) => {}
        Err(error) if error.is_conflict_on("identity_links_key") => return Ok(Linked::Elsewhere),
        Err(error) => return Err(error.into()),
    }
    let event = Event {
        tenant: identity.tenant,
        actor: Actor::User(session.user),
        action: "identity.linked",
        target_kind: "user",
        target_id: session.user.to_string(),
        outcome: Outcome::Ok,
        detail: json!({ "provider": identity.provider }),
    };
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    let mail = notice(state, &mut tx, session, provider).await?;
    tx.commit().await?;
    state.mailer.deliver(&mail);
    Ok(Linked::Now)
}

async fn notice(
    state: &AuthState,
    tx: &mut SystemTx,
    session: &BrowserSession,
    provider: &str,
) -> Result<Mail, StorageError> {
    let letter = mail::texts::sign_in_method_added(
        &session.display_name,
        provider,
        &state.site.url("/account/sign-in"),
    );
    mail::queue(tx, &session.email, &letter, state.now()).await
}
