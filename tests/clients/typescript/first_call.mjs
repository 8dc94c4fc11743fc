// The official TypeScript SDK 2.x as a newcomer uses it: connect, let the person agree, call one tool.
// Arguments: URL of the server, name of a tool without required arguments.
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";
import { Provider, check, finish, listenForCallback } from "./person.mjs";

const [url, tool] = process.argv.slice(2);
const callback = await listenForCallback();
const authProvider = new Provider(callback.redirectUrl, "TypeScript SDK");
const about = { name: "TypeScript SDK", version: "1.0.0" };
const connect = async () => {
  const client = new Client(about, { versionNegotiation: { mode: "auto" } });
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider });
  // Kept for finishAuth, which needs the transport that was refused.
  await client.connect(transport).catch((error) => Promise.reject(Object.assign(error, { transport })));
  return client;
};
const refused = await connect().catch((error) => error);
check(refused instanceof UnauthorizedError, "without a token the client opens a browser", String(refused));
await refused.transport.finishAuth(await callback.arrival);
const client = await connect();
const answer = await client.callTool({ name: tool, arguments: {} });
check(!answer.isError && answer.content.length > 0, `the first call of ${tool} succeeds`, answer);
await client.close();
callback.close();
finish();
