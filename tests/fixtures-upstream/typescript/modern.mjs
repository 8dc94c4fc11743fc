// 2026-07-28 with the TypeScript SDK 2.x: requests that stand alone, multi round-trip requests, listen streams, the tasks extension. Nothing older.
import { randomBytes } from 'node:crypto';

import { toNodeHandler } from '@modelcontextprotocol/node';
import {
    createMcpHandler,
    createRequestStateCodec,
    inputRequired,
    MissingRequiredClientCapabilityError,
    ProtocolError,
    ResourceNotFoundError,
    Server,
} from '@modelcontextprotocol/server';

import * as content from './content.mjs';
import { isProgram, serve } from './serve.mjs';
import { Tasks } from './tasks.mjs';

const META = 'io.modelcontextprotocol';
const codec = createRequestStateCodec({ key: randomBytes(32), ttlSeconds: 600 });
const tasks = new Tasks();

/** A handler throws it to end this round. */
class NeedsInput {
    constructor(result) {
        this.result = result;
    }
}

/** Asks as many rounds as a handler does. Rounds that are answered are kept in the state, since nothing else remembers them. */
function asker(ctx) {
    const state = ctx.mcpReq.requestState() ?? { round: 0, answers: [] };
    let round = 0;
    return async (questions, { state: wanted = false } = {}) => {
        const current = round;
        round += 1;
        if (current < state.round) return state.answers[current];
        const given = current === state.round ? (ctx.mcpReq.inputResponses ?? {}) : {};
        const answers = Object.fromEntries(Object.keys(questions).map((key) => [key, given[key]?.result ?? given[key]]));
        if (Object.values(answers).every((answer) => answer !== undefined && answer !== null)) {
            state.answers[current] = answers;
            state.round = current + 1;
            return answers;
        }
        const requestState = wanted || current > 0 ? await codec.mint({ round: current, answers: state.answers }, ctx) : undefined;
        throw new NeedsInput(inputRequired({ inputRequests: questions, ...(requestState && { requestState }) }));
    };
}

function call(ctx) {
    const { mcpReq } = ctx;
    const meta = { ...mcpReq._meta, ...mcpReq.envelope };
    return {
        session: {},
        capabilities: () => meta[`${META}/clientCapabilities`] ?? {},
        pause: (ms) => content.pause(ms, mcpReq.signal),
        log: (level, data) => mcpReq.log(level, data, 'fixture'),
        progress: async (progress, total, message) => {
            const { progressToken } = meta;
            if (progressToken === undefined) return;
            await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total, message } });
        },
        ask: asker(ctx),
        // There is no client to come back to.
        detach: async () => {},
    };
}

/** The result of a round, or what the next one needs. */
async function rounds(handle) {
    try {
        return await handle();
    } catch (error) {
        if (error instanceof NeedsInput) return error.result;
        if (error instanceof content.Missing) {
            throw new MissingRequiredClientCapabilityError({ requiredCapabilities: error.capabilities });
        }
        throw error;
    }
}

function open(pushed) {
    const capabilities = {
        tools: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        prompts: { listChanged: true },
        logging: {},
        completions: {},
        extensions: { [`${META}/tasks`]: {} },
    };
    const server = new Server(content.INFO, {
        capabilities,
        instructions: content.INSTRUCTIONS,
        requestState: { verify: codec.verify },
    });
    server.setRequestHandler('tools/list', () => ({ tools: [...content.listTools(), ...tasks.tools()] }));
    server.setRequestHandler('tools/call', ({ params }, ctx) =>
        rounds(async () => {
            if (pushed.has(params.name)) {
                const why = 'This tool asks by requests of its own, which 2026-07-28 does not have.';
                return { content: [{ type: 'text', text: why }], isError: true };
            }
            const asked = call(ctx);
            const task = await tasks.call(params.name, params.arguments, asked);
            if (task) return task;
            let result;
            try {
                result = await content.callTool(params.name, params.arguments, asked);
            } catch (error) {
                if (error instanceof NeedsInput || error instanceof content.Missing) throw error;
                return { content: [{ type: 'text', text: error.message }], isError: true };
            }
            if (!result) throw new ProtocolError(-32602, `Unknown tool: ${params.name}`);
            return result;
        }),
    );
    server.setRequestHandler('prompts/list', () => ({ prompts: content.listPrompts() }));
    server.setRequestHandler('prompts/get', ({ params }, ctx) =>
        rounds(async () => {
            const prompt = await content.getPrompt(params.name, params.arguments, call(ctx));
            if (!prompt) throw new ProtocolError(-32602, `Unknown prompt or missing argument: ${params.name}`);
            return prompt;
        }),
    );
    server.setRequestHandler('resources/list', () => ({ resources: content.RESOURCES }));
    server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: content.TEMPLATES }));
    server.setRequestHandler('resources/read', ({ params }) => {
        const read = content.readResource(params.uri);
        if (!read) throw new ResourceNotFoundError(params.uri);
        return read;
    });
    server.setRequestHandler('completion/complete', ({ params }) => {
        const completion = content.complete(params);
        if (!completion) throw new ProtocolError(-32602, 'Unknown reference');
        return completion;
    });
    tasks.register(server);
    return server;
}

/** `pushed` names tools that ask by requests of their own, which this era does not have. */
export function standAlone(pushed = new Set()) {
    const handler = createMcpHandler(() => open(pushed), { legacy: 'reject', onerror: (error) => console.error(error) });
    content.world.listeners.add((what, uri) => {
        if (what === 'tools') handler.notify.toolsChanged();
        else if (what === 'prompts') handler.notify.promptsChanged();
        else handler.notify.resourceUpdated(uri);
    });
    return toNodeHandler(handler);
}

if (isProgram(import.meta.url)) serve(standAlone());
