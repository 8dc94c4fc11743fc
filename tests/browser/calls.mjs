// Calls: those of an SDK are listed, narrowed by a typed line, followed live, exported, and shown one by one; light, dark
// and on a phone.
import { readFile } from "node:fs/promises";
import { base, check, eventually, focused, look, lookEverywhere, picture, tabTo, walkWithTab } from "./chromium.mjs";
import { button, connect, open, publish, startApi } from "./harbour.mjs";

const { page, end } = await open();
const api = await startApi(Number(process.env.PORT));
const published = await publish(page, api);

await page.goto(`${base}/w/harbour/calls`);
await page.getByRole("heading", { name: "No calls yet" }).waitFor();
await look(page, "120-calls-none");

const client = await connect(published, "Berth planner");
const call = (name, args = {}) => client.callTool({ name, arguments: args }).catch((error) => error);
const listed = await call("list_ports");
await call("get_port", { id: "DKCPH" });
await call("get_tides");
const missing = await call("get_port", { id: "XXXXX" });
check(missing.isError === true, "the API answers 404");
await call("get_port", { id: "x" });
const other = await connect(published, "Tug dispatch");
await other.callTool({ name: "list_ports", arguments: {} });

const table = page.getByRole("table", { name: "Calls" });
const rows = () => table.locator("tbody tr");
await eventually(() => rows().count(), (count) => count === 6, "the six calls are listed");
await lookEverywhere(page, "121-calls");
await picture(page, "calls");
await walkWithTab(page, "calls");

// The typed line: a filter that is none, filters that hold, and chips that go.
const line = page.getByLabel("Filter", { exact: true });
await line.focus();
await page.keyboard.type("colour:red");
await page.keyboard.press("Enter");
await page.getByText("“colour” is no filter.").waitFor();
await look(page, "122-calls-fault");
await page.keyboard.press("ControlOrMeta+a");
await page.keyboard.type("outcome:tool_error client:planner");
await page.keyboard.press("Enter");
await eventually(() => rows().count(), (count) => count === 1, "one call of the client failed at the API");
await eventually(() => rows().first().textContent(), (text) => text.includes("404"), "it is the call that the API answered with 404");
await eventually(() => page.url(), (url) => new URL(url).search.includes("outcome=tool_error"), "the filter stands in the address");
await lookEverywhere(page, "123-calls-filtered");
await tabTo(page, button("Remove the filter outcome", page), "the button of a chip");
await page.keyboard.press("Enter");
await eventually(() => rows().count(), (count) => count === 5, "five calls are of that client");
await line.fill("dur:>500ms");
await page.keyboard.press("Enter");
await eventually(() => rows().count(), (count) => count === 1, "one call of them was slow");
await eventually(() => rows().first().textContent(), (text) => text.includes("get_tides"), "it is the slow one");
await line.fill("tool:list_ports");
await page.keyboard.press("Enter");
await page.getByRole("heading", { name: "No matches" }).waitFor();
await look(page, "124-calls-no-match");
await button("Clear filters", page).click();
await eventually(() => rows().count(), (count) => count === 6, "without filters all calls are listed");
await page.goto(`${base}/w/harbour/calls?outcome=invalid_arguments`);
await button("Clear all", page).waitFor();
await eventually(() => rows().count(), (count) => count === 1, "an address with a filter shows its calls");

// The file has the calls of the filter.
await button("Export", page).focus();
await page.keyboard.press("Enter");
const csv = page.getByRole("menuitem", { name: "CSV" });
await csv.waitFor();
const downloading = page.waitForEvent("download");
await csv.click();
const lines = (await readFile(await (await downloading).path(), "utf8")).trim().split("\n");
check(lines.length === 2 && lines[1].includes("get_port"), "the exported file has the filtered call", lines);

// Live: a call that ends now is there without a reload, and the focus stays.
await page.goto(`${base}/w/harbour/calls?tool=list_ports`);
await eventually(() => rows().count(), (count) => count === 2, "both clients listed the ports");
const live = page.getByRole("switch", { name: /^Live/ });
const stream = page.waitForResponse((answer) => new URL(answer.url()).pathname.endsWith("/calls/live"));
await tabTo(page, live, "the switch of the live view");
await page.keyboard.press("Space");
check((await stream).headers()["content-type"].startsWith("text/event-stream"), "the live view is a stream");
await call("list_ports");
await call("get_port", { id: "DKCPH" });
await eventually(() => rows().count(), (count) => count === 3, "the live view shows the call that fits the filter");
await focused(live, "new rows leave the focus where it was");

// One call, found by the id that its answer carried.
const id = listed._meta["io.github.portolan/callId"];
await page.goto(`${base}/w/harbour/calls`);
await eventually(() => rows().count(), (count) => count === 8, "all calls are listed");
await tabTo(page, table.locator(`a[href$="${id}"]`), "the link of a call");
await page.keyboard.press("Enter");
await page.waitForURL((address) => address.pathname.endsWith(id));
await page.getByText(id).first().waitFor();
for (const part of ["list_ports", "Succeeded · 200", "Berth planner 2.1.0", "API key", "Key ID", "berths"]) {
  await eventually(() => page.textContent("main"), (detail) => detail.includes(part), `the page of the call says ${part}`);
}
await lookEverywhere(page, "125-call");
await picture(page, "call");
await walkWithTab(page, "call");
await page.goBack();
await eventually(() => rows().count(), (count) => count === 8, "the way back leads to the list");
await rows().filter({ hasText: "404" }).getByRole("link").click();
await page.getByText("API error · 404").first().waitFor();
await look(page, "126-call-failed");
await page.goto(`${base}/w/harbour/calls/${id.slice(0, -4)}0000`);
await page.getByRole("heading", { name: "Not found" }).waitFor();
await look(page, "127-call-unknown");

await client.close();
await other.close();
await end();
