// Bytes that a new browser transfers until the overview is shown: the bar of make test.
import { base, check, finish, launch, openContext, watch } from "./chromium.mjs";

/** Bytes on the wire, heads included. */
// Browsers take brotli; gzip is for what stands between.
const BARS = { br: 350 * 1024, gzip: 360 * 1024 };

const browser = await launch();
const context = await openContext(browser);
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

// The same person on other machines: cookies, and nothing in the cache. Each encoding that is served is
// accepted alone, as over plain HTTP, where a browser offers no brotli.
for (const encoding of ["br", "gzip"]) {
  const cold = await openContext(browser, { storageState });
  const overview = await cold.newPage();
  const session = await cold.newCDPSession(overview);
  await session.send("Network.enable");
  await session.send("Network.setAcceptedEncodings", { encodings: [encoding] });
  const answers = new Map();
  const received = [];
  session.on("Network.responseReceived", ({ requestId, response }) => answers.set(requestId, response));
  session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    const { url, headers } = answers.get(requestId);
    const used = headers["content-encoding"] ?? headers["Content-Encoding"] ?? "-";
    received.push({ url, used, bytes: encodedDataLength });
  });
  await overview.goto(`${base}/w/harbour`, { waitUntil: "networkidle" });
  // The whole page: numbers, chart and table of calls, each font in use.
  await overview.getByRole("table", { name: "Recent calls" }).waitFor();
  await overview.getByRole("heading", { level: 1 }).waitFor();
  received.sort((one, other) => other.bytes - one.bytes);
  for (const { url, used, bytes } of received) console.log(`# ${bytes} ${used} ${url}`);
  const bytes = received.reduce((total, one) => total + one.bytes, 0);
  console.log(`# cold load of the overview with ${encoding}: ${Math.round(bytes / 1024)} KiB in ${received.length} answers`);
  check(received.length > 10, `${encoding}: the overview was loaded`, received.length);
  check(received.some((one) => one.url.endsWith(".js") && one.used === encoding), `${encoding}: it is used`, received);
  check(received.some((one) => one.url.includes("jetbrains-mono")), `${encoding}: the font of code was loaded`, received);
  check(bytes <= BARS[encoding], `${encoding}: the overview takes at most ${BARS[encoding] / 1024} KiB`, bytes);
  await cold.close();
}
check(faults.length === 0, "nothing broke the content policy", faults);
finish();
