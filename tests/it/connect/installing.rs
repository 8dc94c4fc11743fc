//! `portolan connect --install`: the configuration files of clients.

use std::fs;

use anyhow::{Result, ensure};
use portolan_tests::stack::binary;
use serde_json::{Value, json};

use portolan_tests::connected::Home;

const URL: &str = "https://mcp.example.com/t/acme/tools/mcp";

async fn install(home: &Home, arguments: &[&str]) -> Result<String> {
    let mut all = vec![URL, "--install"];
    all.extend(arguments);
    let done = home.command(&all).output().await?;
    let said = String::from_utf8(done.stdout)?;
    ensure!(
        done.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&done.stderr)
    );
    Ok(said)
}

#[tokio::test]
async fn each_client_gets_its_entry_and_keeps_everything_else() -> Result<()> {
    let program = binary();
    let program = program.to_str().unwrap_or_default();
    let old = "{\n  // mine\n  \"other\": {\"a\": 1},\n  \"SECTION\": {\n    \"old\": {\"command\": \"x\"},\n  },\n}\n";
    for (client, path, section) in [
        (
            "claude-desktop",
            "config/Claude/claude_desktop_config.json",
            "mcpServers",
        ),
        ("cursor", ".cursor/mcp.json", "mcpServers"),
        ("vscode", "config/Code/User/mcp.json", "servers"),
        ("gemini", ".gemini/settings.json", "mcpServers"),
    ] {
        // A new file.
        let home = Home::new()?;
        let said = install(&home, &[client]).await?;
        let file = home.path().join(path);
        ensure!(said.contains(&*file.to_string_lossy()), "{client}: {said}");
        let written: Value = serde_json::from_slice(&fs::read(&file)?)?;
        let entry = &written[section]["mcp-example-com"];
        ensure!(entry["command"] == program, "{client}: {written}");
        ensure!(
            entry["args"] == json!(["connect", URL]),
            "{client}: {written}"
        );

        // A file with something in it.
        let before = old.replace("SECTION", section);
        fs::write(&file, &before)?;
        let dry = install(&home, &[client, "--name", "acme", "--dry-run"]).await?;
        ensure!(dry.contains("Nothing was written") && fs::read_to_string(&file)? == before);
        let said = install(&home, &[client, "--name", "acme", "--api-key", "mcpk_1"]).await?;
        ensure!(
            !said.contains("mcpk_1") && said.contains("Backup: "),
            "{said}"
        );
        let after = fs::read_to_string(&file)?;
        ensure!(
            after.contains("// mine\n  \"other\": {\"a\": 1},"),
            "{after}"
        );
        ensure!(after.contains("\"old\": {\"command\": \"x\"},"), "{after}");
        ensure!(
            after.contains("\"PORTOLAN_API_KEY\": \"mcpk_1\""),
            "{after}"
        );
        let folder = file.parent().unwrap_or(home.path());
        let backups = fs::read_dir(folder)?.flatten().filter(|found| {
            found
                .file_name()
                .to_string_lossy()
                .contains(".before-portolan-")
        });
        let kept: Vec<_> = backups
            .map(|found| fs::read_to_string(found.path()))
            .collect();
        ensure!(
            matches!(&kept[..], [Ok(text)] if *text == before),
            "{client}: {kept:?}"
        );
        let again = install(&home, &[client, "--name", "acme", "--api-key", "mcpk_1"]).await?;
        ensure!(again.contains("nothing changes") && fs::read_to_string(&file)? == after);
    }
    Ok(())
}

#[tokio::test]
async fn codex_gets_its_table_and_keeps_everything_else() -> Result<()> {
    let home = Home::new()?;
    let file = home.path().join(".codex/config.toml");
    fs::create_dir_all(home.path().join(".codex"))?;
    let before = "# mine\nmodel = \"x\"\n\n[mcp_servers.old]\ncommand = 'y'\n";
    fs::write(&file, before)?;
    install(&home, &["codex"]).await?;
    let after = fs::read_to_string(&file)?;
    ensure!(after.starts_with(before), "{after}");
    let read: toml::Table = after.parse()?;
    let entry = &read["mcp_servers"]["mcp-example-com"];
    ensure!(
        entry["args"]
            .as_array()
            .is_some_and(|words| words.len() == 2),
        "{after}"
    );
    Ok(())
}

#[tokio::test]
async fn a_file_that_no_client_reads_is_left_alone() -> Result<()> {
    let home = Home::new()?;
    let file = home.path().join("broken.json");
    fs::write(&file, "{ not json")?;
    let done = home
        .command(&[
            URL,
            "--install",
            "cursor",
            "--client-config",
            &file.to_string_lossy(),
        ])
        .output()
        .await?;
    ensure!(done.status.code() == Some(1));
    ensure!(fs::read_to_string(&file)? == "{ not json");
    Ok(())
}
