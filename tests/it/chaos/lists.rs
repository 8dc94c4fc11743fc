//! Lists that change, and their listeners (TEST-C10): in sessions, with the id of the last event
//! that they received, and without.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result};
use portolan_tests::{
    history::{History, What},
    mcp::{LEGACY, McpClient, Reply, modern_message},
    person::Person,
    sse::SseStream,
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{Dice, load::Access};

/// First word of the description, before the revision.
const REVISION: &str = "Revision";
/// How long a session is used before another one is begun.
const SESSION: Duration = Duration::from_secs(70);
/// The wait of a client before it reconnects, if the server gave no `retry`.
const RETRY: Duration = Duration::from_secs(1);

/// A person who changes lists in the console.
#[derive(Debug)]
pub(super) struct Editor {
    pub(super) owner: Person,
    /// Each is a workspace with one server, and one tool of it.
    pub(super) lists: Vec<(String, String)>,
    pub(super) history: History,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) dice: Dice,
}

impl Editor {
    /// Changes one of them every few seconds, and all of them at the end.
    pub(super) async fn work(mut self) -> Result<()> {
        let mut revision = 0;
        loop {
            sleep(Duration::from_millis(3_000 + self.dice.below(3_000))).await;
            let is_over = self.stop.load(Ordering::Relaxed);
            let one = usize::try_from(self.dice.below(self.lists.len() as u64))?;
            for place in 0..self.lists.len() {
                if is_over || place == one {
                    revision += 1;
                    self.change(place, revision).await;
                }
            }
            if is_over {
                return Ok(());
            }
        }
    }

    /// Postgres may be away: it is tried until the console confirms it.
    async fn change(&self, place: usize, revision: u64) {
        let (list, tool) = &self.lists[place];
        let path = format!("/workspaces/{list}/tools/{tool}");
        loop {
            self.history.add(What::Changing {
                list: list.clone(),
                revision,
            });
            let change = json!({"description": format!("{REVISION} {revision}")});
            let console = self.owner.console();
            let changed = console.expect(Method::PATCH, &path, Some(change)).await;
            if changed.is_ok() {
                break;
            }
            sleep(Duration::from_millis(500)).await;
        }
        self.history.add(What::Changed {
            list: list.clone(),
            revision,
        });
    }
}

/// A client that listens for changes of one list.
#[derive(Debug, Clone)]
pub(super) struct Listener {
    pub(super) name: String,
    pub(super) list: String,
    pub(super) access: Access,
    pub(super) history: History,
}

impl Listener {
    /// On the stream of a session, with the last id when it comes back.
    pub(super) async fn in_sessions(self) {
        let mut number = 0;
        loop {
            number += 1;
            // Without Redis there are no new sessions; the client comes back.
            if let Ok(session) = self.open().await {
                let one = Self {
                    name: format!("{}-{number}", self.name),
                    ..self.clone()
                };
                // A client that goes away without a word: its session ends by itself some day.
                if timeout(SESSION, one.until_it_is_gone(session))
                    .await
                    .is_err()
                {
                    one.leave();
                }
            }
            sleep(RETRY).await;
        }
    }

    async fn open(&self) -> Result<McpClient> {
        Ok(self.access.client()?.initialize(LEGACY).await?.0)
    }

    async fn until_it_is_gone(&self, mut session: McpClient) {
        let mut place: Option<String> = None;
        loop {
            let Ok(fresh) = session.with_token(&self.access.token()) else {
                return;
            };
            session = fresh;
            let reply = match &place {
                Some(id) => session.resume(id).await,
                None => session.hear().await,
            };
            let mut wait = RETRY;
            match reply {
                Ok(Reply::Stream(mut stream)) => {
                    self.follow(&mut stream, true, &session).await;
                    place = stream.last_id().map(str::to_owned).or(place);
                    wait = stream.retry().unwrap_or(RETRY);
                }
                // The stream has ended, and its ids are not good any more.
                Ok(Reply::Whole(answer)) if matches!(answer.status.as_u16(), 400 | 404) => return,
                _ => {}
            }
            sleep(wait).await;
        }
    }

    /// By `subscriptions/listen`.
    pub(super) async fn alone(self) {
        loop {
            if let Ok((mut stream, client)) = self.subscribe().await {
                self.follow(&mut stream, false, &client).await;
            }
            sleep(RETRY).await;
        }
    }

    async fn subscribe(&self) -> Result<(SseStream, McpClient)> {
        let client = self.access.client()?;
        let params = json!({"notifications": {"toolsListChanged": true}});
        let mut stream = client
            .modern_client("subscriptions/listen", &params)?
            .start(&modern_message("subscriptions/listen", params))
            .await?
            .stream()?;
        // The first event acknowledges the subscriptions.
        stream.message().await?;
        Ok((stream, client))
    }

    /// Records the events until the stream is over, and reads the list after each notification, as
    /// clients do.
    async fn follow(&self, stream: &mut SseStream, remembered: bool, client: &McpClient) {
        self.history.add(What::Listens {
            listener: self.name.clone(),
            list: self.list.clone(),
            remembered,
        });
        while let Ok(Some(event)) = stream.next().await {
            if event.message()["method"] == "notifications/tools/list_changed" {
                self.history.add(What::Told {
                    listener: self.name.clone(),
                    id: event.id,
                });
                // A failed read now says nothing about the list.
                let _ = read(&self.history, &self.list, client).await;
            }
        }
        self.leave();
    }

    fn leave(&self) {
        self.history.add(What::Left {
            listener: self.name.clone(),
        });
    }
}

/// Reads a list and writes down which one it is.
pub(super) async fn read(history: &History, list: &str, client: &McpClient) -> Result<()> {
    let answer = match client.header("mcp-session-id") {
        Some(_) => client.request("tools/list", json!({})).await?,
        None => client.modern("tools/list", json!({})).await?,
    };
    let tools = answer.json["result"]["tools"].as_array();
    let tools = tools.with_context(|| format!("{} {}", answer.status, answer.text))?;
    let revision = tools.iter().find_map(|tool: &Value| {
        let said = tool["description"].as_str()?.strip_prefix(REVISION)?;
        said.trim().parse().ok()
    });
    history.add(What::Listed {
        list: list.to_owned(),
        revision: revision.unwrap_or(0),
    });
    Ok(())
}
