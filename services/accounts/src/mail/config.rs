//! Settings of mail.

use std::{error::Error, fmt, fs, net::IpAddr};

use portolan_config::{ConfigError, Form, SecretText, Value};

use super::smtp::Smtp;

/// Where mail goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// It stays in the queue.
    Queue,
    /// Into the log, sign-in codes included.
    Log,
    /// To a mail server.
    Smtp,
}

portolan_config::words!(Delivery { Queue = "queue", Log = "log", Smtp = "smtp" });

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

portolan_config::words!(Security { StartTls = "starttls", Tls = "tls", None = "none" });

impl Security {
    const fn usual_port(self) -> u16 {
        match self {
            Self::Tls => 465,
            Self::StartTls => 587,
            Self::None => 25,
        }
    }
}

/// Certificates in PEM. A setting is the path of their file.
#[derive(Clone)]
pub struct Certificates(pub Vec<u8>);

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certificates")
    }
}

impl Value for Certificates {
    const FORM: Form = Form::Text("the path of a file of certificates in PEM");
    fn parse(path: &str) -> Result<Self, Box<dyn Error + Send + Sync>> {
        fs::read(path)
            .map(Self)
            .map_err(|error| format!("cannot be read: {error}").into())
    }
    fn text(&self) -> String {
        String::new()
    }
}

portolan_config::config! {
    /// Mail
    pub struct MailConfig {
        /// Where mail goes. "smtp" hands it to the mail server of smtp_host; "queue" keeps it in
        /// the table mails, where nothing delivers it; "log" writes address and sign-in code to the
        /// log: for trials only.
        delivery: Delivery as "mail" = Delivery::Queue;
        /// Sender of mail, such as `Portolan <portolan@example.com>`. Needed with mail = "smtp".
        from: Option<String> as "mail_from" = None;
        /// Mail server, by the name that its certificate has. Needed with mail = "smtp".
        host: Option<String> as "smtp_host" = None;
        /// Port of the mail server. 0 is the usual one: 587 for "starttls", 465 for "tls", 25 for
        /// "none".
        port: u16 as "smtp_port" = 0;
        /// How the connection to the mail server is protected. "starttls" sends nothing when the
        /// server does not offer it, "tls" is TLS from the first byte, "none" is only for a mail
        /// server on this machine.
        security: Security as "smtp_security" = Security::StartTls;
        /// User name at the mail server, with smtp_password. Neither: the server takes our mail
        /// without.
        user: Option<String> as "smtp_user" = None;
        /// Password at the mail server.
        password: Option<SecretText> as "smtp_password" = None;
        /// File with certificates (PEM) to trust for the mail server beside those of the system.
        ca: Option<Certificates> as "smtp_ca_file" = None;
    }
    check can_send;
}

impl MailConfig {
    /// The client of the mail server; `None` where there is none. Connects to nothing. `own_host`
    /// is the host name of this service.
    pub fn smtp(&self, own_host: &str) -> Result<Option<Smtp>, ConfigError> {
        if self.delivery != Delivery::Smtp {
            return Ok(None);
        }
        Smtp::new(self, own_host).map(Some)
    }

    fn can_send(&self) -> Result<(), ConfigError> {
        self.smtp("localhost").map(drop)
    }

    /// The port, also where it is the usual one.
    pub(super) fn port(&self) -> u16 {
        match self.port {
            0 => self.security.usual_port(),
            port => port,
        }
    }

    /// Host and sender.
    pub(super) fn ends(&self) -> Result<(&str, &str), ConfigError> {
        let needed = |setting, value: &'static str| {
            ConfigError::new(
                setting,
                format!("it is not set: mail = \"smtp\" needs {value}"),
            )
        };
        let host = self.host.as_deref();
        let host = host.ok_or_else(|| needed("smtp_host", "the name of the mail server"))?;
        let from = self.from.as_deref();
        let from = from.ok_or_else(|| needed("mail_from", "a sender"))?;
        if self.security == Security::None && !is_here(host) {
            let fault = "\"none\" is only for a mail server on this machine (smtp_host = \"127.0.0.1\", \"[::1]\" or \"localhost\")";
            return Err(ConfigError::new("smtp_security", fault));
        }
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        Ok((bare, from))
    }

    /// User and password: both or neither.
    pub(super) fn credentials(&self) -> Result<Option<(&str, &str)>, ConfigError> {
        match (&self.user, &self.password) {
            (Some(user), Some(password)) => Ok(Some((user, password.reveal()))),
            (None, None) => Ok(None),
            _ => Err(ConfigError::new(
                "smtp_user",
                "it belongs together with smtp_password: set both or neither",
            )),
        }
    }
}

fn is_here(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || bare
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use portolan_config::{Config, Values};

    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<MailConfig, ConfigError> {
        let mut values = Values::default();
        for (name, value) in pairs {
            values.set(name, *value);
        }
        MailConfig::read(&values)
    }

    const SMTP: [(&str, &str); 3] = [
        ("mail", "smtp"),
        ("smtp_host", "mail.example.com"),
        ("mail_from", "Portolan <portolan@example.com>"),
    ];

    #[test]
    fn a_mail_server_is_spoken_to_with_tls_and_the_password_is_mute() {
        let mut pairs = SMTP.to_vec();
        pairs.push(("smtp_user", "portolan"));
        pairs.push(("smtp_password", "planted-word"));
        let config = read(&pairs).unwrap();
        assert!(!format!("{config:?}").contains("planted-word"), "AUTH-X1");
        assert_eq!((config.security, config.port()), (Security::StartTls, 587));
        assert_eq!(read(&[]).unwrap().delivery, Delivery::Queue);
    }

    #[test]
    fn plain_text_is_for_this_machine_only_and_halves_of_credentials_are_refused() {
        for (name, value) in [
            ("smtp_security", "none"),
            ("smtp_security", "ssl"),
            ("smtp_port", "65536"),
            ("smtp_user", "alone"),
            ("smtp_ca_file", "/nonexistent/ca.pem"),
            ("mail_from", "nobody"),
        ] {
            let mut pairs = SMTP.to_vec();
            pairs.retain(|(known, _)| *known != name);
            pairs.push((name, value));
            let error = read(&pairs).unwrap_err().to_string();
            assert!(error.starts_with(name), "{name}={value}: {error}");
        }
        let here = [
            ("mail", "smtp"),
            ("smtp_host", "127.0.0.1"),
            ("smtp_security", "none"),
            ("smtp_port", "1025"),
            ("mail_from", "portolan@example.com"),
        ];
        assert!(read(&here).is_ok());
        assert!(read(&[("mail", "smtp")]).is_err(), "smtp_host is missing");
    }
}
