// The surroundings of both SDK generations: a loopback callback, as desktop clients have one, a
// store in memory, and lines that the harness reads. `open URL` asks the person to open a browser.
import { createServer } from "node:http";

/** Listens on a free loopback port. `arrival` resolves with the query of the first callback. */
export async function listenForCallback() {
  let arrived;
  const arrival = new Promise((resolve) => (arrived = resolve));
  const server = createServer((request, response) => {
    const url = new URL(request.url, "http://127.0.0.1");
    response.end("You can close this window.");
    if (url.pathname === "/callback") arrived(url.searchParams);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    redirectUrl: `http://127.0.0.1:${server.address().port}/callback`,
    arrival,
    close: () => server.close(),
  };
}

/** An OAuthClientProvider of either SDK, in memory. */
export class Provider {
  constructor(redirectUrl, clientName) {
    this.redirectUrl = redirectUrl;
    this.clientMetadata = {
      client_name: clientName,
      redirect_uris: [redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    };
    this.expectedState = crypto.randomUUID();
    this.saved = {};
  }
  state() {
    return this.expectedState;
  }
  clientInformation() {
    return this.saved.client;
  }
  saveClientInformation(client) {
    this.saved.client = client;
  }
  tokens() {
    return this.saved.tokens;
  }
  saveTokens(tokens) {
    this.saved.tokens = tokens;
  }
  saveCodeVerifier(verifier) {
    this.saved.verifier = verifier;
  }
  codeVerifier() {
    return this.saved.verifier;
  }
  redirectToAuthorization(url) {
    console.log(`open ${url}`);
  }
}

let failures = 0;

let listings = 0;

/** fetch, counting the requests for a page of the list: SDK 2.x collects the pages by itself. */
export function countingFetch(input, init) {
  countListing(init?.body);
  return fetch(input, init);
}

/** Counts a message, if it is a request for a page of the list. */
export function countListing(message) {
  if (typeof message === "string" && message.includes('"tools/list"')) listings += 1;
}

/** One line of the report. */
export function check(holds, sentence, found) {
  if (!holds) failures += 1;
  console.log(`${holds ? "ok" : "not ok"} - ${sentence}${holds ? "" : `; found ${JSON.stringify(found)}`}`);
}

/** Ends the program: 0 only if every check held. */
export function finish() {
  console.log(`1..done`);
  process.exit(failures === 0 ? 0 : 1);
}

/** The checks that every client makes once it is connected. */
export async function useTools(client) {
  const names = [];
  const before = listings;
  let cursor;
  do {
    const page = await client.listTools(cursor === undefined ? undefined : { cursor });
    names.push(...page.tools.map((tool) => tool.name));
    cursor = page.nextCursor;
  } while (cursor !== undefined && listings - before < 50);
  check(listings - before > 1, "the list comes in several pages", listings - before);
  check(new Set(names).size === names.length, "no tool is listed twice", names);
  check(names.includes("echo_message") && names.includes("get_thing"), "the imported operations are listed", names);

  const echo = await client.callTool({ name: "echo_message", arguments: { message: "Grüße, 海图 🧭" } });
  check(!echo.isError, "a call succeeds", echo);
  check(echo.structuredContent?.message === "Grüße, 海图 🧭", "the API's answer comes back as structured content", echo);
  check(JSON.parse(echo.content[0].text).message === "Grüße, 海图 🧭", "and as text", echo.content);

  const missing = await client.callTool({ name: "get_thing", arguments: { id: 404 } });
  check(missing.isError === true && /404/.test(missing.content[0].text), "an error of the API is a tool error with its status", missing);

  const wrong = await failure(() => client.callTool({ name: "get_thing", arguments: { id: "seven" } }));
  check(/id/.test(wrong), "a wrong argument is refused and named", wrong);

  const unknown = await failure(() => client.callTool({ name: "no_such_tool", arguments: {} }));
  check(/no_such_tool|[Uu]nknown tool|not found/.test(unknown), "an unknown tool is an error that names it", unknown);
}

/** The requests of every SDK for prompts and resources. */
export async function useOffers(client) {
  const { prompts } = await client.listPrompts();
  check(prompts.some((one) => one.name === "test_prompt_with_arguments" && one.arguments.length === 2), "prompts are listed with their arguments", prompts);
  const prompt = await client.getPrompt({ name: "test_prompt_with_arguments", arguments: { arg1: "海图", arg2: "2" } });
  check(prompt.messages[0].content.text === "Prompt with arguments: arg1='海图', arg2='2'", "a prompt is filled in", prompt);
  const missing = await failure(() => client.getPrompt({ name: "test_prompt_with_arguments" }));
  check(/arg1/.test(missing), "a missing argument is named", missing);

  const { resources } = await client.listResources();
  check(resources.some((one) => one.uri === "test://static-binary" && one.mimeType === "image/png"), "resources are listed", resources);
  const { resourceTemplates } = await client.listResourceTemplates();
  check(resourceTemplates.some((one) => one.uriTemplate === "things://{id}"), "templates are listed", resourceTemplates);
  const thing = await client.readResource({ uri: "things://7" });
  check(JSON.parse(thing.contents[0].text).id === 7, "a template that an API answers is read", thing);
  const nothing = await failure(() => client.readResource({ uri: "test://nothing" }));
  check(/[Rr]esource not found/.test(nothing), "what is not there is an error", nothing);

  const { completion } = await client.complete({ ref: { type: "ref/prompt", name: "test_prompt_with_arguments" }, argument: { name: "arg1", value: "test" } });
  check(completion.values.join() === "test one,test two", "declared values complete an argument", completion);
}

/** The text of the error that a call ends with, whether thrown or as a result. */
async function failure(call) {
  try {
    const result = await call();
    return result.isError ? result.content.map((block) => block.text).join("\n") : `no error: ${JSON.stringify(result)}`;
  } catch (error) {
    return String(error.message);
  }
}
