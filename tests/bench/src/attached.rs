//! What `portolan attach` adds to a call: one MCP server, called by its address and over the
//! connection of the program, turn about.

use std::time::Duration;

use anyhow::{Context, Result};
use portolan_tests::attached::{self, Attach};

use crate::{
    Arguments,
    access::Access,
    figure::{Bar, Figure, Table},
    load::{Load, permille},
    process::{Server, memory},
    scene::Alone,
};

/// One call of a round for so many calls of the other scenes, which make them on many connections.
const SHARE: usize = 10;

/// Durations of calls one after the other, by percentile, and the memory of the program.
pub(crate) async fn measure(arguments: &Arguments, table: &mut Table) -> Result<()> {
    let server = Server::start(&["mcp"])?;
    let alone = Alone::before(server.address).await?;
    let console = alone.owner.console();
    let added = attached::add(&console, "bench", "near").await?;
    let program = Attach::url(&added, &format!("http://{}/mcp", server.address))?;
    let attached = added.attached(&console, 1).await;
    attached.with_context(|| program.log())?;
    let tools = console.tool_ids("bench", &added.source_id).await?;
    let published = console
        .publish("bench", "near", &added.source_id, tools)
        .await?;
    let tokens = alone.client.authorize(&alone.owner, &published.url).await?;
    let far = Access::new(&published.url, &published.url, &tokens.access)?;

    let mut sides = Vec::new();
    for access in [&alone.access, &far] {
        let session = access.sessions(1).await?.remove(0);
        let calls = vec![access.call(&session)];
        sides.push((Load::new(access.address, calls, "NOBGO"), Vec::new()));
    }
    for round in 0..arguments.rounds {
        for (load, times) in &mut sides {
            let took = load.run(arguments.calls / SHARE).await?;
            // The first round opens connections, and is not measured.
            if round > 0 {
                times.extend(took);
            }
        }
    }
    let [(_, direct), (_, attached)] = sides.as_mut_slice() else {
        anyhow::bail!("two sides");
    };
    for (rank, name, bar) in [(500, "p50", 2.0), (990, "p99", 2.0)] {
        let (ours, bare) = (permille(attached, rank)?, permille(direct, rank)?);
        let millis = |time: Duration| time.as_secs_f64() * 1000.0;
        let added = millis(ours) - millis(bare);
        table.add(Figure {
            what: format!("a call through attach : the same server by its address, {name}"),
            seen: millis(ours) / millis(bare),
            unit: "",
            bar: Bar::AtMost(bar),
            note: format!(
                "{:.2} ms, {:.2} ms by its address: {added:.2} ms more",
                millis(ours),
                millis(bare)
            ),
        });
    }
    table.add(Figure {
        what: "memory of portolan attach after these calls".to_owned(),
        seen: memory(program.process.id()).await? / 1_048_576.0,
        unit: "MiB",
        bar: Bar::AtMost(40.0),
        note: String::new(),
    });
    Ok(())
}
