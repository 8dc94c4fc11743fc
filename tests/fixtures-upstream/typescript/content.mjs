// The content of every fixture, for each era: the names and texts that the scenarios of the official
// conformance suite require of a server, and a few tools for the tests about sessions, cancellation
// and changing lists. A server supplies a `call` with the functions of its era:
//   progress(n, total, message), log(level, data), ask({key: {method, params}}) → {key: result}, capabilities(), pause(ms), detach(), session

export const INFO = { name: 'fixture-upstream', version: '1.4.2', title: 'Fixture upstream' };
export const INSTRUCTIONS = 'Every tool here exists for a test.';

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=';

const nothing = { type: 'object', properties: {}, additionalProperties: false };
const form = (properties, required = Object.keys(properties)) => ({ type: 'object', properties, required });
const text = (value) => ({ content: [{ type: 'text', text: value }] });
const elicit = (message, requestedSchema) => ({ method: 'elicitation/create', params: { message, requestedSchema } });
const sample = (question, maxTokens = 100) => ({
    method: 'sampling/createMessage',
    params: { messages: [{ role: 'user', content: { type: 'text', text: question } }], maxTokens },
});
const roots = { method: 'roots/list', params: {} };
const said = (result) => {
    const content = Array.isArray(result?.content) ? result.content[0] : result?.content;
    return content?.text ?? 'nothing';
};

/** A request that cannot go on without what the client did not declare. */
export class Missing extends Error {
    constructor(capabilities) {
        super(`The client has to declare ${JSON.stringify(capabilities)}.`);
        this.capabilities = capabilities;
    }
}

/** Lists that tools change, and the listeners for changes. */
export const world = { addedTool: false, addedPrompt: false, touched: 0, cancelled: 0, listeners: new Set() };
function changed(what, uri) {
    for (const listener of world.listeners) listener(what, uri);
}

const tools = {
    test_simple_text: {
        description: 'Answers with a text.',
        annotations: { readOnlyHint: true },
        run: () => text('This is a simple text response for testing.'),
    },
    test_image_content: {
        description: 'Answers with an image.',
        run: () => ({ content: [{ type: 'image', data: PNG, mimeType: 'image/png' }] }),
    },
    test_audio_content: {
        description: 'Answers with a sound.',
        run: () => ({ content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] }),
    },
    test_embedded_resource: {
        description: 'Answers with a resource inside.',
        run: () => ({
            content: [
                {
                    type: 'resource',
                    resource: { uri: 'test://embedded-resource', mimeType: 'text/plain', text: 'This is an embedded resource content.' },
                },
            ],
        }),
    },
    test_multiple_content_types: {
        description: 'Answers with a text, an image and a resource.',
        run: () => ({
            content: [
                { type: 'text', text: 'Multiple content types test:' },
                { type: 'image', data: PNG, mimeType: 'image/png' },
                {
                    type: 'resource',
                    resource: {
                        uri: 'test://mixed-content-resource',
                        mimeType: 'application/json',
                        text: JSON.stringify({ test: 'data', value: 123 }),
                    },
                },
            ],
        }),
    },
    test_structured_content: {
        description: 'Answers with a link and structured content.',
        inputSchema: form({ city: { type: 'string' } }),
        outputSchema: form({ city: { type: 'string' }, degrees: { type: 'number' } }),
        run: ({ city }) => {
            const structuredContent = { city, degrees: 21.5 };
            return {
                content: [
                    { type: 'text', text: JSON.stringify(structuredContent) },
                    { type: 'resource_link', uri: 'test://static-text', name: 'static-text', mimeType: 'text/plain' },
                ],
                structuredContent,
            };
        },
    },
    test_tool_with_logging: {
        description: 'Logs three lines while it runs.',
        run: async (_, call) => {
            await call.log('info', 'Tool execution started');
            await call.pause(50);
            await call.log('info', 'Tool processing data');
            await call.pause(50);
            await call.log('info', 'Tool execution completed');
            return text('Logged three lines.');
        },
    },
    test_logging_tool: {
        description: 'Logs a line.',
        run: async (_, call) => {
            await call.log('info', 'A line.');
            return text('Logged a line.');
        },
    },
    test_tool_with_progress: {
        description: 'Reports progress three times.',
        run: async (_, call) => {
            await call.progress(0, 100, 'begun');
            await call.pause(50);
            await call.progress(50, 100, 'half');
            await call.pause(50);
            await call.progress(100, 100, 'done');
            return text('Reported progress.');
        },
    },
    test_error_handling: {
        description: 'Fails.',
        run: () => ({ ...text('This tool intentionally returns an error for testing'), isError: true }),
    },
    test_reconnection: {
        description: 'Hangs up on its caller and answers whoever comes back.',
        run: async (_, call) => {
            await call.detach();
            await call.pause(100);
            return text('You came back.');
        },
    },
    test_slow: {
        description: 'Takes its time, and can be cancelled.',
        inputSchema: form({ milliseconds: { type: 'integer', minimum: 0 } }),
        run: async ({ milliseconds }, call) => {
            await call.pause(milliseconds);
            return text(`Waited ${milliseconds} ms.`);
        },
    },
    test_count: {
        description: 'Counts the calls of its session.',
        run: (_, call) => {
            call.session.count = (call.session.count ?? 0) + 1;
            return text(String(call.session.count));
        },
    },
    test_cancelled: {
        description: 'Says how many calls were cancelled so far.',
        run: () => text(String(world.cancelled)),
    },
    test_headers: {
        description: 'Has arguments that are mirrored into headers.',
        inputSchema: form(
            {
                region: { type: 'string', 'x-mcp-header': 'Region' },
                priority: { type: 'integer', 'x-mcp-header': 'Priority' },
                query: { type: 'string' },
            },
            ['region'],
        ),
        run: (args) => text(JSON.stringify(args)),
    },
    json_schema_2020_12_tool: {
        description: 'Tool with JSON Schema 2020-12 features',
        inputSchema: {
            $schema: 'https://json-schema.org/draft/2020-12/schema',
            type: 'object',
            $defs: {
                address: {
                    $anchor: 'addressDef',
                    type: 'object',
                    properties: { street: { type: 'string' }, city: { type: 'string' } },
                },
            },
            properties: {
                name: { type: 'string' },
                address: { $ref: '#/$defs/address' },
                contactMethod: { type: 'string', enum: ['phone', 'email'] },
                phone: { type: 'string' },
                email: { type: 'string' },
            },
            allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
            if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
            then: { required: ['phone'] },
            else: { required: ['email'] },
            additionalProperties: false,
        },
        run: (args) => text(JSON.stringify(args)),
    },
    test_sampling: {
        description: 'Asks the client for a completion.',
        inputSchema: form({ prompt: { type: 'string' } }),
        run: async ({ prompt }, call) => {
            const { answer } = await call.ask({ answer: sample(prompt) });
            return text(`LLM response: ${said(answer)}`);
        },
    },
    test_elicitation: {
        description: 'Asks the user.',
        inputSchema: form({ message: { type: 'string' } }),
        run: async ({ message }, call) => {
            const schema = form({
                username: { type: 'string', description: "User's response" },
                email: { type: 'string', description: "User's email address" },
            });
            const { user } = await call.ask({ user: elicit(message, schema) });
            return text(`User response: action=${user.action}, content=${JSON.stringify(user.content ?? {})}`);
        },
    },
    test_elicitation_sep1034_defaults: {
        description: 'Asks the user, with defaults of every type.',
        run: async (_, call) => {
            const schema = form(
                {
                    name: { type: 'string', description: 'Name', default: 'John Doe' },
                    age: { type: 'integer', description: 'Age', default: 30 },
                    score: { type: 'number', description: 'Score', default: 95.5 },
                    status: { type: 'string', description: 'Status', enum: ['active', 'inactive', 'pending'], default: 'active' },
                    verified: { type: 'boolean', description: 'Verified', default: true },
                },
                [],
            );
            const { user } = await call.ask({ user: elicit('Is this right?', schema) });
            return text(`Elicitation completed: action=${user.action}, content=${JSON.stringify(user.content ?? {})}`);
        },
    },
    test_elicitation_sep1330_enums: {
        description: 'Asks the user, with every form of a choice.',
        run: async (_, call) => {
            const plain = ['option1', 'option2', 'option3'];
            const titled = (word) => ['First', 'Second', 'Third'].map((nth, n) => ({ const: `value${n + 1}`, title: `${nth} ${word}` }));
            const schema = form(
                {
                    untitledSingle: { type: 'string', enum: plain },
                    titledSingle: { type: 'string', oneOf: titled('Option') },
                    legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['Option One', 'Option Two', 'Option Three'] },
                    untitledMulti: { type: 'array', minItems: 1, maxItems: 3, items: { type: 'string', enum: plain } },
                    titledMulti: { type: 'array', minItems: 1, maxItems: 3, items: { anyOf: titled('Choice') } },
                },
                [],
            );
            const { user } = await call.ask({ user: elicit('What do you choose?', schema) });
            return text(`Elicitation completed: action=${user.action}, content=${JSON.stringify(user.content ?? {})}`);
        },
    },
    test_input_required_result_elicitation: {
        description: 'Asks for a name and greets.',
        run: async (_, call) => {
            const { user_name } = await call.ask({ user_name: elicit('What is your name?', form({ name: { type: 'string' } })) });
            return text(`Hello, ${user_name.content?.name ?? 'stranger'}!`);
        },
    },
    test_input_required_result_sampling: {
        description: 'Asks for the capital of France.',
        run: async (_, call) => {
            const { capital_question } = await call.ask({ capital_question: sample('What is the capital of France?') });
            return text(said(capital_question));
        },
    },
    test_input_required_result_list_roots: {
        description: 'Asks for the roots.',
        run: async (_, call) => {
            const { client_roots } = await call.ask({ client_roots: roots });
            return text(`Roots: ${client_roots.roots.map((root) => root.uri).join(', ')}`);
        },
    },
    test_input_required_result_request_state: {
        description: 'Asks for a confirmation and keeps a state.',
        run: async (_, call) => {
            const { confirm } = await call.ask({ confirm: elicit('Please confirm', form({ ok: { type: 'boolean' } })) }, { state: true });
            return text(`state-ok ${confirm.action}`);
        },
    },
    test_input_required_result_tampered_state: {
        description: 'Asks for a confirmation and keeps a state that nobody can change.',
        run: async (_, call) => {
            const { confirm } = await call.ask({ confirm: elicit('Please confirm', form({ ok: { type: 'boolean' } })) }, { state: true });
            return text(`state-ok ${confirm.action}`);
        },
    },
    test_input_required_result_multiple_inputs: {
        description: 'Asks for a name, a completion and the roots at once.',
        run: async (_, call) => {
            const { user_name, greeting, client_roots } = await call.ask(
                {
                    user_name: elicit('What is your name?', form({ name: { type: 'string' } })),
                    greeting: sample('Generate a greeting', 50),
                    client_roots: roots,
                },
                { state: true },
            );
            return text(`${said(greeting)} ${user_name.content?.name}, ${client_roots.roots.length} roots`);
        },
    },
    test_input_required_result_multi_round: {
        description: 'Asks for a name and then for a color.',
        run: async (_, call) => {
            const { step1 } = await call.ask({ step1: elicit('Step 1: What is your name?', form({ name: { type: 'string' } })) }, { state: true });
            const { step2 } = await call.ask(
                { step2: elicit('Step 2: What is your favorite color?', form({ color: { type: 'string' } })) },
                { state: true },
            );
            return text(`${step1.content?.name} likes ${step2.content?.color}.`);
        },
    },
    test_input_required_result_capabilities: {
        description: 'Asks only for what the client declared.',
        run: async (_, call) => {
            const able = call.capabilities();
            const questions = {};
            if (able.elicitation) questions.user_name = elicit('What is your name?', form({ name: { type: 'string' } }));
            if (able.sampling) questions.greeting = sample('Generate a greeting', 50);
            if (able.roots) questions.client_roots = roots;
            const answers = Object.keys(questions).length ? await call.ask(questions) : {};
            return text(`Asked for ${Object.keys(answers).join(', ') || 'nothing'}.`);
        },
    },
    test_missing_capability: {
        description: 'Needs a client that can sample.',
        run: (_, call) => {
            if (!call.capabilities().sampling) throw new Missing({ sampling: {} });
            return text('The client can sample.');
        },
    },
    test_streaming_elicitation: {
        description: 'Reports progress and then asks for a name.',
        run: async (_, call) => {
            await call.progress(1, 2, 'about to ask');
            const { user_name } = await call.ask({ user_name: elicit('What is your name?', form({ name: { type: 'string' } })) });
            return text(`Hello, ${user_name.content?.name ?? 'stranger'}!`);
        },
    },
    test_ask_beside: {
        description: 'Asks for a name on the stream of the session, not on that of the call.',
        run: async (_, call) => {
            const question = elicit('What is your name?', form({ name: { type: 'string' } }));
            const { user_name } = await call.ask({ user_name: question }, { beside: true });
            return text(`Hello, ${user_name.content?.name ?? 'stranger'}!`);
        },
    },
    test_ask_for_ever: {
        description: 'Asks for a completion again and again.',
        run: async (_, call) => {
            for (let round = 0; round < 300; round += 1) await call.ask({ [`again_${round}`]: sample('And now?') });
            return text('Asked for ever.');
        },
    },
    test_trigger_tool_change: {
        description: 'Adds a tool, or takes it away again.',
        run: () => {
            world.addedTool = !world.addedTool;
            changed('tools');
            return text(world.addedTool ? 'Added a tool.' : 'Took a tool away.');
        },
    },
    test_trigger_prompt_change: {
        description: 'Adds a prompt, or takes it away again.',
        run: () => {
            world.addedPrompt = !world.addedPrompt;
            changed('prompts');
            return text(world.addedPrompt ? 'Added a prompt.' : 'Took a prompt away.');
        },
    },
    test_touch_resource: {
        description: 'Changes the watched resource.',
        run: () => {
            world.touched += 1;
            changed('resource', 'test://watched-resource');
            return text(`Touched ${world.touched} times.`);
        },
    },
};
const addedTool = { description: 'Comes and goes.', run: () => text('I am here.') };

export function listTools() {
    const all = world.addedTool ? { ...tools, test_added_tool: addedTool } : tools;
    return Object.entries(all).map(([name, { run, ...rest }]) => ({ name, inputSchema: nothing, ...rest }));
}

/** `undefined` if there is no such tool. */
export async function callTool(name, args, call) {
    const tool = name === 'test_added_tool' && world.addedTool ? addedTool : Object.hasOwn(tools, name) ? tools[name] : undefined;
    return tool && (await tool.run(args ?? {}, call));
}

const message = (content) => ({ role: 'user', content });
const prompts = {
    test_simple_prompt: {
        description: 'A prompt without arguments.',
        get: () => ({ messages: [message({ type: 'text', text: 'This is a simple prompt for testing.' })] }),
    },
    test_prompt_with_arguments: {
        description: 'A prompt with arguments.',
        arguments: [
            { name: 'arg1', description: 'First test argument', required: true },
            { name: 'arg2', description: 'Second test argument', required: true },
        ],
        get: ({ arg1, arg2 }) => ({
            messages: [message({ type: 'text', text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` })],
        }),
    },
    test_prompt_with_embedded_resource: {
        description: 'A prompt with a resource inside.',
        arguments: [{ name: 'resourceUri', description: 'URI of the resource to embed', required: true }],
        get: ({ resourceUri }) => ({
            messages: [
                message({
                    type: 'resource',
                    resource: { uri: resourceUri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' },
                }),
                message({ type: 'text', text: 'Please process the embedded resource above.' }),
            ],
        }),
    },
    test_prompt_with_image: {
        description: 'A prompt with an image.',
        get: () => ({
            messages: [
                message({ type: 'image', data: PNG, mimeType: 'image/png' }),
                message({ type: 'text', text: 'Please analyze the image above.' }),
            ],
        }),
    },
    test_input_required_result_prompt: {
        description: 'A prompt that asks for its context.',
        get: async (_, call) => {
            const schema = form({ context: { type: 'string' } });
            const { user_context } = await call.ask({ user_context: elicit('What context should the prompt use?', schema) });
            return { messages: [message({ type: 'text', text: `Context: ${user_context.content?.context ?? 'none'}` })] };
        },
    },
};
const addedPrompt = { description: 'Comes and goes.', get: () => ({ messages: [message({ type: 'text', text: 'I am here.' })] }) };

export function listPrompts() {
    const all = world.addedPrompt ? { ...prompts, test_added_prompt: addedPrompt } : prompts;
    return Object.entries(all).map(([name, { get, ...rest }]) => ({ name, ...rest }));
}

/** `undefined` if there is no such prompt, or a required argument is missing. */
export async function getPrompt(name, args, call) {
    const prompt = name === 'test_added_prompt' && world.addedPrompt ? addedPrompt : Object.hasOwn(prompts, name) ? prompts[name] : undefined;
    const given = args ?? {};
    if (!prompt || prompt.arguments?.some((argument) => argument.required && given[argument.name] === undefined)) return undefined;
    return { description: prompt.description, ...(await prompt.get(given, call)) };
}

export const RESOURCES = [
    { uri: 'test://static-text', name: 'static-text', description: 'A text that never changes.', mimeType: 'text/plain' },
    { uri: 'test://static-binary', name: 'static-binary', description: 'An image that never changes.', mimeType: 'image/png' },
    { uri: 'test://watched-resource', name: 'watched-resource', description: 'A text that changes.', mimeType: 'text/plain' },
];
export const TEMPLATES = [
    { uriTemplate: 'test://template/{id}/data', name: 'template', description: 'One document for each id.', mimeType: 'application/json' },
];

/** `undefined` if there is no such resource. */
export function readResource(uri) {
    const one = (content) => ({ contents: [{ uri, ...content }] });
    const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
    if (id) {
        const data = { id: decodeURIComponent(id), templateTest: true, data: `Data for ID: ${decodeURIComponent(id)}` };
        return one({ mimeType: 'application/json', text: JSON.stringify(data) });
    }
    switch (uri) {
        case 'test://static-text':
            return one({ mimeType: 'text/plain', text: 'This is the content of the static text resource.' });
        case 'test://static-binary':
            return one({ mimeType: 'image/png', blob: PNG });
        case 'test://watched-resource':
            return one({ mimeType: 'text/plain', text: `Touched ${world.touched} times.` });
        default:
            return undefined;
    }
}

/** `undefined` if nothing has this reference. */
export function complete({ ref, argument }) {
    const known =
        ref.type === 'ref/prompt' ? Object.hasOwn(prompts, ref.name) : TEMPLATES.some((template) => template.uriTemplate === ref.uri);
    if (!known) return undefined;
    const values = ['paris', 'park', 'party'].filter((word) => word.startsWith(argument.value));
    return { completion: { values, total: values.length, hasMore: false } };
}

/** Waits, unless the signal comes first. */
export function pause(ms, signal) {
    return new Promise((resolve, reject) => {
        const cancel = () => {
            clearTimeout(timer);
            world.cancelled += 1;
            reject(new Error('cancelled'));
        };
        const timer = setTimeout(() => {
            signal.removeEventListener('abort', cancel);
            resolve();
        }, ms);
        if (signal.aborted) cancel();
        else signal.addEventListener('abort', cancel, { once: true });
    });
}
