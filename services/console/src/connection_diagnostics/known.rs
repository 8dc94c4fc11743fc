//! Known faults of clients, with the numbers of the list in the design: how an attempt with the
//! fault looks, and the remedy.

use portolan_storage::platform::connect_events::{Step, StepOutcome};

use crate::connection_diagnostics::attempts::{AttemptState, ClientAttempt};

/// A known fault.
#[derive(Debug, Clone, Copy)]
pub struct KnownFault {
    /// Number in the list.
    pub number: u16,
    /// The client with the fault.
    pub client: &'static str,
    /// The effect, and the remedy.
    pub text: &'static str,
    /// Address of a description.
    pub source: &'static str,
    fits: fn(&ClientAttempt) -> bool,
}

/// Returns true if the client's name, id or user agent contains one of these words. The words are
/// in lower case.
fn calls_itself(attempt: &ClientAttempt, words: &[&str]) -> bool {
    attempt.steps.iter().any(|event| {
        [&event.client_name, &event.client_id, &event.agent]
            .into_iter()
            .flatten()
            .any(|text| {
                let text = text.to_lowercase();
                words.iter().any(|word| text.contains(word))
            })
    })
}

fn count(attempt: &ClientAttempt, step: Step) -> usize {
    attempt
        .steps
        .iter()
        .filter(|event| event.step == step)
        .count()
}

fn told(attempt: &ClientAttempt, words: &str) -> bool {
    attempt.steps.iter().any(|event| {
        event
            .fault
            .as_deref()
            .is_some_and(|fault| fault.contains(words))
    })
}

fn is_over(attempt: &ClientAttempt) -> bool {
    attempt.state == AttemptState::Stopped
}

/// The table.
pub const KNOWN: &[KnownFault] = &[
    KnownFault {
        number: 11,
        client: "Claude",
        text: "Tokens were issued, and the client has not made a request with them. Existing chats of claude.ai are known not to go on: open a new conversation and reconnect there.",
        source: "anthropics/claude-ai-mcp#836",
        fits: |attempt| {
            is_over(attempt)
                && attempt.has(Step::Token, StepOutcome::Ok)
                && calls_itself(attempt, &["claude"])
        },
    },
    KnownFault {
        number: 17,
        client: "clients behind some proxies",
        text: "The client did not say for which server it asks (resource is missing). The person picks the workspace, and the token is good there only.",
        source: "obot-platform/obot#6983, anthropics/claude-ai-mcp#478",
        fits: |attempt| {
            attempt.steps.iter().any(|event| {
                event.step == Step::Authorize
                    && event.outcome != StepOutcome::Refused
                    && event.detail.get("resource").is_none()
            })
        },
    },
    KnownFault {
        number: 19,
        client: "Claude",
        text: "The client registered twice within seconds and uses one of the two. That is known and harmless: both registrations are the same one here.",
        source: "anthropics/claude-ai-mcp#966",
        fits: |attempt| count(attempt, Step::Register) > 1 && calls_itself(attempt, &["claude"]),
    },
    KnownFault {
        number: 21,
        client: "ChatGPT and others",
        text: "The client is public and sent a secret all the same. Remove the client secret from the app's settings, or register the app here as a confidential client.",
        source: "BasedHardware/omi#8824",
        fits: |attempt| told(attempt, "must not send a secret"),
    },
    KnownFault {
        number: 27,
        client: "Codex before 0.144.1",
        text: "Access was allowed, and the code was never exchanged. Some builds of Codex refuse the answer for its issuer: update Codex.",
        source: "openai/codex#41836",
        fits: |attempt| never_exchanged(attempt) && calls_itself(attempt, &["codex"]),
    },
    KnownFault {
        number: 29,
        client: "Claude",
        text: "The registration succeeded here, and the client did not go on. claude.ai is known to say \"couldn't register\" all the same: remove the connector there and add it again.",
        source: "anthropics/claude-ai-mcp#546",
        fits: |attempt| {
            is_over(attempt)
                && attempt.reached == Step::Register
                && calls_itself(attempt, &["claude"])
        },
    },
    KnownFault {
        number: 30,
        client: "Gemini CLI",
        text: "The client goes on looking for OpenID documents, which there are none of here, after it found the OAuth document. Update Gemini CLI.",
        source: "google-gemini/gemini-cli#12628",
        fits: |attempt| {
            is_over(attempt)
                && attempt.reached == Step::ServerMetadata
                && calls_itself(attempt, &["gemini"])
        },
    },
    KnownFault {
        number: 34,
        client: "clients in the system browser",
        text: "Access was allowed, and the browser did not hand the answer to the app. Start the app, click the link on the last page again, or allow the browser to open the app.",
        source: "sprawz/gtm-mcp-server#38",
        fits: |attempt| {
            never_exchanged(attempt)
                && attempt.steps.iter().any(|event| {
                    event
                        .detail
                        .get("redirect_uri")
                        .and_then(|uri| uri.as_str())
                        .is_some_and(|uri| !uri.starts_with("http"))
                })
        },
    },
    KnownFault {
        number: 35,
        client: "Claude Code, Copilot",
        text: "The client registered and never asked for access. Sessions that these clients start in the background are known to stop there: connect the server once by hand.",
        source: "anthropics/claude-code#76453, github/copilot-cli#4084",
        fits: |attempt| {
            is_over(attempt)
                && attempt.reached == Step::Register
                && calls_itself(
                    attempt,
                    &["claude code", "claude-code", "copilot", "vscode"],
                )
        },
    },
];

fn never_exchanged(attempt: &ClientAttempt) -> bool {
    is_over(attempt)
        && attempt.reached == Step::Consent
        && attempt.has(Step::Consent, StepOutcome::Ok)
        && count(attempt, Step::Token) == 0
}

/// The known faults that match.
pub(crate) fn fitting(attempt: &ClientAttempt) -> Vec<&'static KnownFault> {
    KNOWN.iter().filter(|fault| (fault.fits)(attempt)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::connection_diagnostics::attempts::{
        assemble,
        tests::{at, event},
    };

    fn numbers(events: Vec<portolan_storage::platform::connect_events::RecordedStep>) -> Vec<u16> {
        let attempts = assemble(events, at(10_000));
        assert_eq!(attempts.len(), 1);
        attempts[0].known.iter().map(|fault| fault.number).collect()
    }

    #[test]
    fn x2_known_faults_are_told_where_they_fit() {
        let register = |seconds| event(seconds, Step::Register, "Claude-User");
        assert_eq!(numbers(vec![register(0)]), [29]);
        assert_eq!(numbers(vec![register(0), register(2)]), [19, 29]);
        assert_eq!(
            numbers(vec![event(0, Step::Register, "claude-code/2.1")]),
            [29, 35]
        );
        assert_eq!(
            numbers(vec![event(0, Step::Register, "other/1")]),
            [0_u16; 0]
        );

        let mut secret = event(0, Step::Token, "openai-mcp/1.0.0");
        secret.outcome = StepOutcome::Refused;
        secret.fault =
            Some("this client is public and must not send a secret or an assertion".to_owned());
        assert_eq!(numbers(vec![secret]), [21]);

        let mut authorize = event(0, Step::Authorize, "browser");
        authorize.detail = json!({"redirect_uri": "cursor://anysphere.cursor-mcp/oauth/callback"});
        let request = Some(portolan_model::id::RequestId::generate());
        authorize.authorization = request;
        let mut consent = event(5, Step::Consent, "browser");
        consent.authorization = request;
        assert_eq!(numbers(vec![authorize, consent]), [17, 34]);
    }
}
