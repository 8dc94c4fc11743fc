// Sessions of a workspace: two clients of the playground, the timeline of one, and its end; light, dark and on a phone.
import { base, check, eventually, finish, launch, look, openContext, opensWindow, watch } from "./chromium.mjs";

const { EMAIL, PASSWORD, SERVER } = process.env;
const browser = await launch();
const context = await openContext(browser);
const faults = watch(context);
context.setDefaultTimeout(20_000);
const page = await context.newPage();
const button = (name, on = page) => on.getByRole("button", { name, exact: true });

await page.goto(`${base}/login`);
await page.getByLabel("E-mail").fill(EMAIL);
await page.getByLabel("Password").fill(PASSWORD);
await button("Sign in").click();
await page.waitForURL((url) => url.pathname !== "/login");

// No client is connected yet.
await page.goto(`${base}/w/harbour/sessions`);
await page.getByRole("heading", { name: "No sessions" }).waitFor();
await look(page, "80-no-sessions");

async function connect(era, first) {
  const play = await context.newPage();
  await play.goto(`${base}/w/harbour/servers/${SERVER}/playground`);
  await play.getByText(era, { exact: true }).first().click();
  const opened = context.waitForEvent("page");
  await button("Connect as me", play).click(opensWindow);
  const consent = await opened;
  if (first) await consent.getByRole("button", { name: "Allow" }).click();
  await play.getByText("Connected", { exact: true }).waitFor();
  await play.getByRole("list", { name: "tools" }).getByRole("button", { name: /echo_message/ }).click();
  await play.getByRole("textbox", { name: "message" }).fill("hello");
  await button("Run", play).click();
  await play.getByRole("region", { name: "Result", exact: true }).getByText("OK").first().waitFor();
  return play;
}
const session = await connect("2025-11-25", true);
await connect("2026-07-28", false);

await page.bringToFront();
await page.reload();
const table = page.getByRole("table", { name: "Sessions" });
await table.getByText("2025-11-25").waitFor();
await table.getByText("2026-07-28").waitFor();
const row = table.getByRole("row").filter({ hasText: "2025-11-25" });
await eventually(() => row.textContent(), (text) => text.includes("portolan-playground"), "the client's name is shown");
await eventually(() => row.textContent(), (text) => text.includes(EMAIL), "the person is shown");
await row.getByText("1 stream").waitFor();
check(true, "the open stream of the session is counted");
await button("Show the timeline of portolan-playground", row).click();
const timeline = page.getByRole("list", { name: "Timeline of portolan-playground" });
await timeline.getByText("tools/call").waitFor();
await eventually(() => timeline.textContent(), (text) => text.includes("Session opened"), "the timeline begins with the session");
await look(page, "81-sessions");
await page.emulateMedia({ colorScheme: "dark" });
await look(page, "82-sessions-dark");
await page.emulateMedia({ colorScheme: "light" });
await page.setViewportSize({ width: 390, height: 844 });
await look(page, "83-sessions-phone");
await page.setViewportSize({ width: 1280, height: 860 });

// Ended: its streams end, its next request is refused, and the audit log knows.
await button("End the session of portolan-playground", row).click();
await page.getByRole("dialog").getByText("Calls and streams of").waitFor();
await look(page, "84-sessions-end");
await button("End session", page.getByRole("dialog")).click();
await page.getByText("Session ended.").waitFor();
await row.waitFor({ state: "hidden" });
await session.bringToFront();
await button("Run", session).click();
await session.getByText("The session has ended.").first().waitFor();
check(true, "the client of an ended session learns it");
await page.bringToFront();
await page.goto(`${base}/w/harbour/audit`);
await page.getByText("Session ended").first().waitFor();
check(true, "the end is in the audit log");

check(faults.length === 0, "no page broke its content policy, threw, or loaded from elsewhere", faults);
await browser.close();
finish();
