//! A person with a browser: signs up, signs in, agrees. Every step goes through the real pages.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use regex::Regex;
use url::Url;

use crate::{
    browser::{Browser, Page},
    console::Console,
    stack::Stack,
};

static COUNT: AtomicU32 = AtomicU32::new(1);

/// A press on "Allow" in less than this is refused: it could be a click that was meant for another
/// window (AUTH-N6).
const TIME_TO_READ: Duration = Duration::from_millis(350);

/// A person who uses Portolan.
#[derive(Debug)]
pub struct Person {
    /// Address, unique in a run.
    pub email: String,
    /// Long enough, and nothing that a list knows.
    pub password: String,
    /// With cookies.
    pub browser: Browser,
}

impl Person {
    /// A person who has not signed up.
    pub fn new(base: &Url, name: &str) -> Result<Self> {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Ok(Self {
            email: format!("{name}{number}@example.com"),
            password: format!("seven lanterns over {name}'s harbour"),
            browser: Browser::new(base)?,
        })
    }

    /// Signs up and types the code from the mail.
    pub async fn sign_up(stack: &Stack, name: &str) -> Result<Self> {
        let person = Self::new(stack.url(), name)?;
        let page = person.send_sign_up().await?;
        let code = person.mailed_code().await?;
        person.type_code(&page, &code).await?;
        Ok(person)
    }

    /// Fills in the code on the page for it.
    pub async fn type_code(&self, page: &Page, code: &str) -> Result<()> {
        let page = self
            .browser
            .submit(page.form_with("code")?.fill("code", code))
            .await?;
        ensure!(
            page.status.is_success(),
            "after the code: {} {}",
            page.status,
            page.text()
        );
        Ok(())
    }

    /// Fills in the sign-up form. Returns the page for the code.
    pub async fn send_sign_up(&self) -> Result<Page> {
        let page = self.browser.open("/signup").await?;
        let mut form = page
            .form_with("password")?
            .fill("email", &self.email)
            .fill("password", &self.password);
        for (name, _) in form.inputs.clone() {
            if name.contains("name") {
                form = form.fill(&name, self.email.split('@').next().unwrap_or("Somebody"));
            }
        }
        self.browser.submit(form).await
    }

    /// The code of the newest mail to this person, as the mail page shows it.
    pub async fn mailed_code(&self) -> Result<String> {
        let page = self.browser.open("/dev/mail").await?;
        let text = page.text();
        // The newest mail stands on top.
        let after = text
            .find(&self.email)
            .map(|at| &text[at..])
            .with_context(|| format!("no mail to {} in: {text}", self.email))?;
        let code = Regex::new(r"\b(\d{4}) ?(\d{4})\b")?
            .captures(after)
            .with_context(|| format!("no code in: {after}"))?;
        Ok(format!("{}{}", &code[1], &code[2]))
    }

    /// Signs in with the password, at the page for it.
    pub async fn sign_in(&self, page: Page) -> Result<Page> {
        let form = page
            .form_with("password")?
            .fill("email", &self.email)
            .fill("password", &self.password);
        self.browser.submit(form).await
    }

    /// The console of this person.
    pub fn console(&self) -> Console<'_> {
        Console::new(&self.browser)
    }

    /// Opens an authorization request in the browser, signs in if asked to, and agrees. Answers where the browser is sent to.
    pub async fn agree(&self, authorize_url: &str) -> Result<Url> {
        let page = self.open_consent(authorize_url).await?;
        self.decide(page, true).await
    }

    /// Opens an authorization request and signs in if asked to. Answers the consent page.
    pub async fn open_consent(&self, authorize_url: &str) -> Result<Page> {
        let page = self.browser.open(authorize_url).await?;
        if page.form_with("password").is_ok() {
            return self.sign_in(page).await;
        }
        Ok(page)
    }

    /// Presses "Allow" or the other button on a consent page.
    pub async fn decide(&self, page: Page, allow: bool) -> Result<Url> {
        let mut form = page.form_with("decision")?;
        // The picker: a workspace must be chosen if none is yet.
        if form.has("workspace")
            && !form
                .fields
                .iter()
                .any(|(name, value)| name == "workspace" && !value.is_empty())
        {
            let choices = page.choices("workspace");
            let only = choices
                .first()
                .context("a picker offers at least one workspace")?;
            form = form.fill("workspace", only);
        }
        let (name, value, _) = form
            .buttons
            .iter()
            .find(|(_, value, _)| matches!(value.as_str(), "allow" | "approve") == allow)
            .cloned()
            .with_context(|| format!("no such button among {:?}", form.buttons))?;
        // Not a wait for something to happen: the rule asks that a person had time to read.
        tokio::time::sleep(TIME_TO_READ).await;
        let page = self.browser.submit(form.press(&name, &value)).await?;
        let text = page.text();
        page.leaves_to.with_context(|| {
            format!(
                "consent did not send the browser back: {} {} {text}",
                page.status, page.url
            )
        })
    }

    /// Agrees and follows the redirect to the client's own callback, which listens on loopback.
    pub async fn agree_and_return(&self, authorize_url: &str) -> Result<()> {
        let callback = self.agree(authorize_url).await?;
        let answer = reqwest::Client::builder()
            .build()?
            .get(callback)
            .send()
            .await?;
        ensure!(
            answer.status().is_success(),
            "the client's callback answered {}",
            answer.status()
        );
        Ok(())
    }
}
