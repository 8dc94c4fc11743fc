//! The loopback port on which the browser comes back (RFC 8252 §7.3).

use std::{io, net::Ipv4Addr, time::Duration};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use portolan_upstream::oauth::Callback;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use url::form_urlencoded;

/// The path of the callback.
const PATH: &str = "/callback";
/// Longest head of a request, in bytes.
const LONGEST: usize = 32 * 1024;
/// Time for a browser to send it.
const SLOW: Duration = Duration::from_secs(10);
/// Most connections that are read at once.
const AT_ONCE: usize = 16;

/// A port that waits for the browser.
#[derive(Debug)]
pub(crate) struct Callbacks {
    listener: TcpListener,
    port: u16,
}

/// The browser that came back with the right `state`, and waits for a page.
#[derive(Debug)]
pub(crate) struct Returned {
    pub(crate) callback: Callback,
    stream: TcpStream,
}

impl Callbacks {
    /// Opens the port `wanted`; where that is taken, any other, unless it is `fixed`.
    pub(crate) async fn open(fixed: Option<u16>, wanted: Option<u16>) -> io::Result<Self> {
        let at = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let listener = match at(wanted.unwrap_or(0)).await {
            Err(_) if fixed.is_none() && wanted.is_some() => at(0).await?,
            outcome => outcome?,
        };
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    /// The port.
    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// The address for the authorization request.
    pub(super) fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Waits for the browser. A request with another `state` is refused, and the wait goes on.
    pub(crate) async fn next(&mut self, state: &str) -> io::Result<Returned> {
        // Browsers open spare connections and send nothing on them: each is read beside the others.
        let mut reading = FuturesUnordered::new();
        loop {
            let read = tokio::select! {
                accepted = self.listener.accept(), if reading.len() < AT_ONCE => {
                    let (stream, _) = accepted?;
                    reading.push(timeout(SLOW, request(stream)));
                    continue;
                }
                Some(read) = reading.next() => read,
            };
            let Ok(Ok(Some((mut stream, target)))) = read else {
                continue;
            };
            let (path, query) = target.split_once('?').unwrap_or((&target, ""));
            if path != PATH {
                page(&mut stream, "404 Not Found", "There is nothing here.").await;
                continue;
            }
            let mut callback = Callback::default();
            let mut given = None;
            for (name, value) in form_urlencoded::parse(query.as_bytes()) {
                match name.as_ref() {
                    "state" => given = Some(value.into_owned()),
                    "code" => callback.code = Some(value.into_owned()),
                    "error" => callback.error = Some(value.into_owned()),
                    "iss" => callback.iss = Some(value.into_owned()),
                    _ => {}
                }
            }
            let is_ours = given.is_some_and(|given| {
                // Digests, so that the time of the comparison says nothing.
                let digest = |text: &str| portolan_keys::digest(text.as_bytes());
                portolan_keys::digests_equal(&digest(&given), &digest(state))
            });
            if is_ours {
                return Ok(Returned { callback, stream });
            }
            let text = "This page belongs to another sign-in. Start again.";
            page(&mut stream, "400 Bad Request", text).await;
        }
    }
}

/// How a sign-in ended, for the person in the browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    SignedIn,
    /// The person refused.
    Cancelled,
    Failed,
}

impl Ending {
    const fn page(self) -> (&'static str, &'static str) {
        match self {
            Self::SignedIn => ("200 OK", "You are signed in. You can close this page."),
            Self::Cancelled => (
                "400 Bad Request",
                "The sign-in was cancelled. You can close this page.",
            ),
            Self::Failed => (
                "400 Bad Request",
                "The sign-in failed. The program that asked for it has the reason.",
            ),
        }
    }
}

impl Returned {
    /// Shows the person how it ended.
    pub(crate) async fn show(mut self, ending: Ending) {
        let (status, text) = ending.page();
        page(&mut self.stream, status, text).await;
    }
}

/// Reads the head of a request; gives the connection and the target of a GET.
async fn request(mut stream: TcpStream) -> io::Result<Option<(TcpStream, String)>> {
    let mut read = Vec::with_capacity(2048);
    while !read.windows(4).any(|end| end == b"\r\n\r\n") {
        if read.len() > LONGEST || stream.read_buf(&mut read).await? == 0 {
            return Ok(None);
        }
    }
    let line = read.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    Ok(match (words.next(), words.next()) {
        (Some("GET"), Some(target)) => Some((stream, target.to_owned())),
        _ => None,
    })
}

async fn page(stream: &mut TcpStream, status: &str, text: &str) {
    let body = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Portolan</title>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">\
         <body style=\"font-family:system-ui,sans-serif;\
         margin:0 auto;padding:3rem 1rem;max-width:32rem\">\
         <main><h1>Portolan</h1><p>{text}</p></main></body></html>"
    );
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n\
         Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    );
    // The browser may be gone.
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_spare_connection_does_not_delay_the_callback() {
        let mut callbacks = Callbacks::open(None, None).await.unwrap();
        let address = (Ipv4Addr::LOCALHOST, callbacks.port);
        let _spare = TcpStream::connect(address).await.unwrap();
        let mut browser = TcpStream::connect(address).await.unwrap();
        let head = "GET /callback?state=ours&code=c1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
        browser.write_all(head.as_bytes()).await.unwrap();
        let returned = timeout(SLOW / 2, callbacks.next("ours")).await.unwrap();
        assert_eq!(returned.unwrap().callback.code.as_deref(), Some("c1"));
    }
}
