// Access tokens of a person, of a workspace and of a service account: made by keyboard, used by a program, refused beyond
// their scopes, and ended; light, dark and on a phone.
import { execFile } from "node:child_process";
import { base, check, eventually, focused, look, lookEverywhere, picture, tabTo, walkWithTab } from "./chromium.mjs";
import { button, open } from "./harbour.mjs";

const { page, end } = await open();
const dialog = page.getByRole("dialog");
const table = page.getByRole("table", { name: "Access tokens" });

/** A request of a program with a token, outside the browser. */
async function program(token, method, path, body) {
  const headers = { authorization: `Bearer ${token}`, ...(body && { "content-type": "application/json" }) };
  const answer = await fetch(`${base}/api/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
  return { status: answer.status, body: await answer.json().catch(() => undefined) };
}

/** Makes a token in the dialog that is open, with the keys of the keyboard: the secret. */
async function make(name, scope) {
  await dialog.getByLabel("Name").waitFor();
  await tabTo(page, dialog.getByLabel("Name"), "the name");
  await page.keyboard.type(name);
  check(await button("Create token", dialog).isDisabled(), "a token without a scope is not made");
  await tabTo(page, dialog.getByRole("checkbox", { name: scope }), "a scope");
  await page.keyboard.press("Space");
  await tabTo(page, dialog.getByLabel("Expires in (days)"), "the end");
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.type("30");
  await tabTo(page, button("Create token", dialog), "the button that creates");
  await page.keyboard.press("Enter");
  await dialog.getByText("Copy it now").waitFor();
  return dialog.getByRole("region", { name: "Access token", exact: true }).textContent();
}

async function revoke(name) {
  await tabTo(page, button(`Revoke ${name}`, page), "the button that revokes");
  await page.keyboard.press("Enter");
  await dialog.getByText(/are refused from their next request on/).waitFor();
  await look(page, `revoke-${name.toLowerCase().replaceAll(" ", "-")}`);
  await button("Revoke", dialog).click();
  await page.getByText(`${name} was revoked.`).waitFor();
}

// A person's own.
await page.goto(`${base}/account/access-tokens`);
await page.getByRole("heading", { name: "No access tokens" }).waitFor();
await lookEverywhere(page, "110-tokens-none");
await button("New access token", page).focus();
await page.keyboard.press("Enter");
await dialog.waitFor();
await lookEverywhere(page, "111-tokens-new");
const own = await make("Berth planner", "registry:read");
await look(page, "112-tokens-secret");
await button("Done", dialog).click();
await table.getByText("Berth planner").waitFor();
check(!(await page.content()).includes(own), "the token is not shown again");
await eventually(() => table.textContent(), (text) => text.includes("never"), "it was not used yet");
const about = await program(own, "GET", "/token");
check(about.status === 200 && about.body.scopes?.join() === "registry:read", "a program uses the token", about);
const read = await program(own, "GET", "/workspaces/harbour/servers");
check(read.status === 200 && Array.isArray(read.body.items), "it reads what its scope permits", read);
const beyond = await program(own, "GET", "/workspaces/harbour/audit");
check(beyond.status === 403 && beyond.body.error.code === "insufficient_scope", "it is refused beyond its scope", beyond);
await page.reload();
await table.getByText("Berth planner").waitFor();
await eventually(() => table.textContent(), (text) => !text.includes("never"), "the page says when it was used");
await lookEverywhere(page, "113-tokens");
await walkWithTab(page, "personal tokens");
await revoke("Berth planner");
await page.getByRole("heading", { name: "No access tokens" }).waitFor();
const ended = await program(own, "GET", "/token");
check(ended.status === 401, "a revoked token is refused", ended);

// The workspace's: with a role.
await page.goto(`${base}/w/harbour/keys`);
await page.getByRole("heading", { name: "No access tokens" }).waitFor();
await look(page, "114-keys-none");
await button("New access token", page).focus();
await page.keyboard.press("Enter");
// Escape drops the input and gives the focus back.
await dialog.getByLabel("Name").fill("Nightly");
await page.keyboard.press("Escape");
await dialog.waitFor({ state: "hidden" });
await focused(button("New access token", page), "Escape closes the dialog and gives the focus back");
await page.keyboard.press("Enter");
const shared = await make("Nightly plan", "registry:write");
await button("Done", dialog).click();
await table.getByText("Nightly plan").waitFor();
const seen = await program(shared, "GET", "/workspaces/harbour/servers");
check(seen.status === 200, "writing includes reading", seen);
const weak = await program(shared, "POST", "/workspaces/harbour/servers", { name: "Berths", slug: "berths", tool_ids: [] });
check(weak.status === 403 && weak.body.error.code === "forbidden", "the role of a viewer writes nothing", weak);
await page.reload();
await table.getByText("Nightly plan").waitFor();
await eventually(() => table.textContent(), (text) => text.includes("viewer"), "the role of the token is shown");
await lookEverywhere(page, "116-keys");
await table.scrollIntoViewIfNeeded();
await picture(page, "access-tokens");
await walkWithTab(page, "keys");
await revoke("Nightly plan");
check((await program(shared, "GET", "/token")).status === 401, "a revoked token of the workspace is refused");

// A service account's: with access, by the request that the dialog shows.
const accounts = page.getByRole("table", { name: "Service accounts" });
await button("New service account", page).click();
await dialog.getByLabel("Name").fill("Backup");
await button("Create account", dialog).click();
await dialog.getByText("Copy it now").waitFor();
const clientSecret = await dialog.getByRole("region", { name: "Client secret", exact: true }).textContent();
await button("Done", dialog).click();
await accounts.getByText("Management API: no access").waitFor();
const start = button("Management API access of Backup", page);
await tabTo(page, start, "the button of the access");
await page.keyboard.press("Enter");
await dialog.getByText(/for 15 minutes/).waitFor();
await page.keyboard.press("Escape");
await dialog.waitFor({ state: "hidden" });
await focused(start, "Escape closes the dialog and gives the focus back");
await page.keyboard.press("Enter");
await dialog.getByText(/for 15 minutes/).waitFor();
await lookEverywhere(page, "117-api-access-new");
await tabTo(page, dialog.getByRole("checkbox", { name: "registry:read" }), "a scope");
await page.keyboard.press("Space");
await tabTo(page, button("Give access", dialog), "the button that gives access");
await page.keyboard.press("Enter");
const request = dialog.getByRole("region", { name: "the request for a token" });
await request.waitFor();
await lookEverywhere(page, "118-api-access");
const command = await request.textContent();
const ran = await new Promise((resolve) => {
  const env = { PATH: process.env.PATH, CLIENT_SECRET: clientSecret };
  execFile("sh", ["-c", command], { env }, (error, stdout, stderr) => resolve({ code: error?.code ?? 0, stdout, stderr }));
});
check(ran.code === 0, "the request runs as it is shown", ran);
const given = JSON.parse(ran.stdout);
check(given.expires_in === 900 && given.scope === "registry:read", "the account gets a token", { ...given, access_token: "" });
const byAccount = await program(given.access_token, "GET", "/workspaces/harbour/servers");
check(byAccount.status === 200, "the token works", byAccount);
await tabTo(page, button("Remove access", dialog), "the button that removes");
await page.keyboard.press("Enter");
await dialog.getByText(/gets no more tokens/).waitFor();
await look(page, "119-api-access-remove");
await button("Remove access", dialog).last().click();
await page.getByText("Backup has no access to the management API.").waitFor();
check((await program(given.access_token, "GET", "/token")).status === 401, "its token ended with the access");
await accounts.getByText("Management API: no access").waitFor();
await walkWithTab(page, "keys with a service account");

await page.goto(`${base}/w/harbour/audit`);
await page.getByText(/token.*revoked|revoked.*token/i).first().waitFor();
check(true, "the audit log knows the end of the token");

await end();
