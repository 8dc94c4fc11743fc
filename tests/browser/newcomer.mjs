// A newcomer in a real browser: account, workspace, import, credential, server, a first call, the snippet. Then the same pages on a phone.
import { base, check, clipboard, eventually, finish, launch, look, openContext, watch } from "./chromium.mjs";

const browser = await launch();
const context = await openContext(browser, { permissions: ["clipboard-read", "clipboard-write"] });
const faults = watch(context);
context.setDefaultTimeout(20_000);
const page = await context.newPage();
const button = (name) => page.getByRole("button", { name, exact: typeof name === "string" });

// Account. The code comes by mail, which the development server shows on a page.
await page.goto(`${base}/signup`);
await page.getByLabel("Your name").fill("Nora Newcomer");
await page.getByLabel("E-mail").fill("nora@example.com");
await page.getByLabel("Password").fill("anchovy tram lantern sixty");
await look(page, "01-sign-up");
const loaded = await page.evaluate(async () => {
  await document.fonts.ready;
  return [...document.fonts].filter((font) => font.status === "loaded").map((font) => font.family.replaceAll('"', ""));
});
check(["Inter Variable", "Source Serif 4"].every((family) => loaded.includes(family)), "the pages before the console load its fonts", loaded);
await button("Create account").click();
await page.getByLabel("8-digit code").waitFor();
await look(page, "02-check-your-mail");
const mailbox = await context.newPage();
await mailbox.goto(`${base}/dev/mail`);
await mailbox.locator(".mail-code").first().waitFor();
await look(mailbox, "03-mailbox");
check((await mailbox.locator(".mail").first().locator("a[href*='/verify?code=']").count()) === 1, "the message links to the page that takes the code");
const code = (await mailbox.locator(".mail-code").first().textContent()).replace(/\D/g, "");
await mailbox.close();
check(/^\d{8}$/.test(code), "the mail holds a code of eight digits", code);
await page.getByLabel("8-digit code").fill(code);
await button("Continue").click();

// Workspace.
await page.waitForURL((url) => !url.pathname.startsWith("/verify"));
const name = page.getByLabel(/^(Workspace name|Name)/);
await name.waitFor();
await name.fill("Harbour Works");
await look(page, "04-workspace");
await button(/Create workspace/).click();
await page.waitForURL((url) => url.pathname === "/" || url.pathname.startsWith("/w/"));
await page.waitForURL((url) => url.pathname.startsWith("/w/"));
const ws = new URL(page.url()).pathname.split("/")[2];
await page.getByRole("heading", { level: 1 }).waitFor();
await look(page, "05-overview-empty");

// A text that is no document, and the error for it.
await page.goto(`${base}/w/${ws}/sources/import`);
await page.getByRole("radio", { name: /Paste/ }).check();
await page.getByRole("textbox").first().fill('{"openapi": "3.1.0",\n "info": {');
await button("Preview tools").click();
await page.getByRole("alert").first().waitFor();
check(/line 2/i.test(await page.getByRole("alert").first().textContent()), "a broken document is refused with its line", await page.getByRole("alert").first().textContent());
await look(page, "06-import-refused");

// The demo API.
await page.goto(`${base}/w/${ws}/sources/import`);
await button("Preview tools").click();
await button(/Continue with \d+ tools/).waitFor();
await look(page, "07-import-tools");
await page.getByRole("checkbox").nth(2).click();
await button(/Continue with \d+ tools/).click();
await eventually(() => page.getByLabel("Key", { exact: true }).inputValue(), (key) => key === "harbour-demo-key", "the demo key is filled in");
await page.getByLabel("Key", { exact: true }).fill("a-wrong-key");
await look(page, "08-import-credential");
await button("Save and test").click();
await page.getByText(/^Refused 401 at /).waitFor();
await look(page, "08-import-refused");
await page.getByLabel("Key", { exact: true }).fill("harbour-demo-key");
await button("Save and test").click();
const publish = page.getByRole("link", { name: "Publish as a server" });
await publish.waitFor();
await look(page, "09-import-done");

// A server.
await publish.click();
await button("Create and publish").waitFor();
await page.getByText(/\d+ selected · about [\d,]+ tokens/).waitFor();
await look(page, "10-new-server");
await button("Create and publish").click();
await page.waitForURL(/\/servers\/srv_[^/]+/);
await page.getByText(`${base}/t/${ws}/`).first().waitFor();
await page.getByRole("tab", { name: "Connect" }).click();
await page.getByText("Connect a client").waitFor();
const clients = ["Claude", "ChatGPT", "Cursor", "VS Code"];
for (const client of clients) {
  const tab = page.getByRole("tab", { name: client, exact: false }).first();
  await tab.click();
  await eventually(() => tab.getAttribute("aria-selected"), (selected) => selected === "true", `the snippet for ${client} is shown`);
}
await button(/^Copy/).last().click();
const copied = await clipboard(page, "a snippet is copied");
check(copied.includes(`/t/${ws}/`), "the snippet in the clipboard names the server", copied);
await look(page, "11-connect");

// A first call on the page.
await page.goto(`${base}/w/${ws}/tools`);
await page.getByRole("heading", { level: 1 }).waitFor();
await page.getByRole("link", { name: "listPorts" }).waitFor();
await look(page, "12-tools");
await page.getByLabel("Search tools").fill("list ports");
await page.getByRole("link", { name: "listPorts" }).click();
await page.getByRole("tab", { name: "Try it" }).waitFor();
await button(/^(Call|Run|Try|Send)\b/).first().click();
await page.getByText("Structured").or(page.getByText(/text 1/)).first().waitFor();
await look(page, "13-try");

// The result in the console.
await page.goto(`${base}/w/${ws}`);
await page.getByRole("heading", { level: 1 }).waitFor();
await look(page, "14-overview");
for (const [place, file] of [["sources", "15-sources"], ["servers", "16-servers"], ["calls", "17-calls"], ["members", "18-members"], ["audit", "19-audit"], ["settings", "20-settings"]]) {
  await page.goto(`${base}/w/${ws}/${place}`);
  await page.getByRole("heading", { level: 1 }).waitFor();
  await look(page, file);
}
await page.goto(`${base}/w/${ws}/nowhere`);
await page.getByRole("heading", { level: 1 }).waitFor();
await look(page, "21-not-found");
await page.goto(`${base}/w/somebody-elses`);
await page.getByRole("heading").first().waitFor();
await look(page, "22-foreign");

// The palette, by keyboard alone, over what this person made.
const field = page.getByRole("textbox", { name: /^Search pages/ });
await page.goto(`${base}/w/${ws}`);
await page.getByRole("heading", { level: 1 }).waitFor();
await page.keyboard.press("Control+k");
await field.fill("listports");
await page.getByRole("option", { name: /^listPorts/ }).waitFor();
await look(page, "28-palette");
await page.keyboard.press("Enter");
await page.waitForURL(/\/tools\/tol_/);
await page.getByRole("heading", { level: 1, name: "listPorts" }).waitFor();
await page.keyboard.press("?");
await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
await look(page, "29-shortcuts");
await page.keyboard.press("Escape");

// The docs, without a sign-in.
const stranger = await openContext(browser, { permissions: ["clipboard-read", "clipboard-write"] });
const strange = watch(stranger);
stranger.setDefaultTimeout(20_000);
const reader = await stranger.newPage();
const refused = [];
reader.on("response", (response) => response.status() >= 400 && refused.push(response.url()));
for (const [width, colorScheme] of [[1280, "light"], [390, "dark"]]) {
  await reader.setViewportSize({ width, height: 860 });
  await reader.emulateMedia({ colorScheme });
  await reader.goto(`${base}/docs`);
  await reader.getByRole("heading", { level: 1, name: "The console" }).waitFor();
  await look(reader, `30-docs-${colorScheme}`);
  await reader.locator("article").getByRole("link", { name: "attach", exact: true }).click();
  await reader.getByRole("heading", { level: 1, name: "Attach a private server" }).waitFor();
  await reader.evaluate(() => navigator.clipboard.writeText("nothing yet"));
  await reader.getByRole("button", { name: "Copy" }).first().click();
  const command = await clipboard(reader, "a text of a page is copied", "nothing yet");
  check(command.includes("portolan attach"), "the code of a page is copied", command);
  await look(reader, `31-docs-attach-${colorScheme}`);
  await reader.keyboard.press("/");
  await reader.getByRole("textbox", { name: /^Search pages/ }).fill("token budget");
  await reader.getByRole("option", { name: /^Token budget/ }).waitFor();
  await look(reader, `32-docs-search-${colorScheme}`);
  await reader.keyboard.press("Enter");
  await reader.waitForURL(`${base}/docs/console#token-budget`);
}
check(refused.length === 0, "the docs load without a sign-in", refused);
check(strange.length === 0, "the docs keep the content policy", strange);
await stranger.close();

// Dark, and on a phone.
await page.emulateMedia({ colorScheme: "dark" });
await page.goto(`${base}/w/${ws}`);
await page.getByRole("heading", { level: 1 }).waitFor();
await look(page, "23-dark");
await page.emulateMedia({ colorScheme: "light" });
await page.setViewportSize({ width: 390, height: 844 });
for (const [place, file] of [["", "24-phone-overview"], ["/tools", "25-phone-tools"], ["/servers", "26-phone-servers"], ["/sources/import", "27-phone-import"]]) {
  await page.goto(`${base}/w/${ws}${place}`);
  await page.getByRole("heading", { level: 1 }).waitFor();
  await look(page, file);
}

check(faults.length === 0, "no page broke its content policy, threw, or loaded from elsewhere", faults);
await browser.close();
finish();
