//! A plan with the parts of its requests that are the same in every call.

use http::{HeaderName, HeaderValue, Method};

use crate::plan::{Location, RequestPlan};

/// A plan, ready to build requests. Made once, when the tool is compiled.
#[derive(Debug, Clone)]
pub struct PreparedPlan {
    plan: RequestPlan,
    /// `None`: it is not valid.
    pub(crate) method: Option<Method>,
    /// Value of the `Accept` header.
    pub(crate) accept: HeaderValue,
    /// A name for each parameter; `None` for those that are no headers, or have no valid name.
    pub(crate) header_names: Vec<Option<HeaderName>>,
}

impl PreparedPlan {
    /// Prepares a plan. A part that is not valid fails the calls that need it.
    pub fn new(plan: RequestPlan) -> Self {
        let accept = plan
            .accept
            .as_deref()
            .and_then(|types| HeaderValue::try_from(types).ok())
            .unwrap_or_else(|| HeaderValue::from_static("application/json, */*;q=0.5"));
        let header_names = plan
            .parameters
            .iter()
            .map(|parameter| {
                if parameter.location != Location::Header {
                    return None;
                }
                HeaderName::try_from(parameter.name.as_str()).ok()
            })
            .collect();
        Self {
            method: Method::from_bytes(plan.method.as_bytes()).ok(),
            accept,
            header_names,
            plan,
        }
    }

    /// How arguments become a request.
    pub const fn plan(&self) -> &RequestPlan {
        &self.plan
    }
}
