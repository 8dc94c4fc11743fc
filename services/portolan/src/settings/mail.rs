//! Where mail goes.

use std::fs;

use anyhow::{Context, Result, bail};
use portolan_accounts::mail::smtp::{Security, Smtp, SmtpConfig};
use portolan_keys::Secret;
use url::Url;

use super::Raw;

/// Where mail goes.
#[derive(Debug, Clone)]
pub enum MailSettings {
    /// It stays in the queue.
    Queue,
    /// Into the log, sign-in codes included.
    Log,
    /// To a mail server.
    Smtp(SmtpConfig),
}

impl MailSettings {
    /// Reads and checks; connects to nothing.
    pub(super) fn read(raw: &Raw, public_url: &Url) -> Result<Self> {
        match raw.get("mail") {
            Some("log") => return Ok(Self::Log),
            Some("queue") => return Ok(Self::Queue),
            Some("smtp") => {}
            _ => bail!("mail: use \"smtp\", \"queue\" or \"log\""),
        }
        let host: String = raw.parse("smtp_host")?;
        let (security, usual) = match raw.get("smtp_security") {
            Some("tls") => (Security::Tls, 465),
            Some("starttls") => (Security::StartTls, 587),
            Some("none") if is_here(&host) => (Security::None, 25),
            Some("none") => bail!(
                "smtp_security: \"none\" is only for a mail server on this machine (smtp_host = \"127.0.0.1\", \"[::1]\" or \"localhost\")"
            ),
            _ => bail!("smtp_security: use \"starttls\", \"tls\" or \"none\""),
        };
        let port = match raw.within("smtp_port", 0..=65_535)? {
            0 => usual,
            port => u16::try_from(port)?,
        };
        let credentials = match (raw.text("smtp_user"), raw.text("smtp_password")) {
            (Some(user), Some(password)) => {
                Some((user.to_owned(), Secret::new(password.to_owned())))
            }
            (None, None) => None,
            _ => bail!("smtp_user and smtp_password belong together: set both or neither"),
        };
        let ca = match raw.text("smtp_ca_file") {
            Some(path) => {
                Some(fs::read(path).with_context(|| format!("smtp_ca_file: cannot read {path}"))?)
            }
            None => None,
        };
        let config = SmtpConfig {
            host: host
                .trim_start_matches('[')
                .trim_end_matches(']')
                .to_owned(),
            port,
            security,
            credentials,
            from: raw.parse("mail_from")?,
            ca,
            own_host: public_url.host_str().unwrap_or("localhost").to_owned(),
        };
        Smtp::new(&config)?;
        Ok(Self::Smtp(config))
    }
}

fn is_here(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || bare
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<MailSettings> {
        let environment = pairs
            .iter()
            .map(|(name, value)| (format!("PORTOLAN_{name}"), (*value).to_owned()))
            .collect::<Vec<_>>();
        let raw = Raw::load(None, environment.into_iter())?;
        MailSettings::read(&raw, &"https://mcp.example.com".parse()?)
    }

    const SMTP: [(&str, &str); 3] = [
        ("MAIL", "smtp"),
        ("SMTP_HOST", "mail.example.com"),
        ("MAIL_FROM", "Portolan <portolan@example.com>"),
    ];

    #[test]
    fn a_mail_server_is_spoken_to_with_tls_and_the_password_is_mute() {
        let mut pairs = SMTP.to_vec();
        pairs.push(("SMTP_USER", "portolan"));
        pairs.push(("SMTP_PASSWORD", "planted-word"));
        let settings = read(&pairs).unwrap();
        assert!(!format!("{settings:?}").contains("planted-word"), "AUTH-X1");
        let MailSettings::Smtp(config) = settings else {
            panic!("smtp")
        };
        assert_eq!((config.security, config.port), (Security::StartTls, 587));
        assert!(matches!(read(&[]).unwrap(), MailSettings::Queue));
    }

    #[test]
    fn plain_text_is_for_this_machine_only_and_halves_of_credentials_are_refused() {
        for (name, value) in [
            ("SMTP_SECURITY", "none"),
            ("SMTP_SECURITY", "ssl"),
            ("SMTP_PORT", "65536"),
            ("SMTP_USER", "alone"),
            ("SMTP_CA_FILE", "/nonexistent/ca.pem"),
            ("MAIL_FROM", "nobody"),
        ] {
            let mut pairs = SMTP.to_vec();
            pairs.retain(|(known, _)| *known != name);
            pairs.push((name, value));
            assert!(read(&pairs).is_err(), "{name}={value}");
        }
        let here = [
            ("MAIL", "smtp"),
            ("SMTP_HOST", "127.0.0.1"),
            ("SMTP_SECURITY", "none"),
            ("SMTP_PORT", "1025"),
            ("MAIL_FROM", "portolan@example.com"),
        ];
        assert!(read(&here).is_ok());
        assert!(read(&[("MAIL", "smtp")]).is_err(), "whom to speak to?");
    }
}
