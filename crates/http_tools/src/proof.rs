//! The state of a credential as an answer of the API shows it.

use http::StatusCode;

/// Evidence of an answer about the credential that its request carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// The API accepted the request.
    Works,
    /// The API, or the token endpoint of the credential, refused it with this HTTP status.
    Refused(u16),
}

impl Proof {
    /// From the status of the API. Most statuses show nothing: an API may look at the arguments
    /// before it looks at the credential.
    pub fn of_status(status: StatusCode) -> Option<Self> {
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Some(Self::Refused(status.as_u16()))
            }
            status if status.is_success() => Some(Self::Works),
            _ => None,
        }
    }
}
