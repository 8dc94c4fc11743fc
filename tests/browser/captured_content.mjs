// Captured content: the policy of a server, the reveal of a call, its replay with a difference, and saved views; light,
// dark and on a phone.
import { base, check, eventually, finish, launch, look, openContext, opensWindow, walkWithTab, watch } from "./chromium.mjs";

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

// The policy stands among the settings of the server.
await page.goto(`${base}/w/harbour/servers/${SERVER}?tab=settings`);
await page.getByRole("combobox", { name: "Keep the content of" }).click();
await page.getByRole("option", { name: "A share of all calls" }).click();
await page.getByRole("textbox", { name: "Share" }).fill("");
await button("Save policy").click();
await page.getByText("Enter 1 to 99 percent.").waitFor();
check(true, "CAPTURE-1: a share that is missing is refused in words");
await page.getByRole("combobox", { name: "Keep the content of" }).click();
await page.getByRole("option", { name: "All calls", exact: true }).click();
await look(page, "70-capture-policy");
await button("Save policy").click();
await page.getByText("Capture changed, for calls from now on.").waitFor();

// A call of the person, through the playground.
await page.goto(`${base}/w/harbour/servers/${SERVER}/playground`);
const result = page.getByRole("region", { name: "Result", exact: true });
async function connect(first) {
  const opened = context.waitForEvent("page");
  await button("Connect as me").click(opensWindow);
  const consent = await opened;
  if (first) await consent.getByRole("button", { name: "Allow" }).click();
  await page.getByText("Connected", { exact: true }).waitFor();
}
await connect(true);
await page.getByRole("list", { name: "tools" }).getByRole("button", { name: /echo_message/ }).click();
await page.getByRole("textbox", { name: "message" }).fill("a harbour of ann@mail.example");
await button("Run").click();
await result.getByText("OK").first().waitFor();

// The page of the call: nothing is shown before it is revealed.
await page.goto(`${base}/w/harbour/calls`);
await page.getByRole("link", { name: "echo_message" }).first().click();
await button("Reveal").waitFor();
check(!(await page.content()).includes("a harbour of"), "CAPTURE-8: the content is not in the page before");
await look(page, "71-call-before-reveal");
await button("Reveal").click();
const shown = page.getByRole("region", { name: "Arguments", exact: true });
await shown.waitFor();
const text = await shown.textContent();
check(text.includes("a harbour of ••••") && !text.includes("ann@mail"), "CAPTURE-4: the address is masked", text);
await look(page, "72-call-revealed");
await walkWithTab(page, "call", 60);
await page.emulateMedia({ colorScheme: "dark" });
await look(page, "73-call-revealed-dark");
await page.emulateMedia({ colorScheme: "light" });
await page.setViewportSize({ width: 390, height: 844 });
await look(page, "74-call-revealed-phone");
await page.setViewportSize({ width: 1280, height: 860 });

// The replay: the arguments are filled in, and the difference of the answers is shown.
await button("Open in playground").click();
await page.getByText("Arguments of a captured call").waitFor();
await connect(false);
const message = page.getByRole("textbox", { name: "message" });
await eventually(() => message.inputValue(), (text) => text === "a harbour of ••••", "CAPTURE-9: the arguments are filled in");
await message.fill("a harbour of Ben");
await button("Replay").click();
const difference = page.getByRole("region", { name: "Difference of the answers" });
await difference.waitFor();
await eventually(
  () => difference.textContent(),
  (lines) => lines.includes("Removed:") && lines.includes("a harbour of Ben"),
  "CAPTURE-9: the answers are compared",
);
await look(page, "75-replay");
await page.emulateMedia({ colorScheme: "dark" });
await look(page, "76-replay-dark");
await page.emulateMedia({ colorScheme: "light" });
await page.setViewportSize({ width: 390, height: 844 });
await look(page, "77-replay-phone");
await page.setViewportSize({ width: 1280, height: 860 });

// After a reload the content is gone, and the page says so.
await page.reload();
await page.getByText("The captured call is not here any more").waitFor();
const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, history.state]));
check(!stored.includes("harbour of"), "CAPTURE-9: nothing of it is stored", stored);

// The audit log has the reveal.
await page.goto(`${base}/w/harbour/audit`);
await page.getByText("Content of a call revealed").first().waitFor();

// A view of the calls.
await page.goto(`${base}/w/harbour/calls?tool=echo_message`);
await button("Views").click();
await page.getByRole("menuitem", { name: "Save view" }).click();
await page.getByRole("textbox", { name: "Name" }).fill("Echoes");
await look(page, "78-save-view");
await button("Save").click();
await page.getByText("View saved.").waitFor();
await page.goto(`${base}/w/harbour/calls`);
await button("Views").click();
await page.getByRole("menuitem", { name: "Echoes" }).click();
await page.waitForURL((url) => url.search.includes("tool=echo_message"));
check(true, "CAPTURE-10: a view opens its filters");

check(faults.length === 0, "no page broke its content policy, threw, or loaded from elsewhere", faults);
await browser.close();
finish();
