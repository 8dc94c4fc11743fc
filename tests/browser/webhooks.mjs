// Webhooks: an endpoint is added by keyboard alone, its receiver fails first, the log shows each attempt, a message is
// sent again, the secret is rotated, missed events are replayed, and 410 disables it; light, dark and on a phone.
import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import { base, check, eventually, focused, look, lookEverywhere, picture, tabTo, walkWithTab } from "./chromium.mjs";
import { ask, button, open } from "./harbour.mjs";

const { PORT } = process.env;

/** Messages as they came, and the statuses, or promises of them, that answer the next ones; 204 without one. */
const received = [];
const statuses = [];
createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", async () => {
    received.push({ headers: request.headers, body: Buffer.concat(parts).toString("utf8") });
    const status = (await statuses.shift()) ?? 204;
    response.writeHead(status).end(status === 204 ? undefined : "The queue is full.");
  });
}).listen(Number(PORT), "127.0.0.1");

const typeOf = ({ body }) => JSON.parse(body).type;
const idOf = ({ headers }) => headers["webhook-id"];
const arrival = (count, what) => eventually(() => received.length, (length) => length >= count, what).then(() => received[count - 1]);

/** Whether a message is signed with this secret, as the specification of Standard Webhooks has it. */
function isSigned({ headers, body }, secret) {
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const text = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
  return headers["webhook-signature"].split(" ").includes(`v1,${createHmac("sha256", key).update(text).digest("base64")}`);
}

const { page, end } = await open();
const dialog = page.getByRole("dialog");
const secretShown = () => dialog.getByRole("region", { name: "Signing secret", exact: true }).textContent();
// An event that no endpoint has a delivery of.
await ask(page, "POST", "/workspaces/harbour/api-keys", { name: "Crane terminal" });

await page.goto(`${base}/w/harbour/webhooks`);
await page.getByRole("heading", { name: "No endpoints yet" }).waitFor();
const commands = await page.getByRole("region", { name: "Try it on your machine" }).getByRole("region", { name: "commands" }).textContent();
check(commands.includes(`PORTOLAN_URL=${base}\n`) && commands.includes("PORTOLAN_WORKSPACE=harbour\n"), "the commands name this place", commands);
check(commands.includes("portolan login\n") && !commands.includes("TOKEN"), "a person signs in and needs no token", commands);
await lookEverywhere(page, "90-webhooks-none");

// By keyboard: faults first, then a receiver that does not answer the challenge, then one that does.
const add = button("Add endpoint", page).first();
await add.focus();
await page.keyboard.press("Enter");
await dialog.waitFor();
const url = dialog.getByLabel("URL");
await tabTo(page, button("Add endpoint", dialog), "the button that adds");
await page.keyboard.press("Enter");
await dialog.getByText("Choose at least one event.").waitFor();
await focused(url, "the focus is at the first fault");
await look(page, "91-webhooks-faults");
await page.keyboard.type(`http://127.0.0.1:${PORT}/hooks/portolan`);
await tabTo(page, dialog.getByLabel("Description"), "the description");
await page.keyboard.type("Berth planner");
await tabTo(page, dialog.getByRole("checkbox", { name: "key.created" }), "an event");
await page.keyboard.press("Space");
statuses.push(500);
await tabTo(page, button("Add endpoint", dialog), "the button that adds");
await page.keyboard.press("Enter");
await dialog.getByText(/must answer a signed endpoint.verify/).last().waitFor();
await eventually(() => url.getAttribute("aria-invalid"), (invalid) => invalid === "true", "the refusal stands at the URL");
check((await url.inputValue()).endsWith("/hooks/portolan"), "the input stays after a refusal");
check(typeOf(received[0]) === "endpoint.verify", "the receiver got the challenge", received[0]);
await tabTo(page, button("Add endpoint", dialog), "the button that adds");
await page.keyboard.press("Enter");
const added = page.getByRole("dialog", { name: "Endpoint added" });
await added.getByText("Copy it now").waitFor();
const first = await secretShown();
check(isSigned(received[1], first), "the challenge is signed with the secret that is shown");
await page.keyboard.press("Escape");
check(await added.isVisible(), "Escape does not take away what is shown once");
await look(page, "92-webhooks-secret");
await button("Done", dialog).click();
await page.getByRole("heading", { level: 1, name: "Berth planner" }).waitFor();
check(!(await page.content()).includes(first), "the secret is not shown again");
await page.getByRole("heading", { name: "No deliveries" }).waitFor();
await look(page, "93-webhook-no-deliveries");

// The receiver fails once: the log shows the attempt, and the next one delivers.
// The next attempt is not answered before the page has shown the first one.
let answer;
statuses.push(503, new Promise((resolve) => (answer = resolve)));
await button("Send test", page).click();
const deliveries = page.getByRole("table", { name: "Deliveries" });
const row = deliveries.getByRole("row").filter({ hasText: "endpoint.test" });
await row.getByText("Pending · 503").waitFor();
answer(204);
const failed = await arrival(3, "the test message arrives");
check(isSigned(failed, first), "the message is signed");
const repeated = await arrival(4, "the message is sent again after its failure");
check(idOf(repeated) === idOf(failed), "a further attempt has the same id", [idOf(failed), idOf(repeated)]);
await row.getByText("Delivered · 204").waitFor();
await tabTo(page, row.getByRole("button", { name: /^Details of endpoint.test/ }), "the details of a delivery");
await page.keyboard.press("Enter");
const attempts = dialog.getByRole("table", { name: "Attempts" }).getByRole("row");
await attempts.nth(2).waitFor();
const shown = await attempts.allTextContents();
check(/503.*The queue is full\./.test(shown[1]) && /204/.test(shown[2]), "each attempt is shown with its answer", shown);
await picture(page, "webhook-delivery");
await lookEverywhere(page, "94-webhook-attempts");
await tabTo(page, button("Send again", dialog), "the button that sends again");
await page.keyboard.press("Enter");
const replayed = await arrival(5, "the delivery is sent again");
check(idOf(replayed) === idOf(failed), "a replay has the id of before", [idOf(failed), idOf(replayed)]);
await attempts.nth(3).waitFor();
await button("Close", dialog).click();
await dialog.waitFor({ state: "hidden" });

// Events before the endpoint was added.
await button("Replay missed", page).click();
await look(page, "95-webhook-replay");
await button("Replay", dialog).click();
await page.getByText("1 event is sent again.").waitFor();
const missed = await arrival(6, "the missed event arrives");
check(typeOf(missed) === "key.created" && JSON.parse(missed.body).data.name === "Crane terminal", "it is the missed event", missed.body);
await deliveries.getByText("key.created").waitFor();
await page.getByRole("combobox", { name: "State" }).click();
await page.getByRole("option", { name: "Failed" }).click();
await page.getByText("No delivery is in this state.").waitFor();
await page.getByRole("combobox", { name: "State" }).click();
await page.getByRole("option", { name: "All deliveries" }).click();
await deliveries.getByText("key.created").waitFor();

// Two secrets sign during a rotation.
await button("Rotate secret", page).click();
await button("Rotate", dialog).click();
await dialog.getByText("Copy it now").waitFor();
const second = await secretShown();
await button("Done", dialog).click();
await page.getByText(/signs too, until/).waitFor();
await button("Send test", page).click();
const both = await arrival(7, "a message after the rotation arrives");
check(first !== second && isSigned(both, first) && isSigned(both, second), "both secrets sign", both.headers["webhook-signature"]);

// A paused endpoint keeps what happens.
await button("Pause", page).click();
await page.getByText("Paused", { exact: true }).waitFor();
check(await button("Send test", page).isDisabled(), "a paused endpoint takes no test");
await ask(page, "POST", "/workspaces/harbour/api-keys", { name: "Tug" });
await deliveries.getByText("Pending", { exact: true }).waitFor();
await lookEverywhere(page, "96-webhook-paused");
await button("Resume", page).click();
const later = await arrival(8, "what waited is sent");
check(JSON.parse(later.body).data.name === "Tug", "an event of the pause is sent afterwards", later.body);
await page.getByText("Active", { exact: true }).waitFor();
await walkWithTab(page, "webhook");
await page.reload();
await deliveries.getByText("key.created").first().waitFor();
await picture(page, "webhooks", 860);

// 410 disables it: the page, the list and the menu of alerts say so.
statuses.push(410);
await button("Send test", page).click();
await page.getByText("Disabled: answered 410").waitFor();
await page.getByText(/Then send what it missed with Replay missed/).waitFor();
await look(page, "97-webhook-disabled");
await page.getByRole("link", { name: "Webhooks" }).last().click();
const endpoints = page.getByRole("table", { name: "Webhook endpoints" });
await endpoints.getByText("Disabled: answered 410").waitFor();
await lookEverywhere(page, "98-webhooks");
await page.reload();
await button("Alerts, 1 unread", page).waitFor();
check(true, "an alert says that the endpoint was disabled");
await endpoints.getByRole("link").click();
await button("Resume", page).click();
await page.getByText("Active", { exact: true }).waitFor();

// Deleted, after a question.
await button("Delete", page).click();
await look(page, "99-webhook-delete");
await button("Delete", dialog).click();
await page.getByRole("heading", { name: "No endpoints yet" }).waitFor();

await end();
