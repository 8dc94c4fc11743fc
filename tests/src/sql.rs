//! Questions to Postgres past the service: what an operator types at its prompt.

use std::path::Path;

use anyhow::{Context, Result, bail};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    net::UnixStream,
};

/// The third version of the protocol between clients and Postgres.
const PROTOCOL: i32 = 196_608;

/// A connection in the role of the service that sees every tenant.
#[derive(Debug)]
pub struct Sql {
    // An answer is several small messages, which come together.
    stream: BufReader<UnixStream>,
}

impl Sql {
    /// Connects over the socket in this folder, by the trust that a data folder of `portolan dev` has in who can reach it.
    pub async fn connect(folder: &Path, user: &str, database: &str) -> Result<Self> {
        let stream = UnixStream::connect(folder.join(".s.PGSQL.5432")).await?;
        let mut stream = BufReader::new(stream);
        let mut body = PROTOCOL.to_be_bytes().to_vec();
        for word in ["user", user, "database", database] {
            body.extend(word.as_bytes());
            body.push(0);
        }
        body.push(0);
        let length = i32::try_from(body.len() + 4)?;
        stream.write_all(&length.to_be_bytes()).await?;
        stream.write_all(&body).await?;
        let mut sql = Self { stream };
        sql.answer().await?;
        sql.ask("set role portolan_core").await?;
        Ok(sql)
    }

    /// Carries out one or several statements in one transaction. Answers the rows of all, `null` as an empty text.
    pub async fn ask(&mut self, statements: &str) -> Result<Vec<Vec<String>>> {
        let mut message = vec![b'Q'];
        message.extend(i32::try_from(statements.len() + 5)?.to_be_bytes());
        message.extend(statements.as_bytes());
        message.push(0);
        self.stream.write_all(&message).await?;
        self.answer()
            .await
            .with_context(|| format!("asked: {statements}"))
    }

    /// Everything up to the point at which Postgres takes the next question.
    async fn answer(&mut self) -> Result<Vec<Vec<String>>> {
        let (mut rows, mut error) = (Vec::new(), None);
        loop {
            let kind = self.stream.read_u8().await?;
            let length = usize::try_from(self.stream.read_i32().await?)?;
            let mut body = vec![0; length.checked_sub(4).context("a length")?];
            self.stream.read_exact(&mut body).await?;
            match kind {
                b'Z' => return error.map_or(Ok(rows), Err),
                b'R' if body != [0; 4] => bail!("Postgres wants a password"),
                b'E' => error = Some(anyhow::anyhow!("{}", String::from_utf8_lossy(&body))),
                b'D' => rows.push(row(&body)?),
                _ => {}
            }
        }
    }
}

fn row(body: &[u8]) -> Result<Vec<String>> {
    let (count, mut rest) = body.split_first_chunk::<2>().context("a row")?;
    let mut values = Vec::new();
    for _ in 0..i16::from_be_bytes(*count) {
        let (length, after) = rest.split_first_chunk::<4>().context("a value")?;
        // -1 is null.
        let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
        let (value, after) = after.split_at_checked(length).context("a whole value")?;
        values.push(String::from_utf8_lossy(value).into_owned());
        rest = after;
    }
    Ok(values)
}
