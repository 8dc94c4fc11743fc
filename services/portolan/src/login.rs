//! `portolan login` and `logout`: a token of the management API for the commands of this machine
//! (CONF-15; `docs/configuration-as-code.md`).

use std::{io::Read, process::ExitCode, time::Duration};

use anyhow::{Context, Result, bail};
use clap::Args;
use http::{Method, StatusCode};
use portolan_bridge::{
    Folders,
    command_token::{
        BrowserRequest, CommandCode, CommandToken, CommandTokenFile, PageFacts, code_from_browser,
    },
};
use portolan_net::egress::EgressRequest;
use serde_json::{Value, json};
use url::Url;

use crate::{
    connect::Environment,
    installation::{Installation, PlainHttp, Refusal, bearer_headers, json_headers},
    output::say,
};

/// Longest token that is read from standard input, in bytes.
const LONGEST_TOKEN: u64 = 4 * 1024;

/// Most characters of the machine's name.
const LONGEST_NAME: usize = 60;

/// The installation of a sign-in.
#[derive(Debug, Args)]
pub struct InstallationOptions {
    /// Address of the installation: https://HOST.
    #[arg(env = "PORTOLAN_URL", value_name = "URL")]
    url: Url,
    /// Send the token over http:// to public hosts too.
    #[arg(long)]
    allow_http: bool,
}

/// Options of `portolan login`.
#[derive(Debug, Args)]
pub struct LoginArguments {
    #[command(flatten)]
    installation: InstallationOptions,
    /// Slug of the workspace that the page proposes.
    #[arg(long, env = "PORTOLAN_WORKSPACE", value_name = "SLUG")]
    workspace: Option<String>,
    /// Only write the address of the page to standard error; open no browser.
    #[arg(long)]
    no_browser: bool,
    /// Seconds that a person has for the page.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    sign_in_timeout: u64,
    /// Read an access token from standard input, for machines without a browser.
    #[arg(long, conflicts_with = "no_browser")]
    token_stdin: bool,
    /// Show the present sign-in. Exit codes: 0 signed in, 1 not.
    #[arg(long, conflicts_with_all = ["no_browser", "token_stdin"])]
    status: bool,
}

/// Options of `portolan logout`.
#[derive(Debug, Args)]
pub struct LogoutArguments {
    #[command(flatten)]
    installation: InstallationOptions,
}

/// The token of `portolan login` for the installation at `url`; none if there is no home folder.
pub(crate) fn stored_token(url: &Url, environment: &Environment) -> Result<Option<String>> {
    let Some(folders) = folders(environment) else {
        return Ok(None);
    };
    let stored = CommandTokenFile::within(folders.command_tokens(), url).read()?;
    Ok(stored.map(|stored| stored.token))
}

fn folders(environment: &Environment) -> Option<Folders> {
    Folders::read(|name| environment.get(name).cloned())
}

fn file_of(options: &InstallationOptions, environment: &Environment) -> Result<CommandTokenFile> {
    let folders = folders(environment).context("there is no home folder; set HOME")?;
    let folder = folders.command_tokens();
    Ok(CommandTokenFile::within(folder, &options.url))
}

fn installation(options: &InstallationOptions, environment: &Environment) -> Result<Installation> {
    let plain = PlainHttp::of_option(options.allow_http);
    Installation::new(&options.url, plain, environment)
}

/// Signs a person in, or shows the present sign-in.
pub(crate) fn login(arguments: &LoginArguments, environment: &Environment) -> Result<ExitCode> {
    let options = &arguments.installation;
    if !matches!(options.url.scheme(), "http" | "https") {
        bail!("the address of an installation begins with https:// or http://");
    }
    let file = file_of(options, environment)?;
    let installation = installation(options, environment)?;
    if arguments.status {
        return status(&installation, &file);
    }
    let token = if arguments.token_stdin {
        given_token(&installation)?
    } else {
        token_from_browser(arguments, &installation, environment)?
    };
    let origin = options.url.origin().ascii_serialization();
    let earlier = installation.wait(file.keep(&CommandToken {
        url: origin,
        ..token.clone()
    }))?;
    // The earlier token of this machine is not used any more.
    if let Some(earlier) = earlier.filter(|earlier| earlier.token != token.token) {
        let _ = revoke(&installation, &earlier.token);
    }
    say(&format!(
        "You are signed in until {}. The token is in {}.",
        token.expires_at,
        file.path().display()
    ));
    Ok(ExitCode::SUCCESS)
}

/// Revokes the token of this machine and deletes it.
pub(crate) fn logout(arguments: &LogoutArguments, environment: &Environment) -> Result<ExitCode> {
    let options = &arguments.installation;
    let file = file_of(options, environment)?;
    let Some(stored) = file.read()? else {
        say("You were not signed in.");
        return Ok(ExitCode::SUCCESS);
    };
    let installation = installation(options, environment)?;
    let revoked = revoke(&installation, &stored.token);
    installation.wait(file.delete())?;
    match revoked {
        Ok(()) => say("You are signed out."),
        Err(refusal) => bail!(
            "the token is deleted here, but was not revoked: {refusal}. Revoke \"{}\" in the console",
            stored.name
        ),
    }
    Ok(ExitCode::SUCCESS)
}

/// Revokes a token. One that is revoked already is no error.
fn revoke(installation: &Installation, token: &str) -> Result<(), Refusal> {
    let url = installation.at(&["api", "v1", "token"]);
    let url = url.map_err(Refusal::other)?;
    let mut request = EgressRequest::new(Method::DELETE, url);
    request.headers = bearer_headers(token).map_err(Refusal::other)?;
    match installation.send(request) {
        Err(refusal) if refusal.status != Some(StatusCode::UNAUTHORIZED) => Err(refusal),
        _ => Ok(()),
    }
}

/// The facts of a token.
fn described(installation: &Installation, token: &str) -> Result<Value, Refusal> {
    let url = installation.at(&["api", "v1", "token"]);
    let mut request = EgressRequest::get(url.map_err(Refusal::other)?);
    request.headers = bearer_headers(token).map_err(Refusal::other)?;
    serde_json::from_str(&installation.send(request)?).map_err(Refusal::other)
}

fn status(installation: &Installation, file: &CommandTokenFile) -> Result<ExitCode> {
    let Some(stored) = file.read()? else {
        say("You are not signed in.");
        return Ok(ExitCode::FAILURE);
    };
    let facts = match described(installation, &stored.token) {
        Err(refusal) if refusal.status == Some(StatusCode::UNAUTHORIZED) => {
            say("You are not signed in any more: the token expired or was revoked.");
            return Ok(ExitCode::FAILURE);
        }
        facts => facts?,
    };
    let words = |value: &Value, member: Option<&str>| -> String {
        let items = value.as_array().into_iter().flatten();
        let word = |item: &Value| {
            let word = member.map_or_else(|| item.clone(), |member| item[member].clone());
            word.as_str().unwrap_or_default().to_owned()
        };
        items.map(word).collect::<Vec<_>>().join(", ")
    };
    let person = facts["person"]["email"].as_str();
    say(&format!(
        "You are signed in to {} as {} until {}.\nToken: {}\nWorkspaces: {}\nScopes: {}",
        stored.url,
        person.unwrap_or("the workspace"),
        facts["expires_at"].as_str().unwrap_or_default(),
        facts["name"].as_str().unwrap_or_default(),
        words(&facts["workspaces"], Some("slug")),
        words(&facts["scopes"], None),
    ));
    Ok(ExitCode::SUCCESS)
}

/// The token of standard input, which the installation knows.
fn given_token(installation: &Installation) -> Result<CommandToken> {
    let mut text = String::new();
    let input = std::io::stdin().lock();
    input.take(LONGEST_TOKEN).read_to_string(&mut text)?;
    let token = text.trim();
    if token.is_empty() {
        bail!("there is no token on standard input");
    }
    let facts = described(installation, token)?;
    Ok(CommandToken {
        url: String::new(),
        name: facts["name"].as_str().unwrap_or_default().to_owned(),
        expires_at: facts["expires_at"].as_str().unwrap_or_default().to_owned(),
        token: token.to_owned(),
    })
}

/// A new token, which a person confirms in the console.
fn token_from_browser(
    arguments: &LoginArguments,
    installation: &Installation,
    environment: &Environment,
) -> Result<CommandToken> {
    let mut page = installation.at(&["account", "command"])?;
    let request = BrowserRequest {
        browser: (!arguments.no_browser)
            .then(|| environment.get("BROWSER").cloned().unwrap_or_default()),
        within: Duration::from_secs(arguments.sign_in_timeout),
    };
    let with_facts = |facts: &PageFacts| {
        page.query_pairs_mut()
            .append_pair("port", &facts.port.to_string())
            .append_pair("state", &facts.state)
            .append_pair("challenge", &facts.challenge)
            .append_pair("name", &machine(environment))
            .extend_pairs(arguments.workspace.iter().map(|slug| ("workspace", slug)));
        page
    };
    let say = |text: &str| eprintln!("portolan login: {text}");
    let code = installation.wait(code_from_browser(&request, say, with_facts))?;
    match redeem(installation, &code) {
        Ok(token) => {
            installation.wait(code.succeed());
            Ok(token)
        }
        Err(error) => {
            installation.wait(code.fail());
            Err(error)
        }
    }
}

fn redeem(installation: &Installation, code: &CommandCode) -> Result<CommandToken> {
    let url = installation.at(&["account", "command", "token"])?;
    let mut request = EgressRequest::new(Method::POST, url);
    request.headers = json_headers();
    let body = json!({"code": code.code, "code_verifier": code.verifier});
    request.body = body.to_string().into();
    let answer: Value = serde_json::from_str(&installation.send(request)?)?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Ok(CommandToken {
        url: String::new(),
        name: text(&answer["token"]["name"]).unwrap_or_default(),
        expires_at: text(&answer["token"]["expires_at"]).unwrap_or_default(),
        token: text(&answer["secret"]).context("the service answered without a token")?,
    })
}

/// The name of this machine, for the person who reads the page.
fn machine(environment: &Environment) -> String {
    let of_system = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let of_program = || {
        let output = std::process::Command::new("hostname").output().ok()?;
        String::from_utf8(output.stdout).ok()
    };
    let named = environment.get("COMPUTERNAME").cloned();
    let name = named.or_else(of_system).or_else(of_program);
    let name = name.unwrap_or_default();
    let plain = name.trim().chars().filter(|sign| !sign.is_control());
    let name: String = plain.take(LONGEST_NAME).collect();
    if name.is_empty() {
        "a machine without a name".to_owned()
    } else {
        name
    }
}
