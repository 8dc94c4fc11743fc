// Login and consent with script switched off: README point 10. Once on a desk, once on a phone, the second time already signed in.
import { check, finish, launch, look, openContext, watch } from "./chromium.mjs";

const browser = await launch();
const context = await openContext(browser, { javaScriptEnabled: false, viewport: { width: 1280, height: 860 } });
const faults = watch(context);
context.setDefaultTimeout(20_000);
const page = await context.newPage();

await page.goto(process.env.AUTHORIZE_URL);
await page.screenshot({ path: `${process.env.PORTOLAN_ARTIFACTS}/30-login-without-script.png` });
await page.getByLabel("E-mail").fill(process.env.EMAIL);
await page.getByLabel("Password").fill("not this one at all");
await page.getByRole("button", { name: "Sign in" }).click();
await page.getByRole("alert").waitFor();
await page.getByLabel("E-mail").fill(process.env.EMAIL);
await page.getByLabel("Password").fill(process.env.PASSWORD);
await page.getByRole("button", { name: "Sign in" }).click();
const allow = page.getByRole("button", { name: "Allow" });
await allow.waitFor();
await page.screenshot({ path: `${process.env.PORTOLAN_ARTIFACTS}/31-consent-without-script.png` });

// The client's callback listens nowhere; what matters is where the browser goes.
const callback = page.waitForRequest((request) => request.url().includes("/callback?"));
// The page arms its button after a moment (AUTH-N6); a person does not click sooner either.
await page.waitForTimeout(700);
await allow.click();
const url = new URL((await callback).url());
check(url.searchParams.has("code"), "consent sends the browser back with a code", url.href);
check(url.searchParams.get("state") === "a state & more", "with the state", url.searchParams.get("state"));
check(url.searchParams.get("iss") === process.env.PORTOLAN_URL, "and the issuer", url.searchParams.get("iss"));
check(faults.length === 0, "no page broke its content policy", faults);

const phone = await openContext(browser, { viewport: { width: 390, height: 844 } });
const small = await phone.newPage();
await small.goto(process.env.AUTHORIZE_URL);
await look(small, "32-phone-login");
await small.getByLabel("E-mail").fill(process.env.EMAIL);
await small.getByLabel("Password").fill(process.env.PASSWORD);
await small.getByRole("button", { name: "Sign in" }).click();
await small.getByRole("button", { name: "Allow" }).waitFor();
await small.waitForTimeout(700);
await look(small, "33-phone-consent");
await browser.close();
finish();
