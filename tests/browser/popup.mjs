// Authorization in a popup, as clients in a web page do it: the opener is still there at the
// callback, and receives the code (CASE-38).
import { check, finish, launch, openContext, watch } from "./chromium.mjs";

const callback = new URL(process.env.CALLBACK);
const browser = await launch();
const context = await openContext(browser);
const faults = watch(context);
context.setDefaultTimeout(20_000);

// The client: one page that opens the popup, and one at which it ends.
const opener = `<!doctype html><title>Client</title><button>Connect</button><output></output><script>
  document.querySelector("button").onclick = () => window.open(${JSON.stringify(process.env.AUTHORIZE_URL)}, "connect", "popup,width=520,height=760");
  window.onmessage = (event) => { if (event.origin === location.origin) document.querySelector("output").textContent = event.data; };
</script>`;
const end = `<!doctype html><title>Done</title><script>
  window.opener?.postMessage(location.search, location.origin);
</script>`;
await context.route(`${callback.origin}/**`, (route) =>
  route.fulfill({ contentType: "text/html", body: new URL(route.request().url()).pathname === callback.pathname ? end : opener }));

const page = await context.newPage();
await page.goto(`${callback.origin}/`);
const opened = page.waitForEvent("popup");
await page.getByRole("button", { name: "Connect" }).click();
const popup = await opened;
await popup.getByLabel("E-mail").fill(process.env.EMAIL);
await popup.getByLabel("Password").fill(process.env.PASSWORD);
await popup.getByRole("button", { name: "Sign in" }).click();
const allow = popup.getByRole("button", { name: "Allow" });
await allow.waitFor();
// The page arms its button after a moment (AUTH-N6); a person does not click sooner either.
await popup.waitForTimeout(700);
await allow.click();
await popup.waitForURL((url) => url.pathname === callback.pathname);
check(await popup.evaluate(() => window.opener !== null && !window.opener.closed), "the opener is alive at the callback", await popup.evaluate(() => String(window.opener)));
await page.waitForFunction(() => document.querySelector("output").textContent !== "").catch(() => {});
const told = new URLSearchParams(await page.locator("output").textContent());
check(told.has("code") && told.get("iss") === process.env.PORTOLAN_URL, "and was told the code", told.toString());
check(faults.length === 0, "no page broke its content policy", faults);
await browser.close();
finish();
