// The playground of a server: an MCP client in the browser, in both eras, signed in by OAuth; light, dark and on a phone.
import { readFile } from "node:fs/promises";
import { base, check, clipboard, eventually, finish, launch, look, openContext, opensWindow, picture, walkWithTab, watch } from "./chromium.mjs";

const { EMAIL, PASSWORD, OTHER_EMAIL, OTHER_PASSWORD, SERVER } = process.env;
const browser = await launch();
const context = await openContext(browser, {
  permissions: ["clipboard-read", "clipboard-write"],
});
const faults = watch(context);
context.setDefaultTimeout(20_000);
const page = await context.newPage();
const button = (name, on = page) => on.getByRole("button", { name, exact: true });
const tab = (name) => page.getByRole("tab", { name });
const address = `${base}/w/harbour/servers/${SERVER}/playground`;

async function signIn(on, email, password) {
  await on.getByLabel("E-mail").fill(email);
  await on.getByLabel("Password").fill(password);
  await button("Sign in", on).click();
}

await page.goto(`${base}/login`);
await signIn(page, EMAIL, PASSWORD);
await page.waitForURL((url) => url.pathname !== "/login");

// From the page of the server.
await page.goto(`${base}/w/harbour/servers/${SERVER}`);
await page.getByRole("link", { name: "Playground" }).click();
await page.waitForURL(address);
await button("Connect as me").waitFor();
await look(page, "60-playground");

// The first time the person allows access in a window; that is the whole of OAuth, by a click.
const opened = context.waitForEvent("page");
await button("Connect as me").click(opensWindow);
const consent = await opened;
await consent.getByText("Portolan Playground").first().waitFor();
await consent.getByText("Verified: made by Portolan").waitFor();
check(true, "the consent page says whose client it is");
check(new URL(consent.url()).pathname.startsWith("/oauth/consent/"), "it is the consent page of every client", consent.url());
await consent.getByRole("button", { name: "Allow" }).click();
await page.getByText("Connected", { exact: true }).waitFor();
await page.getByText(`as ${EMAIL}`).waitFor();
check(true, "the page names the person");
await new Promise((done) => (consent.isClosed() ? done() : consent.once("close", done)));
check(consent.isClosed(), "the window closed itself");

// A tool, in the form and as JSON with one state.
const result = page.getByRole("region", { name: "Result", exact: true });
await page.getByRole("list", { name: "tools" }).getByRole("button", { name: /echo_message/ }).click();
await page.getByRole("textbox", { name: "message" }).fill('He said "hi" \\ bye');
await page.getByText("JSON", { exact: true }).first().click();
const raw = page.getByLabel("Arguments as JSON");
check(JSON.parse(await raw.inputValue()).message === 'He said "hi" \\ bye', "PLAY-5: JSON holds the form's value once escaped", await raw.inputValue());
await raw.fill('{"message": "from JSON", "unknown_to_the_form": [1]}');
await page.getByText("Form", { exact: true }).first().click();
await eventually(() => page.getByRole("textbox", { name: "message" }).inputValue(), (text) => text === "from JSON", "PLAY-5: the form shows what JSON says");
await page.getByText("JSON", { exact: true }).first().click();
check(JSON.parse(await raw.inputValue()).unknown_to_the_form?.[0] === 1, "PLAY-5: what the form does not draw stays");
await raw.fill('{"message": "from JSON"}');
await button("Run").click();
await result.getByText("OK").first().waitFor();
await eventually(() => result.textContent(), (text) => text.includes("from JSON"), "the result is shown");

// The timeline: frames, headers, sizes; no token anywhere.
const messages = page.getByRole("region", { name: "Timeline" });
const row = messages.getByRole("listitem").filter({ hasText: "tools/call" }).first();
await row.locator("summary").click();
const sent = await row.getByLabel("Request headers").textContent();
check(sent.includes("Mcp-Session-Id") && sent.includes("Bearer ••••"), "headers are shown and the token is masked", sent);
await button("Copy as curl", row).click();
const curl = await clipboard(page, "a command is copied");
check(curl.startsWith("curl ") && curl.includes("$PORTOLAN_TOKEN") && !/eyJ/.test(curl), "PLAY-4: curl without the token", curl);
await button("Copy as JSON", row).click();
const copied = JSON.parse(await clipboard(page, "JSON is copied", curl));
check(copied.request.body.method === "tools/call" && copied.response.status === 200, "the exchange is copied as JSON", copied);
check(!/eyJ[\w-]+\./.test(await page.content()), "PLAY-4: no token stands on the page");
const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
check(!stored.includes("eyJ"), "PLAY-4: no token is stored", stored);
await look(page, "61-playground-session");
await page.evaluate(() => window.scrollTo(0, 0));
await picture(page, "playground", 1180);
await walkWithTab(page, "playground", 60);

// A saved call with assertions: it passes, is changed so that it fails, and says what it found.
await button("Save call").click();
const dialog = page.getByRole("dialog");
await dialog.getByLabel("Name").fill("Echo");
await button("Add a value", dialog).click();
await dialog.getByLabel("Path 1", { exact: true }).fill("not a path");
await button("Save", dialog).click();
await dialog.getByText("Write it as $.content[0].text.").waitFor();
check(true, "a path that is none is refused in words");
await dialog.getByLabel("Path 1", { exact: true }).fill("$.content[0].type");
await dialog.getByLabel("Value 1", { exact: true }).fill("text");
await look(page, "67-playground-save");
await button("Save", dialog).click();
await dialog.waitFor({ state: "hidden" });
await tab("Saved calls").click();
const saved = page.getByRole("list", { name: "Saved calls" });
await button("Run Echo").click();
await saved.getByText(/^Passed/).waitFor();
await saved.getByText('$.content[0].type is "text"').waitFor();
check(true, "PLAY-7: an assertion says what it holds");
await button("Change Echo").click();
await dialog.getByLabel("Value 1", { exact: true }).fill("image");
await button("Save", dialog).click();
await dialog.waitFor({ state: "hidden" });
await button("Run all").click();
await saved.getByText(/^Failed/).waitFor();
await eventually(() => saved.textContent(), (text) => text.includes('found "text"'), "PLAY-7: an assertion that fails says what was found");
await look(page, "68-playground-saved");
const downloading = page.waitForEvent("download");
await button("Download").click();
const file = JSON.parse(await readFile(await (await downloading).path(), "utf8"));
check(file.version === 1 && file.calls[0].name === "Echo" && file.calls[0].expect.equals[0].value === "image", "saved calls are downloaded for the command line", file);
await button("Delete Echo").click();
await page.getByText("No saved calls").waitFor();
await button("Undo").click();
await saved.getByText("Echo", { exact: true }).waitFor();
await tab(/^Tools/).click();

// The other era: one click, because the consent is remembered.
await button("Disconnect").click();
await page.getByText("2026-07-28", { exact: true }).click();
const silent = context.waitForEvent("page");
await button("Connect as me").click(opensWindow);
await silent;
await page.getByText("Connected", { exact: true }).waitFor();
check(true, "PLAY-3: connecting again takes one click");
await page.getByRole("list", { name: "tools" }).getByRole("button", { name: /echo_message/ }).click();
await page.getByRole("textbox", { name: "message" }).fill("stateless");
await button("Run").click();
await result.getByText("OK").first().waitFor();
const modern = messages.getByRole("listitem").filter({ hasText: "tools/call" }).first();
await modern.locator("summary").click();
const headers = await modern.getByLabel("Request headers").textContent();
check(headers.includes("Mcp-Methodtools/call") && !headers.includes("Mcp-Session-Id"), "2026-07-28 has mirrored headers and no session", headers);
await page.emulateMedia({ colorScheme: "dark" });
await look(page, "62-playground-dark");
await page.emulateMedia({ colorScheme: "light" });
await page.setViewportSize({ width: 390, height: 844 });
await look(page, "63-playground-phone");
await page.setViewportSize({ width: 1280, height: 860 });

// The declarations of the client.
await tab("Client").click();
await page.getByLabel("Roots").fill("http://not-a-file");
await button("Save roots").click();
await page.getByText("does not begin with file://").waitFor();
check(true, "a root that is no file URI is refused in words");
await page.getByLabel("Roots").fill("file:///home/ann/project Project");
await button("Save roots").click();
await page.getByText("Roots saved.").waitFor();
await look(page, "64-playground-client");

// As another person: an ordinary sign-in of that person in the same flow.
await button("Disconnect").click();
const window2 = context.waitForEvent("page");
await button("Connect as another person").click(opensWindow);
const login = await window2;
await signIn(login, OTHER_EMAIL, OTHER_PASSWORD);
await login.getByText("Signed in as").waitFor();
check((await login.textContent("main")).includes(OTHER_EMAIL), "the consent is the other person's");
await login.getByRole("button", { name: "Allow" }).click();
await page.getByText(`as ${OTHER_EMAIL}`, { exact: true }).waitFor();
await page.getByText(/This browser is now signed in as/).waitFor();
check(true, "the page says what the sign-in did");
await look(page, "65-playground-another-person");

// Nothing waits at the callback: it says so.
await page.goto(`${base}/playground/callback?code=x&state=unknown`);
await page.getByRole("heading", { name: "No playground is waiting" }).waitFor();
await eventually(() => page.url(), (url) => !url.includes("code="), "the code does not stay in the address");
await look(page, "66-playground-callback");

check(faults.length === 0, "no page broke its content policy, threw, or loaded from elsewhere", faults);
await browser.close();
finish();
