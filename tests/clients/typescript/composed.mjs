// The walk of an official SDK's client through one server that is composed of five others, each
// written with another SDK. Their tools, prompts and resources stand side by side, and every part
// is used whole. PORTOLAN_EXPECTED has the expected answers; none is taken from Portolan.
import { isDeepStrictEqual } from "node:util";
import { check } from "./person.mjs";

const expected = JSON.parse(process.env.PORTOLAN_EXPECTED);
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";
const text = (value) => ({ type: "text", text: value });

/** The kinds of questions that the client supports. */
export const capabilities = { elicitation: { form: {} }, sampling: {}, roots: {} };

const pages = {};

/** fetch, counting the requests for pages: SDK 2.x collects them by itself. */
export function countingFetch(input, init) {
  const method = typeof init?.body === "string" ? /"method":"([a-z/]+\/list)"/.exec(init.body)?.[1] : undefined;
  if (method) pages[method] = (pages[method] ?? 0) + 1;
  return fetch(input, init);
}

let asked = [];
const said = { name: "Ada", username: "Ada", email: "ada@example.com", color: "blue" };
const answers = {
  "elicitation/create": ({ requestedSchema }) => {
    const fields = Object.keys(requestedSchema.properties);
    return { action: "accept", content: Object.fromEntries(fields.map((name) => [name, said[name] ?? "harbours"])) };
  },
  "sampling/createMessage": () => ({ role: "assistant", model: "m", content: text("Hello") }),
  "roots/list": () => ({ roots: [{ uri: "file:///a" }] }),
};

/** Answers a question of the server's, and keeps it. */
export function answer(method, params) {
  asked.push({ method, params });
  return answers[method](params);
}

/** One line of the report: this came, as it is on the wire, and nothing else. */
function same(found, wanted, sentence) {
  const plain = found === undefined ? undefined : JSON.parse(JSON.stringify(found));
  check(isDeepStrictEqual(plain, wanted), sentence, plain);
}

/** MCP-PG-1, MCP-TL-3: all pages of a list, in their order. */
async function lists(client, list, method, member, key, wanted) {
  const found = [];
  let cursor;
  do {
    const page = await client[list](cursor === undefined ? undefined : { cursor });
    found.push(...page[member].map((one) => one[key]));
    cursor = page.nextCursor;
  } while (cursor !== undefined && found.length <= wanted.length);
  same(found, wanted, `${method} gives all there is, in its order`);
  check(pages[method] === expected.pages[method], `${method} takes ${expected.pages[method]} pages`, pages[method]);
}

/** The whole walk. `call(client, params, onprogress)` calls a tool in the SDK's way. */
export async function walk(client, call) {
  for (const method of Object.keys(pages)) delete pages[method];
  await lists(client, "listTools", "tools/list", "tools", "name", expected.tools);
  await lists(client, "listPrompts", "prompts/list", "prompts", "name", expected.prompts);
  await lists(client, "listResources", "resources/list", "resources", "uri", expected.resources);
  await lists(client, "listResourceTemplates", "resources/templates/list", "resourceTemplates", "uriTemplate", expected.templates);
  for (const part of expected.parts) {
    const { word } = part;
    const calls = (name, args, onprogress) => call(client, { name: `${word}_${name}`, arguments: args }, onprogress);
    await results(calls, part);
    await notices(calls, word);
    await prompts(client, part);
    await resources(client, word);
    await questions(client, calls, part);
  }
}

/** Results as the server of the part gave them, but for the names that its resources have here (MCP-X-6B, MCP-RE-12). */
async function results(calls, { word, failure, whole }) {
  const gives = async (name, args, content) => {
    const result = await calls(name, args);
    same(result.content, content, `${word}: ${name} gives its content`);
    check(!result.isError, `${word}: ${name} is no error`, result.isError);
    return result;
  };
  await gives("test_simple_text", {}, [text("This is a simple text response for testing.")]);
  const weather = { city: "Kiel", degrees: 21.5 };
  const link = { type: "resource_link", uri: `${word}://static-text`, name: "static-text", mimeType: "text/plain" };
  const structured = await gives("test_structured_content", { city: "Kiel" }, [text(JSON.stringify(weather)), link]);
  same(structured.structuredContent, weather, `${word}: structured content comes through`);
  const failed = await calls("test_error_handling", {});
  same(failed.content, [text(failure)], `${word}: a tool that fails says why`);
  check(failed.isError === true, `${word}: and says that it is an error`, failed.isError);
  if (!whole) return;
  await gives("test_image_content", {}, [{ type: "image", data: PNG, mimeType: "image/png" }]);
  await gives("test_audio_content", {}, [{ type: "audio", data: WAV, mimeType: "audio/wav" }]);
  const held = { uri: "test://embedded-resource", mimeType: "text/plain", text: "This is an embedded resource content." };
  await gives("test_embedded_resource", {}, [{ type: "resource", resource: held }]);
}

/** MCP-X-76: progress under the client's own token. */
async function notices(calls, word) {
  const steps = [];
  const result = await calls("test_tool_with_progress", {}, ({ progress, total, message }) => steps.push({ progress, total, message }));
  same(result.content, [text("Reported progress.")], `${word}: a call with progress ends`);
  const wanted = [
    { progress: 0, total: 100, message: "begun" },
    { progress: 50, total: 100, message: "half" },
    { progress: 100, total: 100, message: "done" },
  ];
  same(steps, wanted, `${word}: progress is told in its order`);
}

async function prompts(client, { word }) {
  const name = `${word}_test_prompt_with_arguments`;
  const prompt = await client.getPrompt({ name, arguments: { arg1: "海图", arg2: "2" } });
  const message = { role: "user", content: text("Prompt with arguments: arg1='海图', arg2='2'") };
  same(prompt.messages, [message], `${word}: a prompt is filled in`);
  check(prompt.description === "A prompt with arguments.", `${word}: and described`, prompt.description);
  const ref = { type: "ref/prompt", name };
  const { completion } = await client.complete({ ref, argument: { name: "arg1", value: "par" } });
  same(completion, { values: ["paris", "park", "party"], total: 3, hasMore: false }, `${word}: an argument is completed`);
}

async function resources(client, word) {
  const read = async (uri) => (await client.readResource({ uri })).contents;
  const fixed = { uri: `${word}://static-text`, mimeType: "text/plain", text: "This is the content of the static text resource." };
  same(await read(fixed.uri), [fixed], `${word}: a text is read under the name that it has here`);
  const image = { uri: `${word}://static-binary`, mimeType: "image/png", blob: PNG };
  same(await read(image.uri), [image], `${word}: bytes are read`);
  const uri = `${word}://template/7/data`;
  const [document] = await read(uri);
  same([document.uri, document.mimeType], [uri, "application/json"], `${word}: a template is read`);
  same(JSON.parse(document.text), { id: "7", templateTest: true, data: "Data for ID: 7" }, `${word}: and filled in`);
  const ref = { type: "ref/resource", uri: `${word}://template/{id}/data` };
  const { completion } = await client.complete({ ref, argument: { name: "id", value: "park" } });
  same(completion, { values: ["park"], total: 1, hasMore: false }, `${word}: a template's variable is completed`);
  const nothing = await read(`${word}://nothing`).catch((error) => String(error.message));
  check(typeof nothing === "string" && /[Rr]esource not found/.test(nothing), `${word}: what is not there is an error`, nothing);
}

/** MCP-X-20, MCP-X-22, MCP-X-28, MCP-X-29: for any eras of the two sides, the question reaches the
 * client's handler, and its answer reaches the server that asked. */
async function questions(client, calls, { word, whole, python }) {
  const ends = async (name, args, words, methods) => {
    asked = [];
    const result = await calls(name, args);
    same(result.content, [text(words)], `${word}: ${name} hears the answer`);
    same(asked.map((one) => one.method).sort(), methods, `${word}: ${name} asks for that alone`);
    return result;
  };
  await ends("test_input_required_result_elicitation", {}, "Hello, Ada!", ["elicitation/create"]);
  check(asked[0]?.params.message === "What is your name?", `${word}: the form says what it wants`, asked);
  same(asked[0]?.params.requestedSchema.required, ["name"], `${word}: and which field it needs`);
  await ends("test_sampling", { prompt: "Say hello" }, "LLM response: Hello", ["sampling/createMessage"]);
  same(asked[0]?.params.messages, [{ role: "user", content: text("Say hello") }], `${word}: the model is asked what the tool was asked`);
  check(asked[0]?.params.maxTokens === 100, `${word}: within its limit`, asked);
  if (!whole) return;
  await ends("test_input_required_result_list_roots", {}, "Roots: file:///a", ["roots/list"]);
  await ends("test_input_required_result_multi_round", {}, "Ada likes blue.", ["elicitation/create", "elicitation/create"]);
  const all = ["elicitation/create", "roots/list", "sampling/createMessage"];
  await ends("test_input_required_result_multiple_inputs", {}, "Hello Ada, 1 roots", all);
  asked = [];
  const { messages } = await client.getPrompt({ name: `${word}_test_input_required_result_prompt` });
  same(messages, [{ role: "user", content: text("Context: harbours") }], `${word}: a prompt asks too`);
  same(asked.map((one) => one.method), ["elicitation/create"], `${word}: and for that alone`);
  if (!python) return;
  const liked = await ends("test_ask_by_schema", {}, "You like blue.", ["elicitation/create"]);
  same(liked.structuredContent, { result: "You like blue." }, `${word}: and its answer is structured`);
}
