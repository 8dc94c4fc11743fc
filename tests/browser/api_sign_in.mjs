// How an API is signed in to, in a real browser: chosen and filled in by keyboard, refused in words, kept, and one's own account; light, dark, and on a phone.
import { base, check, eventually, finish, focused, launch, look, openContext, watch } from "./chromium.mjs";

const browser = await launch();
const context = await openContext(browser);
const faults = watch(context);
context.setDefaultTimeout(20_000);
const page = await context.newPage();
const button = (name) => page.getByRole("button", { name, exact: true });
const credential = `${base}/w/harbour/sources/${process.env.SOURCE}?tab=credential`;

await page.goto(`${base}/login`);
await page.getByLabel("E-mail").fill(process.env.EMAIL);
await page.getByLabel("Password").fill(process.env.PASSWORD);
await button("Sign in").click();
await page.waitForURL((url) => url.pathname !== "/login");

// The document names the authorization server: the form is there, filled in.
await page.goto(credential);
await page.getByLabel("Token URL").waitFor();
await eventually(() => page.getByLabel("Token URL").inputValue(), (url) => url.endsWith("/token"), "the document's token URL is filled in");
await look(page, "50-api-sign-in");

// By keyboard: the next kind, which is the first one again, and back.
const kind = page.getByLabel("Authentication").first();
await kind.focus();
const choose = async (key) => {
  await page.keyboard.press("ArrowDown");
  await page.getByRole("option").first().waitFor();
  await page.keyboard.press(key);
  await page.keyboard.press("Enter");
  await page.getByRole("option").first().waitFor({ state: "hidden" });
};
await choose("ArrowDown");
await page.getByLabel("Key", { exact: true }).waitFor();
await focused(kind, "the focus stays where a kind was chosen by keyboard");
await choose("ArrowUp");
await page.getByLabel("Token URL").waitFor();
await focused(kind, "also where another form follows");

// An unusable value is refused with a text at its field.
await page.getByLabel("Token URL").fill("http://127.0.0.1:1/token");
await page.getByLabel("Client ID", { exact: true }).fill("app");
await page.getByLabel("Client secret").fill("planted-client-secret");
await page.getByLabel("Client secret").press("Enter");
await page.getByRole("alert").first().waitFor();
await eventually(() => page.getByLabel("Token URL").getAttribute("aria-invalid"), (invalid) => invalid === "true", "the field at fault is marked");
await look(page, "51-api-sign-in-refused");

// Kept: what stands there then, for who has no account yet.
await page.getByLabel("Token URL").fill("https://login.example.org/token");
await page.getByLabel("Token URL").press("Enter");
const mine = page.getByRole("link", { name: "Connect my account" });
await mine.waitFor();
check(!(await page.content()).includes("planted-client-secret"), "the secret does not come back");
await look(page, "52-api-own-account");
await page.emulateMedia({ colorScheme: "dark" });
await look(page, "53-api-own-account-dark");
await page.emulateMedia({ colorScheme: "light" });
await page.setViewportSize({ width: 390, height: 844 });
await look(page, "54-api-own-account-phone");
await page.goto(await mine.getAttribute("href"));
await page.getByRole("button", { name: /^Continue to/ }).waitFor();
await look(page, "55-connect-phone");

// One shared account.
await page.goto(credential);
await page.getByText("One shared account").click();
await button("Connect an account").waitFor();
await page.getByText("Connect an account to call its tools.").waitFor();
check(true, "the page says that an account is missing");
await look(page, "56-api-workspace-phone");

check(faults.length === 0, "no page broke its content policy, threw, or loaded from elsewhere", faults);
await browser.close();
finish();
