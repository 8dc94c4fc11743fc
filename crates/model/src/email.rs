//! How e-mail addresses are compared (AUTH-L8).

use unicode_normalization::UnicodeNormalization;

/// An address as typed, and the form in which two addresses are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmailAddress {
    typed: String,
    normalised: String,
}

/// The text cannot be an e-mail address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("enter an e-mail address such as name@example.com")]
pub struct InvalidEmail;

impl EmailAddress {
    /// Reads an address: one `@`, a local part of 1–64 bytes, a domain with a dot (or `localhost`),
    /// 254 bytes in all, no spaces or control characters. Whether it exists is proved by a code,
    /// not by a pattern.
    pub fn parse(text: &str) -> Result<Self, InvalidEmail> {
        let typed = text.trim();
        if typed.len() > 254 || typed.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(InvalidEmail);
        }
        let (local, domain) = typed.rsplit_once('@').ok_or(InvalidEmail)?;
        if local.is_empty()
            || local.len() > 64
            || local.contains(['@', '"', '<', '>', ',', ';', ':', '\\', '(', ')', '[', ']'])
        {
            return Err(InvalidEmail);
        }
        let Ok(url::Host::Domain(domain)) = url::Host::parse(domain) else {
            return Err(InvalidEmail);
        };
        let domain = domain.trim_end_matches('.');
        if domain != "localhost" && (!domain.contains('.') || domain.split('.').any(str::is_empty))
        {
            return Err(InvalidEmail);
        }
        let local: String = local.nfkc().collect::<String>().to_lowercase();
        Ok(Self {
            typed: typed.to_owned(),
            normalised: format!("{local}@{domain}"),
        })
    }

    /// As the person typed it: what mail is sent to and what pages show.
    pub fn as_typed(&self) -> &str {
        &self.typed
    }

    /// lower(NFKC) with the domain in punycode. No dot or plus folding: that is the provider's
    /// business.
    pub fn normalised(&self) -> &str {
        &self.normalised
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_kept_as_typed_and_compared_normalised() {
        let address = EmailAddress::parse(" Ann.Ä+x@BÜCHER.example ").unwrap();
        assert_eq!(address.as_typed(), "Ann.Ä+x@BÜCHER.example");
        assert_eq!(address.normalised(), "ann.ä+x@xn--bcher-kva.example");
    }

    #[test]
    fn what_cannot_be_an_address_is_refused() {
        for bad in [
            "",
            "ann",
            "@x.example",
            "ann@",
            "ann@host",
            "a b@x.example",
            "ann@@x.example",
            "ann@127.0.0.1",
            "ann@x..example",
        ] {
            assert_eq!(EmailAddress::parse(bad), Err(InvalidEmail), "{bad}");
        }
    }
}
