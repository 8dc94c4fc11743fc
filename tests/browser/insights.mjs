// Insights of a workspace with calls: numbers, the map of durations, errors and people lead to the calls behind them;
// light, dark and on a phone.
import { base, check, eventually, finish, launch, look, openContext, walkWithTab, watch } from "./chromium.mjs";

const { EMAIL, PASSWORD, WORKSPACE, PERIOD } = process.env;
const browser = await launch();
const context = await openContext(browser);
const faults = watch(context);
context.setDefaultTimeout(20_000);
const page = await context.newPage();
const button = (name) => page.getByRole("button", { name, exact: true });
const insights = `${base}/w/${WORKSPACE}/insights?period=${PERIOD}`;
const count = (text) => Number(text.replaceAll(/\D/g, ""));

await page.goto(`${base}/login`);
await page.getByLabel("E-mail").fill(EMAIL);
await page.getByLabel("Password").fill(PASSWORD);
await button("Sign in").click();
await page.waitForURL((url) => url.pathname !== "/login");

/** Opens the page and waits until all parts of it have loaded. */
async function open() {
  await page.goto(insights);
  await page.getByRole("table", { name: "Errors by cause" }).waitFor();
  await page.getByRole("table", { name: "People" }).waitFor();
}

/** The calls that a link led to: each of these filters has a chip, and calls are listed. */
async function led(what, ...names) {
  await page.waitForURL((url) => url.pathname.endsWith("/calls"));
  const bar = page.getByRole("form", { name: "Filter calls" });
  for (const name of names) await bar.getByRole("button", { name: `Remove the filter ${name}`, exact: true }).waitFor();
  const calls = page.getByRole("table", { name: "Calls" });
  await calls.waitFor();
  await eventually(() => calls.getByRole("row").count(), (rows) => rows > 1, `${what} leads to its calls`);
  return calls;
}

await open();
await look(page, "90-insights");
await walkWithTab(page, "90-insights");

// The map: one stop of the Tab key, and arrows within.
const map = page.getByRole("table", { name: /Calls by step and duration/ });
const cells = map.getByRole("link");
const shown = await eventually(() => cells.count(), (count) => count > 0, "the map has cells with calls");
check((await map.locator('a[tabindex="0"]').count()) === 1, "the map is one stop of the Tab key");
const focused = () => page.evaluate(() => document.activeElement?.getAttribute("aria-label"));
await map.locator('a[tabindex="0"]').focus();
await page.keyboard.press("End");
const last = await eventually(focused, (text) => /calls? of .+ to .+|calls? of over/.test(text ?? ""), "a cell says its calls, its durations and its time");
const reached = new Set([last]);
for (const key of ["ArrowUp", "ArrowDown", "ArrowDown", "ArrowUp", "Home", "ArrowRight", "ArrowLeft"]) {
  await page.keyboard.press(key);
  reached.add(await focused());
}
check(shown === 1 || reached.size > 1, "arrow keys move between cells", [...reached]);
await page.keyboard.press("End");
await page.keyboard.press("Enter");
await led("a cell", "dur", "from", "to");
await page.goBack();

// The same numbers as a table.
await button("Show as a table").click();
const numbers = page.getByRole("table", { name: "Durations over time" });
await numbers.getByRole("link").first().waitFor();
await eventually(() => numbers.getByRole("link").count(), (count) => count === Math.min(shown, 100), "the table has the cells of the map");
await look(page, "91-insights-table");

// Errors.
const causes = page.getByRole("table", { name: "Errors by cause" });
const cause = causes.getByRole("row").nth(1);
const reason = await cause.getByRole("link").textContent();
check((await cause.locator("time").count()) === 2, "a cause has its first and its last failure");
await cause.getByRole("link").click();
const failed = await led("a cause", "tool", "outcome", "error", "from", "to");
check((await page.getByText(`error: ${reason}`).count()) === 1, "the reason is a filter", reason);
check((await failed.getByText("Succeeded").count()) === 0, "the calls behind a cause failed");
await open();

// People.
const people = page.getByRole("table", { name: "People" });
const person = people.getByRole("row").filter({ has: page.getByRole("link") }).first();
check(count(await person.getByRole("cell").nth(1).textContent()) > 0, "a person has calls");
await person.getByRole("link").click();
await led("a person", "user");
await open();

await page.emulateMedia({ colorScheme: "dark" });
await look(page, "92-insights-dark");
await page.emulateMedia({ colorScheme: "light" });
await page.setViewportSize({ width: 390, height: 844 });
await look(page, "93-insights-phone");

check(faults.length === 0, "no page broke its content policy, threw, or loaded from elsewhere", faults);
await browser.close();
finish();
