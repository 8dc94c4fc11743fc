//! The valid token of the management API that a request presented (API-2).

use std::{ops::Deref, sync::Arc};

use portolan_model::{api_scope::ApiScope, audit::Actor, id::UserId};
use portolan_storage::{
    accounts::access_tokens::{Holder, OpenedToken},
    platform::audit::OriginToken,
};

/// The token of a request, as an extension of it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PresentedToken(Arc<OpenedToken>);

impl PresentedToken {
    /// Wraps a token that was looked up.
    pub fn new(token: OpenedToken) -> Self {
        Self(Arc::new(token))
    }

    /// Returns true if the token permits this.
    pub fn has(&self, wanted: ApiScope) -> bool {
        self.scopes.iter().any(|scope| scope.includes(wanted))
    }

    /// The person of a personal token.
    pub fn user(&self) -> Option<UserId> {
        match self.holder {
            Holder::Person(user, _) => Some(user),
            Holder::Workspace(..) => None,
        }
    }

    /// The actor of audit entries: the person, or the token of a workspace.
    pub fn actor(&self) -> Actor {
        self.user().map_or(Actor::Token(self.id), Actor::User)
    }

    /// The token as audit entries name it.
    pub fn origin(&self) -> OriginToken {
        OriginToken {
            id: self.id,
            name: self.name.clone(),
        }
    }
}

impl Deref for PresentedToken {
    type Target = OpenedToken;
    fn deref(&self) -> &OpenedToken {
        &self.0
    }
}
