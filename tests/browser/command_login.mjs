// `portolan login` and its page: the command opens the page in the browser, a person cancels by keyboard and then confirms,
// the commands work with the stored token, and `portolan logout` ends it; light, dark and on a phone.
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { base, check, eventually, look, lookEverywhere, picture, tabTo, walkWithTab } from "./chromium.mjs";
import { ask, button, open } from "./harbour.mjs";

const { EMAIL, PATH, PORTOLAN_PROGRAM } = process.env;
const home = mkdtempSync(join(tmpdir(), "portolan-login-"));
const running = new Set();
process.on("exit", () => {
  for (const child of running) child.kill();
  rmSync(home, { recursive: true, force: true });
});

// The browser of the machine keeps the address that it is given; Chromium opens it.
const opened = join(home, "opened");
const browser = join(home, "browser.sh");
writeFileSync(browser, `#!/bin/sh\nprintf %s "$1" > "${opened}.new" && mv "${opened}.new" "${opened}"\n`, { mode: 0o755 });
const env = { HOME: home, PATH, BROWSER: browser, COMPUTERNAME: "ann-laptop", PORTOLAN_URL: base, PORTOLAN_WORKSPACE: "harbour" };

/** A command to its end: its exit code, and what it wrote. */
function run(...words) {
  return new Promise((resolve) => {
    const child = execFile(PORTOLAN_PROGRAM, words, { env, cwd: home }, (error, stdout, stderr) => {
      running.delete(child);
      resolve({ code: error ? error.code : 0, stdout, stderr });
    });
    running.add(child);
  });
}

/** A sign-in that waits for its page: the address that it opens, the port of its answer, and its end. */
async function login() {
  rmSync(opened, { force: true });
  const ended = run("login");
  const text = await eventually(() => existsSync(opened) && readFileSync(opened, "utf8"), Boolean, "the command opens its page in the browser");
  const address = new URL(text);
  check(address.origin === base && address.pathname === "/account/command", "it is a page of the console", text);
  return { address: text, port: address.searchParams.get("port"), ended };
}

const { page, end } = await open();
const title = page.getByRole("heading", { name: "Sign in a command" });
const isSilent = ({ stdout, stderr }) => !`${stdout}${stderr}`.includes("ptlp_");
await ask(page, "POST", "/workspaces/harbour/servers", { name: "Berths", slug: "berths", tool_ids: [] });

await page.goto(`${base}/account/command`);
await page.getByRole("heading", { name: "No command is waiting" }).waitFor();
await lookEverywhere(page, "160-command-none");

// The page shows the request; the person cancels.
const first = await login();
await page.goto(first.address);
await title.waitFor();
const asked = await page.getByRole("main").textContent();
for (const part of ["portolan login", "ann-laptop", EMAIL, `127.0.0.1:${first.port}`, "registry:write, credentials:write, workspace:read, webhooks:write", "never with more than your role"]) {
  check(asked.includes(part), `the page shows ${part}`, asked);
}
const workspace = await page.getByRole("combobox", { name: "Workspace" }).inputValue();
check(workspace === "Harbour Works", "the workspace of the command is chosen", workspace);
await lookEverywhere(page, "161-command");
await picture(page, "command-login");
await walkWithTab(page, "the page of a command");
await tabTo(page, button("Cancel", page), "the button that cancels");
await page.keyboard.press("Enter");
await page.getByText("The sign-in was cancelled. You can close this page.").waitFor();
check(new URL(page.url()).host === `127.0.0.1:${first.port}`, "the browser is at the port of the command", page.url());
await lookEverywhere(page, "162-command-cancelled");
const cancelled = await first.ended;
check(cancelled.code === 1 && cancelled.stderr.includes("the sign-in was cancelled in the browser"), "the command says that it was cancelled", cancelled);
const without = await run("export");
check(without.code === 1 && without.stderr.includes("portolan login"), "a command without a token names the sign-in", without);

// A confirmation.
const second = await login();
await page.goto(second.address);
await title.waitFor();
await tabTo(page, button("Sign in the command", page), "the button that confirms");
await page.keyboard.press("Enter");
await page.getByText("You are signed in. You can close this page.").waitFor();
await look(page, "163-command-signed-in");
const signedIn = await second.ended;
check(signedIn.code === 0 && signedIn.stdout.startsWith("You are signed in until "), "the command says that it is signed in", signedIn);
check(isSilent(signedIn) && !page.url().includes("ptlp_"), "the token is shown nowhere", [signedIn, page.url()]);
const status = await run("login", "--status");
check(status.code === 0 && [EMAIL, "portolan on ann-laptop", "harbour", "webhooks:write"].every((part) => status.stdout.includes(part)), "the status names person, machine, workspace and scopes", status);

// The commands use the token.
const file = await run("export");
check(file.code === 0 && file.stdout.includes("slug: berths"), "export uses the token", file);
writeFileSync(join(home, "portolan.yaml"), file.stdout);
const none = await run("plan");
check(none.code === 0, "the plan of the export is empty", none);
writeFileSync(join(home, "portolan.yaml"), file.stdout.replace("slug: berths", "slug: quays"));
const some = await run("plan");
check(some.code === 2 && some.stdout.includes("quays"), "the plan of a change names it", some);

// The token stands among the person's, and logout ends it.
await page.goto(`${base}/account/access-tokens`);
await page.getByRole("table", { name: "Access tokens" }).getByText("portolan on ann-laptop").waitFor();
const out = await run("logout");
check(out.code === 0 && out.stdout.includes("You are signed out."), "the command signs out", out);
await page.reload();
await page.getByRole("heading", { name: "No access tokens" }).waitFor();
const after = await run("export");
check(after.code === 1 && after.stderr.includes("portolan login"), "no command works any more", after);

await end();
