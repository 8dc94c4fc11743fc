//! The outside of a node in this process: names answer as a test tells them to, every address leads to one server, and what was dialled
//! is written down. Metadata documents may be at port 443 of a public name alone, so that nothing nearer to the machine will do.

use std::{
    collections::{HashMap, VecDeque},
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
};

use portolan_net::{
    egress::{Authorities, Egress, EgressPolicy, Network},
    resolve::{BoxFuture, Dial, Resolve},
};
use tokio::net::TcpStream;

use crate::https::HttpsServer;

/// Where every name is that was told nothing else.
pub(crate) const PUBLIC: &str = "93.184.216.34";

pub(crate) struct Internet {
    leads_to: SocketAddr,
    told: Mutex<HashMap<String, VecDeque<Vec<IpAddr>>>>,
    dialled: Mutex<Vec<String>>,
}

impl Internet {
    /// One in which there is this server and nothing else.
    pub(crate) fn of(server: &HttpsServer) -> Arc<Self> {
        Arc::new(Self {
            leads_to: server.address(),
            told: Mutex::default(),
            dialled: Mutex::default(),
        })
    }

    /// A client on it, which believes the authority of the server.
    pub(crate) fn egress(self: &Arc<Self>, server: &HttpsServer) -> Egress {
        let policy = EgressPolicy {
            authorities: Authorities::from_pem(server.authority()).unwrap(),
            ..EgressPolicy::default()
        };
        let network = Network {
            resolver: Arc::clone(self) as _,
            dialer: Arc::clone(self) as _,
        };
        Egress::with_network(policy, network).unwrap()
    }

    /// What a name answers, question after question; the last answer stays.
    pub(crate) fn tell(&self, name: &str, answers: &[&[&str]]) {
        let answers = answers
            .iter()
            .map(|answer| answer.iter().map(|ip| ip.parse().unwrap()).collect())
            .collect();
        self.told.lock().unwrap().insert(name.to_owned(), answers);
    }

    /// Addresses that were dialled, in order.
    pub(crate) fn dialled(&self) -> Vec<String> {
        self.dialled.lock().unwrap().clone()
    }
}

impl Resolve for Internet {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let mut told = self.told.lock().unwrap();
        let answer = match told.get_mut(name) {
            Some(answers) if answers.len() > 1 => answers.pop_front().unwrap(),
            Some(answers) => answers[0].clone(),
            None => vec![PUBLIC.parse().unwrap()],
        };
        Box::pin(async move { Ok(answer) })
    }
}

impl Dial for Internet {
    fn dial(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>> {
        self.dialled.lock().unwrap().push(address.to_string());
        Box::pin(TcpStream::connect(self.leads_to))
    }
}
