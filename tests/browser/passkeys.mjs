// Passkeys in a real browser, with Chromium's own virtual authenticators: enrol, sign in by button and by autofill, second factor, confirm, remove.
import { base, check, finish, launch, look, openContext, watch } from "./chromium.mjs";

const browser = await launch();
const context = await openContext(browser);
const faults = watch(context);
context.setDefaultTimeout(20_000);
const page = await context.newPage();
const button = (name) => page.getByRole("button", { name, exact: true });
const session = await context.newCDPSession(page);
await session.send("WebAuthn.enable", { enableUI: false });

/** A laptop whose screen lock holds passkeys. */
const device = { protocol: "ctap2", ctap2Version: "ctap2_1", transport: "internal", hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true };
const add = async (options) => (await session.send("WebAuthn.addVirtualAuthenticator", { options })).authenticatorId;
const credentials = async (authenticatorId) => (await session.send("WebAuthn.getCredentials", { authenticatorId })).credentials;

const isSignedIn = () => page.evaluate(() => fetch("/api/v1/me").then((answer) => answer.ok));
/** As another browser: without cookies, with the same authenticators. */
const signOut = () => context.clearCookies();

async function password() {
  await page.goto(`${base}/login`);
  await page.getByLabel("E-mail").fill(process.env.EMAIL);
  await page.getByLabel("Password").fill(process.env.PASSWORD);
  await button("Sign in").click();
}

// Enrol.
await password();
await page.waitForURL((url) => url.pathname !== "/login");
const laptop = await add(device);
await page.goto(`${base}/account/passkeys`);
await page.getByText("You have no passkeys yet").waitFor();
await look(page, "40-passkeys-none");
await page.getByLabel("Name").fill("This laptop");
await button("Add passkey").click();
await page.getByText("The passkey was added").waitFor();
check((await credentials(laptop)).length === 1, "the authenticator holds one credential", await credentials(laptop));
const [made] = await credentials(laptop);
check(made.isResidentCredential && made.rpId === new URL(base).hostname, "which is discoverable and bound to the host", made);
await look(page, "41-passkeys-one");

// The same authenticator is not asked twice.
await button("Add passkey").click();
await page.getByRole("alert").filter({ hasText: "already has a passkey for your account" }).waitFor();

// Sign in by the button: the passkey identifies the person.
await signOut();
await session.send("WebAuthn.setAutomaticPresenceSimulation", { authenticatorId: laptop, enabled: false });
await page.goto(`${base}/login`);
await look(page, "42-login-with-passkey");
check((await page.getByLabel("E-mail").getAttribute("autocomplete")) === "username webauthn", "the address field offers passkeys");
await session.send("WebAuthn.setAutomaticPresenceSimulation", { authenticatorId: laptop, enabled: true });
await button("Sign in with a passkey").click();
await page.waitForURL((url) => url.pathname !== "/login" && url.pathname !== "/login/passkey");
check(await isSignedIn(), "a discoverable passkey signs in without address and password");

// A person whom the authenticator does not know.
await signOut();
await session.send("WebAuthn.setUserVerified", { authenticatorId: laptop, isUserVerified: false });
await page.goto(`${base}/login`);
await button("Sign in with a passkey").click();
await page.getByRole("alert").filter({ hasText: "No passkey was used" }).waitFor();
check(!(await isSignedIn()), "without verification nobody is signed in");
await session.send("WebAuthn.setUserVerified", { authenticatorId: laptop, isUserVerified: true });

// Autofill: the page asks by itself, and the browser answers when the person picks the passkey.
await page.goto(`${base}/login`);
await page.waitForURL((url) => url.pathname !== "/login" && url.pathname !== "/login/passkey");
check(await isSignedIn(), "a passkey among the autofill of the address field signs in");

// Second factor: an authenticator app is in use, and the passkey stands in for its code.
await page.goto(`${base}/account/two-factor`);
const proof = page.getByRole("link", { name: "Set up authenticator app" });
if (await proof.count()) {
  await proof.click();
  await button("Use a passkey").click();
  await page.waitForURL((url) => url.pathname === "/account/two-factor");
}
await button("Set up authenticator app").click();
const secret = (await page.locator("p.mono").textContent()).replaceAll(" ", "").trim();
await page.getByLabel("6-digit code from the app").fill(await totp(secret));
await button("Turn on").click();
await page.getByText("Save your recovery codes").waitFor();
await look(page, "43-recovery-codes");
await session.send("WebAuthn.setAutomaticPresenceSimulation", { authenticatorId: laptop, enabled: false });
await signOut();
await password();
await page.getByLabel("6-digit code").waitFor();
check(!(await isSignedIn()), "the password alone signs nobody in");
await look(page, "43-code-or-passkey");
await session.send("WebAuthn.setAutomaticPresenceSimulation", { authenticatorId: laptop, enabled: true });
await button("Use a passkey instead").click();
await page.waitForURL((url) => !url.pathname.startsWith("/login"));
check(await isSignedIn(), "password and passkey do");

// Sudo by passkey.
await page.goto(`${base}/account/confirm?request=account.passkeys`);
await look(page, "44-confirm");
await button("Use a passkey").click();
await page.waitForURL((url) => url.pathname === "/account/passkeys");

// On a phone, in the dark, with a second one on a security key.
await session.send("WebAuthn.removeVirtualAuthenticator", { authenticatorId: laptop });
const key = await add({ ...device, transport: "usb" });
await page.getByLabel("Name", { exact: false }).last().fill("Blue key");
await button("Add passkey").click();
await page.getByText("The passkey was added").waitFor();
check((await credentials(key)).length === 1, "a second authenticator takes a second passkey");
await page.emulateMedia({ colorScheme: "dark" });
await page.setViewportSize({ width: 390, height: 844 });
await look(page, "45-phone-passkeys");
await page.setViewportSize({ width: 1280, height: 860 });
await page.emulateMedia({ colorScheme: "light" });

// Remove: it opens nothing any more.
const row = page.getByRole("listitem").filter({ hasText: "Blue key" });
await row.getByText("Remove…").click();
await row.getByRole("button", { name: /^Remove passkey/ }).click();
await page.getByText("The passkey was removed").waitFor();
check((await page.locator("main").getByRole("listitem").count()) === 1, "one is left");
await signOut();
await session.send("WebAuthn.setAutomaticPresenceSimulation", { authenticatorId: key, enabled: false });
await page.goto(`${base}/login`);
await session.send("WebAuthn.setAutomaticPresenceSimulation", { authenticatorId: key, enabled: true });
await button("Sign in with a passkey").click();
await page.getByRole("alert").filter({ hasText: "was not accepted" }).waitFor();
check(!(await isSignedIn()), "a removed passkey signs nobody in");

check(faults.length === 0, "no page broke its content policy, threw, or loaded from elsewhere", faults);
await browser.close();
finish();

/** The code of an authenticator app for a secret (RFC 6238). */
async function totp(base32) {
  const bits = [...base32].map((letter) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(letter).toString(2).padStart(5, "0")).join("");
  const bytes = Uint8Array.from(bits.match(/.{8}/g), (byte) => Number.parseInt(byte, 2));
  const hmac = await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-1" }, false, ["sign"]);
  const step = new DataView(new ArrayBuffer(8));
  step.setBigUint64(0, BigInt(Math.floor(Date.now() / 30_000)));
  const mac = new DataView(await crypto.subtle.sign("HMAC", hmac, step.buffer));
  const at = mac.getUint8(19) & 15;
  return String((mac.getUint32(at) & 0x7fffffff) % 1_000_000).padStart(6, "0");
}
