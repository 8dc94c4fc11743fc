// The playground and a server that asks: elicitation, sampling, roots, progress, cancel, log messages, completion,
// subscriptions and tasks, in a session and in 2026-07-28.
import { base, check, finish, launch, look, openContext, opensWindow, watch } from "./chromium.mjs";

const { EMAIL, PASSWORD, SERVER } = process.env;
const browser = await launch();
const context = await openContext(browser);
const faults = watch(context);
context.setDefaultTimeout(20_000);
const page = await context.newPage();
const button = (name, on = page) => on.getByRole("button", { name, exact: true });
const tab = (name) => page.getByRole("tab", { name }).click();
const result = page.getByRole("region", { name: "Result", exact: true });
const dialog = page.getByRole("dialog");

await page.goto(`${base}/login`);
await page.getByLabel("E-mail").fill(EMAIL);
await page.getByLabel("Password").fill(PASSWORD);
await button("Sign in").click();
await page.waitForURL((url) => url.pathname !== "/login");
await page.goto(`${base}/w/harbour/servers/${SERVER}/playground`);

async function connect(era, first) {
  await page.getByText(era, { exact: true }).first().click();
  const opened = context.waitForEvent("page");
  await button("Connect as me").click(opensWindow);
  const window = await opened;
  if (first) await window.getByRole("button", { name: "Allow" }).click();
  await page.getByText("Connected", { exact: true }).waitFor();
}

async function choose(noun, name) {
  const filter = page.getByLabel(`Filter ${noun}`);
  if (await filter.isVisible()) await filter.fill(name);
  await page.getByRole("list", { name: noun }).getByRole("button").filter({ has: page.getByText(name, { exact: true }) }).first().click();
}

async function run(name, fields = {}) {
  await tab(/^Tools/);
  await choose("tools", name);
  for (const [label, value] of Object.entries(fields)) await page.getByLabel(new RegExp(`^${label}( \\*)?$`)).fill(value);
  await button("Run").click();
}

const says = async (text) => {
  await result.getByText(text).first().waitFor();
  check(true, `the result says ${text}`);
};

for (const era of ["2025-11-25", "2026-07-28"]) {
  await connect(era, era === "2025-11-25");
  const where = `in ${era}`;

  // Elicitation: accepted with a form, and declined.
  await run("test_elicitation", { message: "Who are you?" });
  await dialog.getByText("Who are you?").waitFor();
  await dialog.getByLabel("username").fill("ann");
  await dialog.getByLabel("email").fill("ann@example.com");
  if (era === "2025-11-25") await look(page, "70-playground-elicitation");
  await button("Accept", dialog).click();
  await says(/action=accept, content=\{"username":"ann","email":"ann@example.com"\}/);
  await button("Run").click();
  await button("Decline", dialog).click();
  await says(/action=decline/);

  // Sampling: the person writes the answer.
  await run("test_sampling", { prompt: "Name a port" });
  await dialog.getByText("Name a port").waitFor();
  await dialog.getByLabel("Answer").fill("Nordhavn");
  if (era === "2025-11-25") await look(page, "71-playground-sampling");
  await button("Send answer", dialog).click();
  await says("LLM response: Nordhavn");

  // Roots are answered from the settings.
  await tab("Client");
  await page.getByLabel("Roots").fill("file:///home/ann/project Project");
  await button("Save roots").click();
  await run("test_input_required_result_list_roots");
  await says("Roots: file:///home/ann/project");

  // Cancel.
  await run("test_slow", { milliseconds: "60000" });
  await button("Cancel", result).click();
  await says("Cancelled");
  check(true, `a call is cancelled ${where}`);

  // An error of a tool.
  await run("test_error_handling");
  await says("Error of the tool");

  // Prompts with completion.
  await tab(/^Prompts/);
  await choose("prompts", "test_prompt_with_arguments");
  await page.getByRole("combobox", { name: "arg1" }).fill("pa");
  await page.getByRole("option", { name: "paris" }).click();
  await page.getByRole("combobox", { name: "arg2" }).fill("two");
  await page.keyboard.press("Escape");
  await button("Get prompt").click();
  await page.getByText("arg1='paris', arg2='two'").first().waitFor();
  check(true, `a suggestion of the server fills an argument ${where}`);

  // Resources: a template, and a subscription.
  await tab(/^Resources/);
  await choose("resources", "test://template/{id}/data");
  await page.getByRole("combobox", { name: /^id/ }).fill("7");
  await page.keyboard.press("Escape");
  await button("Read").click();
  await result.getByText("test://template/7/data").first().waitFor();
  await choose("resources", "test://watched-resource");
  await button("Subscribe").click();
  await page.getByText("No update yet.").waitFor();
  await run("test_touch_resource");
  await says(/Touched/);
  await tab(/^Resources/);
  await page.getByText(/^\d+ updates?$/).waitFor();
  check(true, `an update of a subscribed resource arrives ${where}`);
  if (era === "2025-11-25") await look(page, "72-playground-resource");

  // Log messages, from the chosen level on.
  await tab("Client");
  await page.getByRole("combobox", { name: "Log level" }).click();
  await page.getByRole("option", { name: "info" }).click();
  await run("test_tool_with_logging");
  await says("Logged three lines.");
  await tab(/^Notifications/);
  await page.getByText("info: Tool processing data").waitFor();
  check(true, `log messages arrive ${where}`);

  // Progress stands in the frames of the call's stream.
  await run("test_tool_with_progress");
  await says("Reported progress.");
  const call = page.getByRole("region", { name: "Timeline" }).getByRole("listitem").filter({ hasText: "tools/call" }).first();
  await call.locator("summary").click();
  await call.getByText("notifications/progress").first().waitFor();
  check(true, `the frames of a stream are shown ${where}`);
  if (era === "2025-11-25") await look(page, "73-playground-frames");
  // A task that asks: its question comes as that of a call does, and its result stands in the list of tasks.
  await run("task_asks");
  await dialog.getByText("Delete it?").waitFor();
  await dialog.getByRole("combobox").click();
  await page.getByRole("option", { name: "Yes" }).click();
  await button("Accept", dialog).click();
  await tab(/^Tasks/);
  await page.getByText("completed", { exact: true }).waitFor();
  await page.getByText("Deleted.").waitFor();
  check(true, `a task asks, and its result is shown ${where}`);
  if (era === "2025-11-25") await look(page, "74-playground-task");
  await button("Disconnect").click();
}

check(faults.length === 0, "no page broke its content policy, threw, or loaded from elsewhere", faults);
await browser.close();
finish();
