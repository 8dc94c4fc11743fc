//! The purposes of derived keys (AUTH-J5).

/// Each purpose has its own key, so that a value made for one never passes for another. Labels are
/// part of the key: they never change, and a retired one is not used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Credentials of a tenant's APIs, at rest.
    Credential,
    /// Private parts of signing keys, at rest.
    SigningKey,
    /// Short codes that people type (AUTH-L7).
    MailCode,
    /// Tokens in forms, against cross-site requests (AUTH-S5).
    FormToken,
    /// Pagination cursors, of MCP and of the console.
    Cursor,
    /// MCP session ids (design page, point 4).
    McpSession,
    /// The answer of a decided authorization request, kept for a second submission (AUTH-N5).
    Outcome,
    /// Names of throttle buckets made of addresses, so that the bucket does not keep the address.
    Throttle,
    /// Events, questions and answers in the store that nodes share (STREAM-3.1).
    StreamPayload,
    /// `requestState` of multi round-trip requests (MCP-MR-6, MCP-MR-7).
    RequestState,
    /// Secrets of authenticator apps, at rest (AUTH-L11).
    SecondFactor,
    /// Recovery codes (AUTH-L12).
    RecoveryCode,
    /// A sign-in between password and second factor.
    SignInStep,
    /// Answers to requests of the management API, kept for their repetition (API-13).
    IdempotentAnswer,
    /// Links to the page where a person connects an account at another service (MCP-EL-11).
    ConnectLink,
    /// Arguments and results of calls, at rest (CAPTURE-5).
    CallContent,
    /// Plans of configuration with their secrets, at rest, and comparisons of credentials (CONF-7,
    /// CONF-8).
    ConfigurationPlan,
}

impl Purpose {
    pub(crate) const ALL: [Self; 17] = [
        Self::Credential,
        Self::SigningKey,
        Self::MailCode,
        Self::FormToken,
        Self::Cursor,
        Self::McpSession,
        Self::Outcome,
        Self::Throttle,
        Self::StreamPayload,
        Self::RequestState,
        Self::SecondFactor,
        Self::RecoveryCode,
        Self::SignInStep,
        Self::IdempotentAnswer,
        Self::ConnectLink,
        Self::CallContent,
        Self::ConfigurationPlan,
    ];

    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Credential => "credential",
            Self::SigningKey => "signing-key",
            Self::MailCode => "mail-code",
            Self::FormToken => "form-token",
            Self::Cursor => "cursor",
            Self::McpSession => "mcp-session",
            Self::Outcome => "outcome",
            Self::Throttle => "throttle",
            Self::StreamPayload => "stream-payload",
            Self::RequestState => "request-state",
            Self::SecondFactor => "second-factor",
            Self::RecoveryCode => "recovery-code",
            Self::SignInStep => "sign-in-step",
            Self::IdempotentAnswer => "idempotent-answer",
            Self::ConnectLink => "connect-link",
            Self::CallContent => "call-content",
            Self::ConfigurationPlan => "configuration-plan",
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}
