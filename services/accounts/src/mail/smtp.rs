//! Sends a message to a mail server (RFC 5321), with TLS from the first byte, by STARTTLS, or, on
//! this machine only, without.

use std::time::Duration;

use lettre::{
    AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor,
    message::{
        Mailbox, MultiPart,
        header::{ContentType, Header, HeaderName, HeaderValue},
    },
    transport::smtp::{
        authentication::Credentials,
        client::{Certificate, Tls, TlsParameters},
        extension::ClientId,
    },
};
use portolan_config::ConfigError;
use portolan_storage::platform::mails::Mail;

use super::config::{Certificates, MailConfig, Security};

/// Time after which a server counts as dead.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Why a message was not sent. Texts of the server are left out, because they repeat the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The server refuses it permanently (5xx), or it cannot be written as a message.
    #[error("refused for good (code {code})")]
    Refused {
        /// The server's code; 0 if the message did not reach it.
        code: u16,
    },
    /// Temporary: no connection, a time-out, TLS, wrong credentials, or 4xx.
    #[error("not now: {what} (code {code})")]
    NotNow {
        /// The kind of failure.
        what: &'static str,
        /// The server's code, if it sent one.
        code: u16,
    },
}

/// A client of a mail server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Smtp {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    own_host: String,
}

/// The header that suppresses automatic replies (RFC 3834).
#[derive(Debug, Clone)]
struct AutoSubmitted;

impl Header for AutoSubmitted {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }
    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self)
    }
    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "auto-generated".to_owned())
    }
}

impl Smtp {
    /// Prepares the client without a connection. Each message has a connection of its own: messages
    /// are few, and a kept connection can die unnoticed. `own_host` is the host name of this
    /// service: in EHLO and in message ids.
    pub fn new(config: &MailConfig, own_host: &str) -> Result<Self, ConfigError> {
        let (host, from) = config.ends()?;
        let from: Mailbox = from.parse().map_err(|_| {
            let fault = "it is not an address such as Portolan <portolan@example.com>";
            ConfigError::new("mail_from", fault)
        })?;
        let tls = match config.security {
            Security::None => Tls::None,
            Security::Tls => Tls::Wrapper(parameters(host, config)?),
            Security::StartTls => Tls::Required(parameters(host, config)?),
        };
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host)
            .port(config.port())
            .tls(tls)
            .timeout(Some(TIMEOUT))
            .hello_name(ClientId::Domain(own_host.to_owned()));
        if let Some((user, password)) = config.credentials()? {
            builder = builder.credentials(Credentials::new(user.to_owned(), password.to_owned()));
        }
        Ok(Self {
            transport: builder.build(),
            from,
            own_host: own_host.to_owned(),
        })
    }

    /// Sends a message. The message id is the same at every retry, so that a receiver can recognise
    /// a duplicate.
    pub async fn send(&self, mail: &Mail) -> Result<(), SendError> {
        let message = self.message(mail).ok_or(SendError::Refused { code: 0 })?;
        self.transport
            .send(message)
            .await
            .map(drop)
            .map_err(|error| {
                let code = error.status().map_or(0, u16::from);
                // 535 and the like: a fault of the settings. Mail waits until the operator repairs
                // it.
                let is_about_us = matches!(code, 530..=538);
                if error.is_permanent() && !is_about_us {
                    return SendError::Refused { code };
                }
                let what = if is_about_us {
                    "credentials"
                } else if error.is_transient() {
                    "refused for now"
                } else if error.is_timeout() {
                    "time-out"
                } else if error.is_tls() {
                    "TLS"
                } else {
                    "connection"
                };
                SendError::NotNow { what, code }
            })
    }

    fn message(&self, mail: &Mail) -> Option<Message> {
        let builder = Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, mail.to.parse().ok()?))
            .subject(mail.subject.clone())
            .date(mail.created_at.into())
            .message_id(Some(format!("<{}@{}>", mail.id, self.own_host)))
            .header(AutoSubmitted);
        if mail.html.is_empty() {
            builder
                .header(ContentType::TEXT_PLAIN)
                .body(mail.body.clone())
        } else {
            builder.multipart(MultiPart::alternative_plain_html(
                mail.body.clone(),
                mail.html.clone(),
            ))
        }
        .ok()
    }
}

fn parameters(host: &str, config: &MailConfig) -> Result<TlsParameters, ConfigError> {
    let refused = |error| {
        let fault = format!("TLS to the mail server cannot be set up: {error}");
        ConfigError::new("smtp_ca_file", fault)
    };
    let mut builder = TlsParameters::builder(host.to_owned());
    if let Some(Certificates(pem)) = &config.ca {
        builder = builder.add_root_certificate(Certificate::from_pem(pem).map_err(refused)?);
    }
    builder.build().map_err(refused)
}
