// A trusted pipeline: made by keyboard, used by a job of a CI system with its own issuer, refused where its conditions do
// not fit, changed and deleted; light, dark and on a phone.
import { execFile } from "node:child_process";
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { createServer } from "node:http";
import { base, check, eventually, focused, look, lookEverywhere, tabTo, walkWithTab } from "./chromium.mjs";
import { button, open } from "./harbour.mjs";

const { PORT } = process.env;
const issuer = `http://127.0.0.1:${PORT}`;
const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const kid = createHash("sha256").update(publicKey.export({ type: "spki", format: "der" })).digest("base64url");
const documents = {
  "/.well-known/openid-configuration": { issuer, jwks_uri: `${issuer}/jwks`, id_token_signing_alg_values_supported: ["ES256"] },
  "/jwks": { keys: [{ ...publicKey.export({ format: "jwk" }), kid, alg: "ES256", use: "sig" }] },
};
const main = "repo:harbour/berths:ref:refs/heads/main";
const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url, issuer);
  // The endpoint of GitHub that gives a job its ID token.
  const isAsked = pathname === "/id-token" && request.headers.authorization === "Bearer of-the-runner";
  const body = isAsked ? { value: jwt({ sub: main, aud: searchParams.get("audience") }) } : documents[pathname];
  response.writeHead(body ? 200 : 404, { "content-type": "application/json" }).end(JSON.stringify(body ?? {}));
});
await new Promise((ready) => server.listen(Number(PORT), "127.0.0.1", ready));

const { issuer: us } = await (await fetch(`${base}/.well-known/oauth-authorization-server`)).json();

/** The JWT of a job. */
function jwt(claims) {
  const now = Math.floor(Date.now() / 1000);
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const all = { iss: issuer, aud: us, iat: now, nbf: now, exp: now + 300, jti: crypto.randomUUID(), repository: "harbour/berths", ...claims };
  const signed = `${part({ alg: "ES256", typ: "JWT", kid })}.${part(all)}`;
  const signature = sign("sha256", Buffer.from(signed), { key: privateKey, dsaEncoding: "ieee-p1363" }).toString("base64url");
  return `${signed}.${signature}`;
}

/** The answer to a job that exchanges its JWT. */
async function job(claims) {
  const form = {
    grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
    subject_token: jwt(claims),
    subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
    resource: `${us}/api/v1/workspaces/harbour`,
  };
  const answer = await fetch(`${base}/oauth/token`, { method: "POST", body: new URLSearchParams(form) });
  return { status: answer.status, body: await answer.json() };
}

/** The export of the workspace by the command, in a job of GitHub Actions without a key (CONF-17). */
function exported() {
  const env = {
    HOME: process.env.PORTOLAN_ARTIFACTS, PORTOLAN_URL: us, PORTOLAN_WORKSPACE: "harbour",
    ACTIONS_ID_TOKEN_REQUEST_URL: `${issuer}/id-token?v=2`, ACTIONS_ID_TOKEN_REQUEST_TOKEN: "of-the-runner",
  };
  return new Promise((resolve) => {
    execFile(process.env.PORTOLAN_PROGRAM, ["export"], { env }, (error, stdout, stderr) => resolve({ code: error?.code ?? 0, stdout, stderr }));
  });
}

async function about(token) {
  const answer = await fetch(`${base}/api/v1/token`, { headers: { authorization: `Bearer ${token}` } });
  return { status: answer.status, body: await answer.json() };
}

const { page, end } = await open();
const dialog = page.getByRole("dialog");
const table = page.getByRole("table", { name: "Trusted pipelines" });

await page.goto(`${base}/w/harbour/keys`);
await page.getByRole("heading", { name: "No trusted pipelines" }).waitFor();
await lookEverywhere(page, "120-pipelines-none");
const start = button("Trust a pipeline", page);
await start.focus();
await page.keyboard.press("Enter");
await dialog.getByLabel("Name").waitFor();
await lookEverywhere(page, "121-pipelines-new");
await page.keyboard.press("Escape");
await dialog.waitFor({ state: "hidden" });
await focused(start, "Escape closes the dialog and gives the focus back");

// By keyboard, with an issuer that cannot be asked, and then with the right one.
await page.keyboard.press("Enter");
await dialog.getByLabel("Name").waitFor();
const fill = async (label, text) => {
  await tabTo(page, dialog.getByLabel(label), label);
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.type(text);
};
await fill("Name", "Deploy");
await fill("Issuer", "http://127.0.0.1:1");
await fill("Subject", main);
await fill("Further claims", "repository = harbour/berths");
await tabTo(page, dialog.getByRole("checkbox", { name: "registry:write" }), "a scope");
await page.keyboard.press("Space");
await tabTo(page, button("Trust pipeline", dialog), "the button that trusts");
await page.keyboard.press("Enter");
await dialog.getByText(/This issuer cannot be used/).waitFor();
await focused(dialog.getByLabel("Issuer"), "the focus goes to the field at fault");
await look(page, "122-pipelines-refused");
await fill("Issuer", issuer);
await tabTo(page, button("Trust pipeline", dialog), "the button that trusts");
await page.keyboard.press("Enter");
await page.getByText("Deploy is trusted.").waitFor();
await table.getByText(main).waitFor();

const first = await job({ sub: main });
check(first.status === 200 && first.body.token_type === "Bearer" && first.body.expires_in === 900, "the job gets a token", first);
const used = await about(first.body.access_token);
check(used.status === 200 && used.body.name === "Deploy" && used.body.workspaces[0].role === "developer", "the token works", used);
const file = await exported();
check(file.code === 0 && file.stdout.includes("format: portolan/v1"), "the command needs no key in the job", file);
const other = await job({ sub: "repo:harbour/berths:pull_request" });
check(other.status === 400 && other.body.error === "invalid_grant", "a job of another kind gets none", other);
await page.reload();
await table.getByText("repo:harbour/berths:pull_request").waitFor();
await eventually(
  () => table.textContent(),
  (seen) => seen.includes("Refused once") && !seen.includes("never"),
  "the page shows the refusal and the use",
);
await lookEverywhere(page, "123-pipelines");
await walkWithTab(page, "keys with a trusted pipeline");

await tabTo(page, button("Change Deploy", page), "the button that changes");
await page.keyboard.press("Enter");
await dialog.getByLabel("Name").waitFor();
await eventually(() => dialog.getByLabel("Further claims").inputValue(), (text) => text === "repository = harbour/berths", "the form has the present claims");
await fill("Minutes until a token expires", "30");
await tabTo(page, button("Save", dialog), "the button that saves");
await page.keyboard.press("Enter");
await page.getByText("Deploy was changed.").waitFor();
await table.getByText("for 30 minutes").waitFor();
check((await about(first.body.access_token)).status === 401, "a change ends the tokens of jobs");
await eventually(() => table.textContent(), (text) => !text.includes("Refused"), "and the refusals of the former conditions");
const second = await job({ sub: main });
check(second.body.expires_in === 1800, "the next token has the new life", second);

await tabTo(page, button("Delete Deploy", page), "the button that deletes");
await page.keyboard.press("Enter");
await dialog.getByText(/get no more tokens/).waitFor();
await look(page, "124-pipelines-delete");
await button("Delete", dialog).click();
await page.getByText("Deploy was deleted.").waitFor();
await page.getByRole("heading", { name: "No trusted pipelines" }).waitFor();
check((await about(second.body.access_token)).status === 401, "a deletion ends the tokens of jobs");
check((await job({ sub: main })).status === 400, "and jobs get no more");
const refused = await exported();
check(refused.code === 1 && refused.stderr.includes("harbour gave this job no token"), "the command says so", refused);
await page.goto(`${base}/w/harbour/audit`);
await page.getByText("Access token issued").first().waitFor();
check(true, "the audit log names the tokens of the pipeline");

server.close();
await end();
