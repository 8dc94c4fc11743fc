// Shared by the browser tests: Chromium of the distribution, pages that report what must not
// happen, screenshots and accessibility checks.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";
import { small } from "./small_png.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const places = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome", "/snap/bin/chromium"];

export const base = process.env.PORTOLAN_URL;
let failures = 0;
let latest;

// A step that does not end: a screenshot of the page shows more than the name of a locator.
process.on("uncaughtException", async (error) => {
  console.log(`not ok - ${latest?.url()}: ${error.message}`);
  await latest?.screenshot({ path: `${process.env.PORTOLAN_ARTIFACTS}/failure.png`, fullPage: true }).catch(() => {});
  process.exit(1);
});

/** One line of the report. */
export function check(holds, sentence, found) {
  if (!holds) failures += 1;
  console.log(`${holds ? "ok" : "not ok"} - ${sentence}${holds ? "" : `; found ${JSON.stringify(found)}`}`);
}

/**
 * Waits until `holds` is true of what `find` answers: for all that a page does after a key or a click, such as a moved focus,
 * a text in the clipboard, or a field with another value.
 */
export async function eventually(find, holds, what) {
  const deadline = Date.now() + 30_000;
  for (;;) {
    const found = await find();
    if (holds(found)) {
      check(true, what);
      return found;
    }
    if (Date.now() > deadline) throw new Error(`${what}; found ${JSON.stringify(found)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Waits until an element has the focus. */
export const focused = (locator, what) => eventually(() => locator.evaluate((element) => element === document.activeElement), Boolean, what);

/** Waits until the clipboard has another text than `before`: that text. */
export const clipboard = (page, what, before = "") =>
  eventually(() => page.evaluate(() => navigator.clipboard.readText()), (text) => text !== before, what);

/**
 * How a button is clicked that opens a window: the click otherwise waits for what it began to load, and the program, which allows
 * access there, for the click.
 */
export const opensWindow = { noWaitAfter: true };

/** Ends the program: 0 only if every check held. */
export function finish() {
  console.log("1..done");
  process.exit(failures === 0 ? 0 : 1);
}

/** Starts Chromium without any network of its own. */
export async function launch() {
  const executablePath = places.find((place) => existsSync(place));
  if (!executablePath) throw new Error("Chromium is missing: run `make test-tools`");
  return chromium.launch({
    executablePath,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync"],
  });
}

/**
 * A window of a person who wants no motion. A dialog that fades in is there at once: on a busy machine the fade may begin
 * while its colours are judged.
 */
export function openContext(browser, options = {}) {
  return browser.newContext({ viewport: { width: 1280, height: 860 }, reducedMotion: "reduce", ...options });
}

/** Collects what a page must not do: break its own content policy, throw, or load from elsewhere. */
export function watch(context) {
  const faults = [];
  context.on("page", (page) => {
    latest ??= page;
    page.on("console", (message) => {
      if (message.type() === "error" && /Content Security Policy|violates/i.test(message.text())) faults.push(message.text());
    });
    page.on("pageerror", (error) => faults.push(`${page.url()}: ${error.message}`));
    page.on("request", (request) => {
      const url = new URL(request.url());
      if (/^https?:$/.test(url.protocol) && url.origin !== base && !["127.0.0.1", "localhost"].includes(url.hostname)) faults.push(`loaded ${url}`);
    });
  });
  return faults;
}

/** A picture for people, and the serious accessibility faults of the page as it stands. */
export async function look(page, name, { except = [] } = {}) {
  // Loading and fading are over when nothing moves and no skeleton is left.
  await page.waitForFunction(() => document.getAnimations().every((animation) => animation.playState !== "running" || animation.effect?.getTiming().iterations === Infinity));
  // A window as tall as the page: what sticks to the window stays where a person sees it.
  const { width, height } = page.viewportSize();
  const whole = await page.evaluate(() => document.documentElement.scrollHeight);
  await page.setViewportSize({ width, height: Math.max(height, Math.min(whole, 4000)) });
  await page.screenshot({ path: `${process.env.PORTOLAN_ARTIFACTS}/${name}.png` });
  await page.setViewportSize({ width, height });
  await accessible(page, name, except);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  check(overflow <= 1, `${name}: nothing sticks out sideways at ${page.viewportSize().width} px`, overflow);
}

/** The page in the light and the dark scheme, and on a phone; it ends as wide as it began. */
export async function lookEverywhere(page, name) {
  const { width, height } = page.viewportSize();
  // Messages would fade while the page is looked at.
  for (const message of await page.getByRole("button", { name: "Dismiss" }).all()) await message.click({ timeout: 2000 }).catch(() => {});
  await page.locator(".mantine-Notification-root").first().waitFor({ state: "hidden" });
  await look(page, name);
  await page.emulateMedia({ colorScheme: "dark" });
  await look(page, `${name}-dark`);
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 390, height: 844 });
  await look(page, `${name}-phone`);
  await page.setViewportSize({ width, height });
}

/** A picture of the docs, where scripts/pictures.sh takes them anew: the window as it stands, to this height. */
export async function picture(page, name, height = 800) {
  const folder = process.env.PORTOLAN_TOUR;
  if (!folder) return;
  const before = page.viewportSize();
  const { width } = before;
  await page.setViewportSize({ width, height });
  await page.evaluate(() => document.fonts.ready);
  const png = await page.screenshot({ clip: { x: 0, y: 0, width, height }, animations: "disabled", caret: "hide" });
  writeFileSync(`${folder}/${name}.png`, small(png));
  await page.setViewportSize(before);
}

/** Goes to an element with the Tab key alone. */
export async function tabTo(page, locator, what) {
  for (let stops = 0; stops < 120; stops += 1) {
    if (await locator.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`the Tab key does not reach ${what}`);
}

/**
 * Walks through a page with the Tab key, from its top: every stop is in sight, shows that it has the focus, and
 * comes in the order of the document (WCAG 2.4.3, 2.4.7, 2.4.11).
 */
export async function walkWithTab(page, name, most = 80) {
  await page.evaluate(() => {
    // The Tab key begins where the focus was last: here at the body, not at the heading of the page.
    document.body.tabIndex = -1;
    document.body.focus();
    document.body.removeAttribute("tabindex");
    window.scrollTo(0, 0);
  });
  const faults = [];
  let stops = 0;
  for (; stops < most; stops += 1) {
    await page.keyboard.press("Tab");
    const stop = await page.evaluate(async () => {
      const settled = (one) => Promise.all(one.getAnimations().map((animation) => animation.finished.catch(() => {})));
      const element = document.activeElement;
      if (!element || element === document.body || element === document.documentElement) return null;
      if (element.dataset.walked) return null;
      element.dataset.walked = "yes";
      // An element beside or around a hidden input draws its focus.
      const label = element.closest("label") ?? document.querySelector(`label[for="${CSS.escape(element.id)}"]`);
      const around = [element, element.nextElementSibling, element.parentElement, label].filter(Boolean);
      const drawn = (one) => {
        const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(one);
        return (outlineStyle !== "none" && parseFloat(outlineWidth) >= 1) || boxShadow !== "none";
      };
      const focused = around.some(drawn);
      // A field may also change the colour of its border.
      await settled(element);
      const border = getComputedStyle(element).borderTopColor;
      const box = element.getBoundingClientRect();
      const inSight = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
      element.blur();
      await settled(element);
      const changed = border !== getComputedStyle(element).borderTopColor;
      element.focus();
      return {
        what: `${element.tagName.toLowerCase()} ${(element.getAttribute("aria-label") ?? label?.textContent ?? element.textContent ?? "").trim().slice(0, 40)}`,
        faults: [!(focused || changed) && "no focus shown", !inSight && "out of sight", element.tabIndex > 0 && "tabindex"].filter(Boolean),
      };
    });
    if (!stop) break;
    for (const fault of stop.faults) faults.push(`${stop.what}: ${fault}`);
  }
  await page.evaluate(() => {
    document.activeElement?.blur();
    for (const one of document.querySelectorAll("[data-walked]")) delete one.dataset.walked;
    window.scrollTo(0, 0);
  });
  check(stops > 1, `${name}: the Tab key walks through the page`, stops);
  check(faults.length === 0, `${name}: every stop of the Tab key is in sight and shows its focus`, faults);
}

/** The debugger's sessions. They are never detached: that would switch off the virtual authenticators of another session of the page. */
const sessions = new WeakMap();

async function accessible(page, name, except) {
  // The isolated world of the debugger runs it, so the page's own policy stays as strict as it is.
  if (!sessions.has(page)) sessions.set(page, await page.context().newCDPSession(page));
  const session = sessions.get(page);
  const { frameTree } = await session.send("Page.getFrameTree");
  const { executionContextId } = await session.send("Page.createIsolatedWorld", { frameId: frameTree.frame.id });
  const run = async (expression) => {
    const { result, exceptionDetails } = await session.send("Runtime.evaluate", { expression, contextId: executionContextId, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  };
  await run(axe);
  const found = await run(`axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] }).then((results) =>
    results.violations.map((one) => one.id + ": " + one.nodes.map((node) => node.target.join(" ")).slice(0, 4).join(", ")))`);
  const faults = found.filter((fault) => !except.includes(fault.split(":")[0]));
  check(faults.length === 0, `${name}: no accessibility fault`, faults);
}
