// What a browser that was never here transfers until the overview stands: the bar of make test.
import { base, check, finish, launch, watch } from "./chromium.mjs";

/** Bytes on the wire, heads included. */
const BAR = 350 * 1024;

const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
const faults = watch(context);
context.setDefaultTimeout(20_000);
const page = await context.newPage();
await page.goto(`${base}/login`);
await page.getByLabel("E-mail").fill(process.env.EMAIL);
await page.getByLabel("Password").fill(process.env.PASSWORD);
await page.getByRole("button", { name: "Sign in", exact: true }).click();
await page.waitForURL((url) => url.pathname !== "/login");
const storageState = await context.storageState();
await context.close();

// The same person on another machine: cookies, and nothing in the cache.
const cold = await browser.newContext({ viewport: { width: 1280, height: 860 }, storageState });
const overview = await cold.newPage();
const session = await cold.newCDPSession(overview);
await session.send("Network.enable");
const asked = new Map();
let bytes = 0;
session.on("Network.responseReceived", ({ requestId, response }) => asked.set(requestId, response));
session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
  const response = asked.get(requestId);
  bytes += encodedDataLength;
  console.log(`# ${encodedDataLength} ${response?.headers["content-encoding"] ?? response?.headers["Content-Encoding"] ?? "-"} ${response?.url}`);
});
await overview.goto(`${base}/w/harbour`, { waitUntil: "networkidle" });
await overview.getByRole("heading", { level: 1 }).first().waitFor();
console.log(`# cold load of the overview: ${Math.round(bytes / 1024)} KiB in ${asked.size} answers`);
check(asked.size > 10, "the overview was loaded", asked.size);
check(bytes <= BAR, `the overview takes at most ${BAR / 1024} KiB`, bytes);
check(faults.length === 0, "nothing broke the content policy", faults);
finish();
