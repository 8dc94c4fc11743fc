//! A browser without script: a cookie jar, redirects and HTML forms. A page that works here works
//! in every browser.

use std::{collections::BTreeMap, sync::Mutex};

use anyhow::{Context, Result, bail};
use reqwest::{
    Method, StatusCode,
    header::{self, HeaderMap, HeaderValue},
    redirect::Policy,
};
use scraper::{ElementRef, Html, Selector};
use url::Url;

/// One browser of one person, on one site.
#[derive(Debug)]
pub struct Browser {
    client: reqwest::Client,
    base: Url,
    cookies: Mutex<BTreeMap<String, String>>,
}

/// The result of a navigation.
#[derive(Debug, Clone)]
pub struct Page {
    /// Where it is.
    pub url: Url,
    /// HTTP status.
    pub status: StatusCode,
    /// Response headers.
    pub headers: HeaderMap,
    /// The document.
    pub body: String,
    /// Where the site sent the browser to, if that is another origin. It has not been fetched.
    pub leaves_to: Option<Url>,
}

/// A form of a page with the values that it would send as it stands.
#[derive(Debug, Clone)]
pub struct Form {
    /// Absolute address it is sent to.
    pub action: Url,
    /// `GET` or `POST`.
    pub method: Method,
    /// Controls that would be sent: name, value.
    pub fields: Vec<(String, String)>,
    /// Controls that a person types into: name, type.
    pub inputs: Vec<(String, String)>,
    /// Buttons that send it: name, value, label.
    pub buttons: Vec<(String, String, String)>,
}

impl Form {
    /// Does it have a control with this name?
    pub fn has(&self, name: &str) -> bool {
        self.inputs.iter().any(|(input, _)| input == name)
            || self.fields.iter().any(|(field, _)| field == name)
    }

    /// Types `value` into the control called `name`.
    #[must_use]
    pub fn fill(mut self, name: &str, value: &str) -> Self {
        self.fields.retain(|(field, _)| field != name);
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends it with this button.
    #[must_use]
    pub fn press(self, name: &str, value: &str) -> Self {
        if name.is_empty() {
            self
        } else {
            self.fill(name, value)
        }
    }
}

impl Page {
    /// The forms, in order.
    pub fn forms(&self) -> Vec<Form> {
        let document = Html::parse_document(&self.body);
        document
            .select(&selector("form"))
            .map(|form| self.read_form(&form))
            .collect()
    }

    /// The first form with a control called `name`.
    pub fn form_with(&self, name: &str) -> Result<Form> {
        self.forms()
            .into_iter()
            .find(|form| form.has(name) || form.buttons.iter().any(|(button, ..)| button == name))
            .with_context(|| {
                format!(
                    "no form with a control `{name}` at {} ({}):\n{}",
                    self.url,
                    self.status,
                    self.text()
                )
            })
    }

    /// Where the links of the page lead, in order.
    pub fn links(&self) -> Vec<String> {
        let document = Html::parse_document(&self.body);
        let links = selector("a[href]");
        let links = document
            .select(&links)
            .filter_map(|link| link.value().attr("href").map(str::to_owned));
        links.collect()
    }

    /// The visible text, in one line.
    pub fn text(&self) -> String {
        let document = Html::parse_document(&self.body);
        let body = document.select(&selector("body")).next();
        let text: String = body
            .map(|body| body.text().collect::<Vec<_>>().join(" "))
            .unwrap_or_default();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn read_form(&self, form: &ElementRef<'_>) -> Form {
        let element = form.value();
        let mut read = Form {
            action: self
                .url
                .join(element.attr("action").unwrap_or(""))
                .unwrap_or_else(|_| self.url.clone()),
            method: if element
                .attr("method")
                .is_some_and(|method| method.eq_ignore_ascii_case("post"))
            {
                Method::POST
            } else {
                Method::GET
            },
            fields: Vec::new(),
            inputs: Vec::new(),
            buttons: Vec::new(),
        };
        for control in form.select(&selector("input, button, select, textarea")) {
            let value = control.value();
            let name = value.attr("name").unwrap_or("").to_owned();
            let text = value.attr("value").unwrap_or("").to_owned();
            let kind = value.attr("type").unwrap_or(if value.name() == "button" {
                "submit"
            } else {
                "text"
            });
            match (value.name(), kind) {
                ("button" | "input", "submit") => {
                    read.buttons.push((
                        name,
                        text,
                        control.text().collect::<String>().trim().to_owned(),
                    ));
                }
                ("button", _) => {}
                (_, "radio" | "checkbox") => {
                    if value.attr("checked").is_some() {
                        read.fields.push((name.clone(), text));
                    }
                    read.inputs.push((name, kind.to_owned()));
                }
                (_, "hidden") => read.fields.push((name, text)),
                ("select", _) => {
                    let chosen = selector("option[selected]");
                    let first = selector("option");
                    let option = control
                        .select(&chosen)
                        .next()
                        .or_else(|| control.select(&first).next());
                    let text = option
                        .and_then(|option| option.value().attr("value"))
                        .unwrap_or("")
                        .to_owned();
                    read.fields.push((name.clone(), text));
                    read.inputs.push((name, "select".to_owned()));
                }
                _ => {
                    if !name.is_empty() {
                        read.fields.push((name.clone(), text));
                        read.inputs.push((name, kind.to_owned()));
                    }
                }
            }
        }
        read
    }

    /// The values of a group of radio buttons.
    pub fn choices(&self, name: &str) -> Vec<String> {
        let document = Html::parse_document(&self.body);
        let radios = selector("input[type=radio]");
        document
            .select(&radios)
            .filter(|input| input.value().attr("name") == Some(name))
            .filter_map(|input| input.value().attr("value").map(str::to_owned))
            .collect()
    }
}

fn selector(text: &str) -> Selector {
    Selector::parse(text).expect("a fixed selector is valid")
}

impl Browser {
    /// A new browser without cookies.
    pub fn new(base: &Url) -> Result<Self> {
        let client = reqwest::Client::builder()
            .redirect(Policy::none())
            .build()?;
        Ok(Self {
            client,
            base: base.clone(),
            cookies: Mutex::default(),
        })
    }

    /// The site.
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// Opens a path or an absolute address of the site.
    pub async fn open(&self, address: &str) -> Result<Page> {
        self.navigate(Method::GET, self.base.join(address)?, None)
            .await
    }

    /// Sends a form, as a person's click does.
    pub async fn submit(&self, form: Form) -> Result<Page> {
        if form.method == Method::GET {
            let mut url = form.action.clone();
            url.query_pairs_mut().clear().extend_pairs(&form.fields);
            return self.navigate(Method::GET, url, None).await;
        }
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(&form.fields)
            .finish();
        self.navigate(Method::POST, form.action, Some(body)).await
    }

    async fn navigate(&self, method: Method, url: Url, body: Option<String>) -> Result<Page> {
        let (mut method, mut url, mut body) = (method, url, body);
        for _ in 0..10 {
            let mut request = self
                .client
                .request(method.clone(), url.clone())
                .header(header::ACCEPT, "text/html,*/*;q=0.8");
            if let Some(body) = body.take() {
                request = request
                    .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
                    .header(header::ORIGIN, self.base.origin().ascii_serialization())
                    .body(body);
            }
            let response = self.with_cookies(request).send().await?;
            let (status, headers) = (response.status(), response.headers().clone());
            self.keep_cookies(&headers);
            let target = headers
                .get(header::LOCATION)
                .filter(|_| status.is_redirection());
            let target = target
                .map(|target| Ok::<_, anyhow::Error>(url.join(target.to_str()?)?))
                .transpose()?;
            let body = response.text().await?;
            match target {
                None => {
                    return Ok(Page {
                        url,
                        status,
                        headers,
                        body,
                        leaves_to: None,
                    });
                }
                Some(target) if target.origin() != self.base.origin() => {
                    return Ok(Page {
                        url,
                        status,
                        headers,
                        body,
                        leaves_to: Some(target),
                    });
                }
                Some(target) => {
                    if status != StatusCode::TEMPORARY_REDIRECT
                        && status != StatusCode::PERMANENT_REDIRECT
                    {
                        method = Method::GET;
                    }
                    url = target;
                }
            }
        }
        bail!("more than ten redirects, the last to {url}")
    }

    /// A request of the site's own script: same origin, with the cookies.
    pub fn fetch(&self, method: Method, path: &str) -> Result<reqwest::RequestBuilder> {
        let request = self
            .client
            .request(method, self.base.join(path)?)
            .header("sec-fetch-site", "same-origin")
            .header(header::ORIGIN, self.base.origin().ascii_serialization());
        Ok(self.with_cookies(request))
    }

    fn with_cookies(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        let cookies = self
            .cookies
            .lock()
            .expect("no test panics with the jar in hand");
        if cookies.is_empty() {
            return request;
        }
        let line = cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect::<Vec<_>>()
            .join("; ");
        request.header(
            header::COOKIE,
            HeaderValue::from_str(&line).expect("cookies are ASCII"),
        )
    }

    /// Takes over what a response sets.
    pub fn keep_cookies(&self, headers: &HeaderMap) {
        let mut cookies = self
            .cookies
            .lock()
            .expect("no test panics with the jar in hand");
        for line in headers
            .get_all(header::SET_COOKIE)
            .iter()
            .filter_map(|line| line.to_str().ok())
        {
            let (pair, attributes) = line.split_once(';').unwrap_or((line, ""));
            let Some((name, value)) = pair.split_once('=') else {
                continue;
            };
            let gone = attributes
                .to_ascii_lowercase()
                .split(';')
                .any(|attribute| attribute.trim() == "max-age=0");
            if gone || value.is_empty() {
                cookies.remove(name.trim());
            } else {
                cookies.insert(name.trim().to_owned(), value.trim().to_owned());
            }
        }
    }

    /// The value of a cookie, for tests about cookies.
    pub fn cookie(&self, name: &str) -> Option<String> {
        self.cookies
            .lock()
            .expect("no test panics with the jar in hand")
            .get(name)
            .cloned()
    }

    /// Forgets everything, as a new device does.
    pub fn forget(&self) {
        self.cookies
            .lock()
            .expect("no test panics with the jar in hand")
            .clear();
    }
}
