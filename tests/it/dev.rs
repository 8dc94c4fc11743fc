//! `portolan dev`, started as `make run` starts it: data that stays, ports that are taken, signals.

use std::{
    net::TcpListener,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use portolan_tests::{
    person::Person,
    stack::{ANY_PORT, Process, Stack, command, run_to_end},
};
use tempfile::TempDir;

const SOON: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_second_start_takes_seconds_and_keeps_everything() -> Result<()> {
    let data = TempDir::with_prefix("portolan-dev-")?;
    let environment = [("PORTOLAN_PASSWORD_COST".to_owned(), "test".to_owned())];
    let mut first = Process::start(data.path(), &environment)?;
    let ann = Person::new(first.url(), "ann")?;
    let page = ann.send_sign_up().await?;
    let code = ann.mailed_code().await?;
    ann.browser
        .submit(page.form_with("code")?.fill("code", &code))
        .await?;
    ann.console().create_workspace("harbour").await?;
    first.signal("INT")?;
    assert!(first.wait(SOON)?.success(), "Ctrl-C is a good end");
    assert!(!postgres_runs(data.path()), "no child is left");

    let began = Instant::now();
    let second = Process::start(data.path(), &environment)?;
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "the second start took {:?}",
        began.elapsed()
    );
    let again = Person {
        email: ann.email.clone(),
        password: ann.password.clone(),
        ..Person::new(second.url(), "x")?
    };
    let page = again.browser.open("/login").await?;
    again.sign_in(page).await?;
    let me = again.console().get("/me").await?;
    assert_eq!(me["workspaces"][0]["slug"], "harbour", "{me}");
    Ok(())
}

#[test]
fn a_second_instance_on_the_same_data_is_refused_and_the_first_goes_on() -> Result<()> {
    let stack = Stack::start()?;
    let second = command(stack.data(), ANY_PORT, ANY_PORT);
    let (status, output) = run_to_end(second, SOON)?;
    assert!(!status.success());
    assert!(
        output.contains("another `portolan dev`") && output.contains("--data"),
        "{output}"
    );
    assert!(
        postgres_runs(stack.data()),
        "the first one's database was not touched"
    );
    Ok(())
}

#[test]
fn a_port_that_is_taken_is_said_with_what_to_do() -> Result<()> {
    let taken = TcpListener::bind("127.0.0.1:0")?;
    let data = TempDir::with_prefix("portolan-dev-")?;
    let start = command(data.path(), taken.local_addr()?, ANY_PORT);
    let (status, output) = run_to_end(start, SOON)?;
    assert!(!status.success());
    assert!(
        output.contains(&taken.local_addr()?.to_string())
            && output.contains("in use")
            && output.contains("--listen"),
        "{output}"
    );
    Ok(())
}

#[test]
fn sigterm_stops_the_database_too_and_a_killed_one_is_recovered() -> Result<()> {
    let mut stack = Stack::start()?;
    let data = stack.data().to_owned();
    assert!(postgres_runs(&data));
    stack.process().signal("KILL")?;
    stack.process().wait(SOON)?;
    // The left-over database of the killed process is taken care of by the next start.
    let mut next = Process::start(&data, &[])?;
    next.signal("TERM")?;
    assert!(next.wait(SOON)?.success());
    assert!(!postgres_runs(&data), "no child is left");
    Ok(())
}

#[test]
fn an_unknown_setting_refuses_to_start() -> Result<()> {
    let data = TempDir::with_prefix("portolan-dev-")?;
    let mut start = command(data.path(), ANY_PORT, ANY_PORT);
    start.env("PORTOLAN_PAGE_SISE", "5");
    let (status, output) = run_to_end(start, SOON)?;
    assert!(!status.success());
    assert!(
        output.to_ascii_lowercase().contains("page_sise"),
        "{output}"
    );
    Ok(())
}

#[tokio::test]
async fn health_readiness_and_metrics_are_on_the_second_listener_alone() -> Result<()> {
    let stack = Stack::start()?;
    for path in ["/healthz", "/readyz", "/metrics"] {
        let answer = reqwest::get(stack.admin_url().join(path)?).await?;
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        let answer = reqwest::get(stack.url().join(path)?).await?;
        let is_page = answer
            .headers()
            .get("content-type")
            .is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
        assert!(
            !answer.status().is_success() || is_page,
            "{path} must not be public"
        );
    }
    Ok(())
}

/// Is there a live Postgres on this data folder?
fn postgres_runs(data: &Path) -> bool {
    let pid_file = data.join("postgres/data/postmaster.pid");
    let Ok(text) = std::fs::read_to_string(&pid_file) else {
        return false;
    };
    let Some(pid) = text
        .lines()
        .next()
        .and_then(|line| line.trim().parse::<u32>().ok())
    else {
        return false;
    };
    Command::new("kill")
        .args(["-0", &pid.to_string()])
        .status()
        .context("kill")
        .is_ok_and(|status| status.success())
}
