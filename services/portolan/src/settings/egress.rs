//! Certificate authorities that outgoing calls trust.

use std::fs;

use anyhow::{Context, Result};
use portolan_net::egress::Authorities;

use super::Raw;

/// Reads `egress_ca_file`. The file must be usable: otherwise calls would fail one by one, much
/// later.
pub(super) fn authorities(raw: &Raw) -> Result<Authorities> {
    let Some(path) = raw.text("egress_ca_file") else {
        return Ok(Authorities::default());
    };
    let text = fs::read(path).with_context(|| format!("egress_ca_file: cannot read {path}"))?;
    Authorities::from_pem(&text)
        .with_context(|| format!("egress_ca_file: {path} is not a list of certificates in PEM"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY_ALONE: &str = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    const NO_CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    const BROKEN: &str = "-----BEGIN CERTIFICATE-----\n=!=\n-----END CERTIFICATE-----\n";

    fn read(path: &str) -> Result<Authorities> {
        let pair = ("PORTOLAN_EGRESS_CA_FILE".to_owned(), path.to_owned());
        authorities(&Raw::load(None, [pair].into_iter())?)
    }

    #[test]
    fn a_file_that_names_no_authority_is_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let path = path.to_str().unwrap();
        let said = |error: anyhow::Error| format!("{error:#}");
        let missing = said(read(path).unwrap_err());
        assert!(
            missing.starts_with(&format!("egress_ca_file: cannot read {path}")),
            "{missing}"
        );
        for (text, why) in [
            ("", "there is no certificate in it"),
            (KEY_ALONE, "there is no certificate in it"),
            (NO_CERTIFICATE, "certificate 1 in it cannot be read"),
            (BROKEN, "it is not PEM"),
        ] {
            fs::write(path, text).unwrap();
            let error = said(read(path).unwrap_err());
            assert!(
                error.starts_with("egress_ca_file") && error.contains(why),
                "{error}"
            );
        }
        assert!(read("").unwrap().is_empty(), "unset");
    }
}
