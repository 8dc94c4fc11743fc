//! A simulated internet for a node in this process: names resolve as a test sets them, every
//! address leads to one server, and dialled addresses are recorded. Metadata documents must be at
//! port 443 of a public name, so a loopback server alone is not enough.

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

/// The address of every name without an entry.
pub(crate) const PUBLIC: &str = "93.184.216.34";

pub(crate) struct Internet {
    leads_to: SocketAddr,
    told: Mutex<HashMap<String, VecDeque<Vec<IpAddr>>>>,
    dialled: Mutex<Vec<String>>,
}

impl Internet {
    /// An internet with this server and no other.
    pub(crate) fn of(server: &HttpsServer) -> Arc<Self> {
        Arc::new(Self {
            leads_to: server.address(),
            told: Mutex::default(),
            dialled: Mutex::default(),
        })
    }

    /// A client in it, which trusts the server's certificate authority.
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

    /// Sets a name's answers, query after query; the last answer stays.
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
