// The surroundings of the libraries: a loopback callback, and lines that the harness reads.
// `open URL` asks the person to open a browser.
import { createServer } from "node:http";

/** Listens on a free loopback port. `arrival` resolves with the address of the first callback. */
export async function listenForCallback() {
  let arrived;
  const arrival = new Promise((resolve) => (arrived = resolve));
  const server = createServer((request, response) => {
    response.end("You can close this window.");
    const url = new URL(request.url, redirectUri);
    if (url.pathname === "/callback") arrived(url);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const redirectUri = `http://127.0.0.1:${server.address().port}/callback`;
  return { redirectUri, arrival, close: () => server.close() };
}

/** Made by the harness: the issuer, a published server, a service account by secret and one by key.
 * */
export const given = JSON.parse(process.env.PORTOLAN_GIVEN);

/** The key of the second account. */
export const signingKey = () =>
  crypto.subtle.importKey(
    "pkcs8",
    Buffer.from(given.by_key.private_key, "base64"),
    { name: "ECDSA", namedCurve: "P-256" },
    false,
    ["sign"],
  );

let failures = 0;

/** One line of the report. */
export function check(holds, sentence, found) {
  if (!holds) failures += 1;
  console.log(`${holds ? "ok" : "not ok"} - ${sentence}${holds ? "" : `; found ${JSON.stringify(found)}`}`);
}

/** Whether the published server answers to a token. */
export async function works(token) {
  const response = await fetch(given.mcp_url, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "tools/list",
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/list",
      params: {
        _meta: {
          "io.modelcontextprotocol/protocolVersion": "2026-07-28",
          "io.modelcontextprotocol/clientInfo": { name: "library", version: "1" },
          "io.modelcontextprotocol/clientCapabilities": {},
        },
      },
    }),
  });
  return response.status === 200;
}

/** Ends the program: 0 only if every check held. */
export function finish() {
  console.log("1..done");
  process.exit(failures === 0 ? 0 : 1);
}
