// From sign-up to the first call of an official SDK, with the clicks counted. With PORTOLAN_PICTURES it also
// takes the pictures of docs/images/new-user, in the scheme and width that are set.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { base, check, clipboard, finish, launch, openContext, walkWithTab, watch } from "./chromium.mjs";

/** Clicks that a newcomer may need; typing and the keyboard's Tab are not counted. */
const MOST = 12;

const pictures = process.env.PORTOLAN_PICTURES;
const look = process.env.PORTOLAN_LOOK ?? "light";
const browser = await launch();
const context = await openContext(browser, {
  viewport: look === "phone" ? { width: 390, height: 844 } : { width: 1280, height: 860 },
  colorScheme: look === "dark" ? "dark" : "light",
  permissions: ["clipboard-read", "clipboard-write"],
});
const faults = watch(context);
context.setDefaultTimeout(20_000);
const page = await context.newPage();
const clicks = [];

async function click(name, locator) {
  await locator.click();
  clicks.push(name);
}
const press = (name, on = page) => click(name, on.getByRole("button", { name, exact: typeof name === "string" }).first());

/** The page as a person sees it now; without pictures, as a person with a keyboard does. */
async function shoot(name, on = page) {
  if (!pictures) return walkWithTab(on, name);
  await on.evaluate(() => document.fonts.ready);
  await on.waitForFunction(() => document.getAnimations().every((one) => one.playState !== "running" || one.effect?.getTiming().iterations === Infinity));
  // A window as tall as the page, up to a bound: its buttons are in the picture.
  const { width, height } = on.viewportSize();
  const whole = await on.evaluate(() => document.documentElement.scrollHeight);
  await on.setViewportSize({ width, height: Math.max(height, Math.min(whole, look === "phone" ? 1300 : 1000)) });
  await on.screenshot({ path: `${pictures}/${name}-${look}.png` });
  await on.setViewportSize({ width, height });
}

// Account.
await page.goto(`${base}/signup`);
await page.getByLabel("Your name").fill("Nora Newcomer");
await page.getByLabel("E-mail").fill("nora@example.com");
await page.getByLabel("Password").fill("anchovy tram lantern sixty");
await shoot("01-sign-up");
await press("Create account");
await page.getByLabel("8-digit code").waitFor();
const opened = context.waitForEvent("page");
await click("mailbox", page.getByRole("link", { name: "mailbox" }));
const mailbox = await opened;
const code = (await mailbox.locator(".mail-code").first().textContent()).replace(/\D/g, "");
await shoot("02-mailbox", mailbox);
await mailbox.close();
await page.getByLabel("8-digit code").fill(code);
await shoot("02-verify");
await press("Continue");

// Workspace.
await page.getByLabel(/^(Workspace name|Name)/).fill("Harbour Works");
await shoot("03-workspace");
await press(/Create workspace/);
await page.waitForURL((url) => url.pathname.startsWith("/w/"));

// The demo API, all of its tools.
await page.getByRole("link", { name: "Import an API" }).waitFor();
await shoot("04-start");
await click("Import an API", page.getByRole("link", { name: "Import an API" }));
await page.getByRole("button", { name: "Preview tools" }).waitFor();
await shoot("05-import");
await press("Preview tools");
await page.getByRole("button", { name: /Continue with \d+ tools/ }).waitFor();
await shoot("06-choose");
await press(/Continue with \d+ tools/);
const key = page.getByLabel("Key", { exact: true });
await key.waitFor();
if ((await key.inputValue()) === "") await key.fill("harbour-demo-key");
await shoot("07-credential");
await press("Save and test");
const publish = page.getByRole("link", { name: "Publish as a server" });
await publish.waitFor();
if (pictures) {
  // A look aside, which is no part of the count: a tool is tried before it is published.
  const aside = await context.newPage();
  await aside.goto(page.url().replace(/\/w\/([^/]+)\/.*/, "/w/$1/tools?q=listPorts"));
  await aside.getByRole("link", { name: "listPorts" }).click();
  await aside.getByRole("button", { name: "Run" }).click();
  await aside.getByRole("tab", { name: "Request" }).click();
  await aside.getByLabel("Headers of the request").waitFor();
  await shoot("08-try", aside);
  await aside.close();
}
await click("Publish as a server", publish);
await page.getByRole("button", { name: "Create and publish" }).waitFor();
await shoot("09-publish");
await press("Create and publish");
await page.waitForURL(/\/servers\/srv_[^/]+/);
await page.getByText("Connect a client").waitFor();
await shoot("10-connect");
await press(/^Copy.*URL/i);
const url = await clipboard(page, "a text is copied");
check(/^http.*\/t\/[^/]+\/[^/]+\/mcp$/.test(url), "the button copies the server's URL", url);

// The client of the newcomer: it writes the address that it wants opened.
const client = spawn("node", [process.env.CLIENT, url, "listPorts"], { stdio: ["ignore", "pipe", "inherit"] });
const ended = new Promise((resolve) => client.once("exit", resolve));
for await (const line of createInterface({ input: client.stdout })) {
  console.log(`# client: ${line}`);
  if (line.startsWith("not ok")) check(false, line);
  if (!line.startsWith("open ")) continue;
  await page.goto(line.slice("open ".length));
  const allow = page.getByRole("button", { name: "Allow" });
  await allow.waitFor();
  // The page arms its button after a moment (AUTH-N6).
  await page.waitForTimeout(700);
  await shoot("11-consent");
  await click("Allow", allow);
  await page.getByText("You can close this window.").waitFor();
}
check((await ended) === 0, "the client made its call", await ended);

// It is on the overview, and the checklist is done.
await page.goto(base);
await page.waitForURL((address) => address.pathname.startsWith("/w/"));
const calls = page.getByRole("table", { name: "Recent calls" });
await calls.getByText("TypeScript SDK").first().waitFor();
await shoot("13-overview");
if (pictures) {
  await page.goto(`${page.url().replace(/\/$/, "")}/calls`);
  await page.getByText("TypeScript SDK").first().waitFor();
  await shoot("12-first-call");
}
console.log(`# ${clicks.length} clicks: ${clicks.join(", ")}`);
check(clicks.length <= MOST, `at most ${MOST} clicks from sign-up to the first call`, clicks);
check(faults.length === 0, "no page broke its content policy, threw, or loaded from elsewhere", faults);
await browser.close();
finish();
