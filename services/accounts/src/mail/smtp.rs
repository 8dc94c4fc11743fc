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
use portolan_keys::Secret;
use portolan_storage::platform::mails::Mail;

/// Time after which a server counts as dead.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Protection of the connection to the mail server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// TLS from the first byte: port 465.
    Tls,
    /// STARTTLS. No message is sent if the server does not offer it: port 587.
    StartTls,
    /// None. For a server on this machine only.
    None,
}

/// The mail server to use.
#[derive(Debug, Clone)]
pub struct SmtpConfig {
    /// Host name, as in the certificate.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Protection of the connection.
    pub security: Security,
    /// User and password, if the server requires them.
    pub credentials: Option<(String, Secret<String>)>,
    /// `From`: an address, or `Name <address>`.
    pub from: String,
    /// Certificates to trust in addition to those of the system, in PEM.
    pub ca: Option<Vec<u8>>,
    /// Host name of this service: in EHLO and in message ids.
    pub own_host: String,
}

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SmtpConfigError {
    /// `from` is no address.
    #[error("mail_from is not an address such as Portolan <portolan@example.com>")]
    From(#[source] lettre::address::AddressError),
    /// The certificate file cannot be read, or TLS cannot be set up.
    #[error("TLS to the mail server cannot be set up (smtp_ca_file)")]
    Tls(#[source] lettre::transport::smtp::Error),
}

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
    /// are few, and a kept connection can die unnoticed.
    pub fn new(config: &SmtpConfig) -> Result<Self, SmtpConfigError> {
        let from: Mailbox = config.from.parse().map_err(SmtpConfigError::From)?;
        let tls = match config.security {
            Security::None => Tls::None,
            Security::Tls => Tls::Wrapper(parameters(config)?),
            Security::StartTls => Tls::Required(parameters(config)?),
        };
        let mut builder =
            AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(config.host.as_str())
                .port(config.port)
                .tls(tls)
                .timeout(Some(TIMEOUT))
                .hello_name(ClientId::Domain(config.own_host.clone()));
        if let Some((user, password)) = &config.credentials {
            builder =
                builder.credentials(Credentials::new(user.clone(), password.expose().clone()));
        }
        Ok(Self {
            transport: builder.build(),
            from,
            own_host: config.own_host.clone(),
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

fn parameters(config: &SmtpConfig) -> Result<TlsParameters, SmtpConfigError> {
    let mut builder = TlsParameters::builder(config.host.clone());
    if let Some(pem) = &config.ca {
        builder =
            builder.add_root_certificate(Certificate::from_pem(pem).map_err(SmtpConfigError::Tls)?);
    }
    builder.build().map_err(SmtpConfigError::Tls)
}
