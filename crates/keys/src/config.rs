//! Settings of keys and passwords.

use std::error::Error;

use portolan_config::{Form, Value};

use crate::{Keys, KeysError, MasterSecret, PasswordCost};

portolan_config::config! {
    /// Keys and passwords
    pub struct KeysConfig {
        /// 32 random bytes as 64 hex digits (openssl rand -hex 32). Every key of the service is
        /// derived from it or sealed under it: losing it loses stored credentials and signing keys.
        master_secret: MasterSecret;
        /// Former values of master_secret, with commas between: what they sealed still opens.
        /// Needed while the secret is changed, until `portolan admin vault rewrap` has sealed
        /// everything again.
        master_secret_previous: Vec<MasterSecret> = Vec::new();
        /// "standard", or "test" in debug builds: argon2id with little memory, for test suites.
        password_cost: PasswordCost = PasswordCost::Standard;
    }
}

impl KeysConfig {
    /// Every key that is derived from a master secret: the present one seals, former ones only
    /// open.
    pub fn keys(&self) -> Result<Keys, KeysError> {
        Keys::new(&self.master_secret, &self.master_secret_previous)
    }
}

impl Value for MasterSecret {
    const FORM: Form = Form::Text("64 hex digits (openssl rand -hex 32)");
    const SECRET: bool = true;
    fn parse(text: &str) -> Result<Self, Box<dyn Error + Send + Sync>> {
        Self::parse(text).map_err(|_| "is not 64 hex digits".into())
    }
    fn text(&self) -> String {
        String::new()
    }
}

impl Value for PasswordCost {
    const FORM: Form = Form::Words(&["standard", "test"]);
    fn parse(text: &str) -> Result<Self, Box<dyn Error + Send + Sync>> {
        match text {
            "standard" => Ok(Self::Standard),
            _ if cfg!(debug_assertions) => Ok(Self::Test),
            _ => Err("is refused by a release build".into()),
        }
    }
    fn text(&self) -> String {
        match self {
            Self::Standard => "standard".to_owned(),
            Self::Test => "test".to_owned(),
        }
    }
}
