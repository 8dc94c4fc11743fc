// Alerts: an API refuses the credential of a source while a client calls; the menu, the page, the mail, the rules and
// their thresholds, used by keyboard; light, dark and on a phone.
import { base, check, eventually, focused, look, lookEverywhere, picture, tabTo, walkWithTab } from "./chromium.mjs";
import { button, connect, open, publish, startApi } from "./harbour.mjs";

const { context, page, end } = await open();
const api = await startApi(Number(process.env.PORT));
const published = await publish(page, api);
const client = await connect(published, "Berth planner");
const call = () => client.callTool({ name: "list_ports", arguments: {} });
check(!(await call()).isError, "the API accepts the credential at first");

await page.goto(`${base}/w/harbour/alerts`);
await page.getByRole("heading", { name: "No alerts" }).waitFor();
await look(page, "100-alerts-none");
const menu = page.getByRole("button", { name: /^Alerts, / });
await menu.focus();
await page.keyboard.press("Enter");
await page.getByText("No alerts in the last 30 days.").waitFor();
// The focus moves when the menu has opened, and back when it has closed.
await page.waitForFunction(() => document.activeElement?.closest("[role=menu]"));
await page.keyboard.press("Escape");
await focused(menu, "Escape closes the menu and gives the focus back");

// Without a reload: the menu and the page look again by themselves.
api.refuses = true;
check((await call()).isError === true, "the API refuses the credential");
const patient = { timeout: 60_000 };
await button("Alerts, 1 unread", page).waitFor(patient);
const alerts = page.getByRole("table", { name: "Alerts" });
const row = alerts.getByRole("row").filter({ hasText: "Harbour API" });
await row.getByText("Firing").waitFor(patient);
await eventually(() => row.textContent(), (text) => text.includes("critical"), "the alert says how much it matters");
await lookEverywhere(page, "101-alerts");
await picture(page, "alerts");
await walkWithTab(page, "alerts");

// The menu, on a phone too: it leads to the source, and what was opened is read.
const item = page.getByRole("menuitem", { name: /Harbour API/ });
async function openMenu() {
  await menu.focus();
  await page.keyboard.press("Enter");
  await focused(item, "the keyboard opens the menu at its first alert");
}
await page.setViewportSize({ width: 390, height: 844 });
await openMenu();
await look(page, "102-alert-menu-phone");
await page.keyboard.press("Escape");
await focused(menu, "Escape gives the focus back on a phone");
await page.setViewportSize({ width: 1280, height: 860 });
await page.emulateMedia({ colorScheme: "dark" });
await openMenu();
await look(page, "102-alert-menu-dark");
await page.emulateMedia({ colorScheme: "light" });
await look(page, "102-alert-menu");
await picture(page, "alert-menu", 640);
await page.keyboard.press("Enter");
await page.waitForURL((url) => url.pathname.includes(published.source));
await button("Alerts, none unread", page).waitFor();
check(true, "an opened alert is read");
await page.getByText(/refused/i).first().waitFor();

// Admins get a mail.
const mailbox = await context.newPage();
await mailbox.goto(`${base}/dev/mail`);
const mail = await mailbox.textContent("body");
check(mail.includes("Harbour API"), "the alert is in a mail", mail.slice(0, 400));
await mailbox.close();

// The settings of its rule: each by keyboard, and each still there after a reload.
await page.goto(`${base}/w/harbour/alerts`);
const rules = page.getByRole("table", { name: "Rules" });
const byMail = rules.getByRole("switch", { name: "Credential refused: mail" });
await byMail.waitFor();
await byMail.focus();
await page.keyboard.press("Space");
await page.waitForFunction(() => document.activeElement?.checked === false);
await tabTo(page, rules.getByRole("button", { name: "Mute Credential refused" }), "the menu that mutes");
await page.keyboard.press("Enter");
await page.getByRole("menuitem", { name: "For a day" }).waitFor();
await look(page, "103-alerts-mute");
await page.keyboard.press("ArrowDown");
await page.keyboard.press("Enter");
await rules.getByText(/Muted until/).waitFor();
await page.reload();
await rules.getByText(/Muted until/).waitFor();
await eventually(() => byMail.isChecked(), (checked) => !checked, "the rule keeps that it sends no mail");
await button("End mute", rules).click();
await rules.getByText(/Muted until/).waitFor({ state: "hidden" });
await byMail.press("Space");
await eventually(() => byMail.isChecked(), Boolean, "mail is switched on again");

// The thresholds of a rule over calls, by keyboard: what is counted now, a fault, the defaults, and the alert.
const counted = rules.getByRole("link", { name: /^Berths: 1 of \d+ calls failed/ });
await counted.waitFor(patient);
await rules.getByText(/Fires at 5 % failed calls of a server in 15 minutes, from 50 calls/).waitFor();
const opener = rules.getByRole("button", { name: "Thresholds: Calls fail" });
await opener.focus();
await page.keyboard.press("Enter");
const dialog = page.getByRole("dialog", { name: "Thresholds: Calls fail" });
const fewest = dialog.getByLabel("Fewest calls");
await fewest.waitFor();
await fewest.fill("0");
await page.keyboard.press("Enter");
await dialog.getByText("Enter a whole number from 1 to").waitFor();
await lookEverywhere(page, "105-alert-thresholds");
await fewest.fill("2");
await page.keyboard.press("Enter");
await dialog.waitFor({ state: "hidden" });
await focused(opener, "the dialog gives the focus back");
await page.reload();
await rules.getByText(/from 2 calls/).waitFor();
// A round of the rules comes each minute.
const failing = alerts.getByRole("row").filter({ hasText: /calls of the server Berths failed/ });
await failing.getByText("Firing").waitFor({ timeout: 120_000 });
await look(page, "106-alert-error-rate");
await failing.getByRole("link").click();
await page.waitForURL((url) => url.pathname === "/w/harbour/calls" && url.searchParams.get("server") === "berths");
await page.getByText("list_ports").first().waitFor();
check(true, "the alert leads to the calls behind it");
await page.goto(`${base}/w/harbour/alerts`);
await rules.getByText(/from 2 calls/).waitFor();
await opener.click();
await button("Use defaults", dialog).click();
await button("Save", dialog).click();
await rules.getByText(/from 50 calls/).waitFor();

// The API accepts it again.
api.refuses = false;
check(!(await call()).isError, "the API accepts the credential again");
await row.getByText("Resolved").waitFor(patient);
await look(page, "104-alerts-resolved");

await client.close();
await end();
