// The workspace as a file: shown, copied, downloaded, and applied through the API; the objects that the file owns say so,
// and each shows its part of the file; light, dark and on a phone.
import { readFile } from "node:fs/promises";
import { base, check, clipboard, eventually, lookEverywhere, picture, tabTo, walkWithTab } from "./chromium.mjs";
import { ask, button, open, publish, startApi } from "./harbour.mjs";

const { context, page, end } = await open();
await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: base });
const api = await startApi(Number(process.env.PORT));
const ws = "/workspaces/harbour";
const address = `${base}/w/harbour/configuration`;
const file = page.getByRole("region", { name: "The workspace as YAML" });
const dialog = page.getByRole("dialog");

await page.goto(address);
await file.getByText("name: harbour").waitFor();
await page.getByText(/^No file owns an object of this workspace/).waitFor();
await lookEverywhere(page, "150-configuration-empty");

const published = await publish(page, api);
const prompt = await ask(page, "POST", `${ws}/prompts`, {
  name: "greet_captain", arguments: [{ name: "ship", required: true }],
  messages: [{ role: "user", content: { type: "text", text: "Welcome the captain of {{ship}}." } }],
});

// The file: what is shown is what is copied, saved, and answered to programs.
await page.goto(address);
await file.getByText("slug: berths").waitFor();
const exported = await page.evaluate(async () => (await fetch("/api/v1/workspaces/harbour/configuration?format=yaml")).text());
check((await file.locator("code").textContent()) === exported.trimEnd(), "the page shows the export", exported);
check(exported.includes("vault:Harbour API") && !exported.includes("harbour-api-token"), "the file refers to the secret", exported);
const numbers = (await file.locator("pre").first().textContent()).split("\n");
check(numbers.length === exported.trimEnd().split("\n").length, "each line has its number", numbers.length);
await button("Copy the file", page).click();
await page.getByText("Copied", { exact: true }).first().waitFor();
check((await clipboard(page, "a text is copied")) === exported, "the whole file is copied");
const downloading = page.waitForEvent("download");
await button("Download", page).click();
const download = await downloading;
check(download.suggestedFilename() === "portolan.yaml", "the file has its name", download.suggestedFilename());
check((await readFile(await download.path(), "utf8")) === exported, "the whole file is saved");

/** Plans and applies the export under the name of a file. */
async function apply() {
  const bundle = exported.replace(/^name: .*$/m, "name: harbour-prod");
  const plan = await ask(page, "POST", `${ws}/configuration/plans`, { bundle });
  await ask(page, "POST", `${ws}/configuration/plans/${plan.id}/apply`, { meta: { commit: "1a2b3c" } });
  return plan;
}

const first = await apply();
check(first.changes.length === 0 && first.claimed === 3, "the file takes over the objects and changes none", first);
await page.goto(address);
const owned = page.getByRole("table", { name: "Objects that files own" });
await owned.getByText("harbour-prod").first().waitFor();
await eventually(() => owned.locator("tbody tr").count(), (count) => count === 3, "the page lists what the file owns");
await page.getByText("harbour-prod owns 3 objects.").waitFor();
check(true, "the page counts what the file owns");
await lookEverywhere(page, "151-configuration");
await picture(page, "configuration", 1080);
await walkWithTab(page, "configuration");

// A server: the badge says what it means, by keyboard too, and the part of the file opens over the page.
await owned.getByRole("link", { name: "Berths" }).click();
await page.getByRole("heading", { level: 1, name: "Berths" }).waitFor();
const badge = page.getByRole("link", { name: "Managed by harbour-prod" });
await tabTo(page, badge, "the badge of the file");
const tooltip = page.getByRole("tooltip");
await tooltip.waitFor();
check((await tooltip.textContent()).includes("overwrites changes that are made here"), "the badge warns of the next apply", await tooltip.textContent());
await tabTo(page, button("Show as YAML", page), "the button of the YAML");
await tooltip.waitFor({ state: "hidden" });
await lookEverywhere(page, "152-managed-server");
await page.keyboard.press("Enter");
const part = dialog.getByRole("region", { name: "This server as YAML" });
await part.getByText("slug: berths").waitFor();
const text = await part.locator("code").textContent();
check(text.startsWith("servers:\n  - slug: berths\n") && !text.includes("sources:"), "the part has this server alone", text);
await lookEverywhere(page, "153-server-yaml");
await page.keyboard.press("Escape");
await dialog.waitFor({ state: "hidden" });
await badge.click();
await page.waitForURL(address);

// Its source and a prompt are owned as well.
await page.goto(`${base}/w/harbour/sources/${published.source}`);
await badge.waitFor();
await button("Show as YAML", page).click();
const ofSource = dialog.getByRole("region", { name: "This source as YAML" });
await ofSource.getByText("vault:Harbour API").waitFor();
check(!(await ofSource.textContent()).includes("harbour-api-token"), "the part of a source has no secret");
await button("Close", dialog).click();
await dialog.waitFor({ state: "hidden" });
await lookEverywhere(page, "154-managed-source");
await page.goto(`${base}/w/harbour/prompts/${prompt.id}`);
await badge.waitFor();
await lookEverywhere(page, "155-managed-prompt");

// The badge is right: the next apply overwrites a change that was made here.
const { items } = await ask(page, "GET", `${ws}/servers`);
await ask(page, "PATCH", `${ws}/servers/${items[0].id}`, { description: "Changed by hand" });
await page.goto(`${base}/w/harbour/servers/${items[0].id}`);
await page.getByText("Changed by hand").first().waitFor();
const second = await apply();
check(second.changes.length === 1 && second.changes[0].key === "berths", "the change differs from the file", second);
await page.reload();
await badge.waitFor();
await eventually(() => page.getByText("Changed by hand").count(), (count) => count === 0, "the apply overwrote the change");

await end();
