// The session era, 2025-03-26 to 2025-11-25, with the TypeScript SDK 1.x: sessions, resumable streams, requests to the client. With `sse` as argument the
// same content on the two endpoints of 2024-11-05; with `gated`, which may stand beside it, some
// tools are there only for clients that can be asked what they ask.
import { randomUUID } from 'node:crypto';

import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
    CallToolRequestSchema,
    CompleteRequestSchema,
    CreateMessageResultSchema,
    ElicitResultSchema,
    GetPromptRequestSchema,
    isInitializeRequest,
    ListPromptsRequestSchema,
    ListResourcesRequestSchema,
    ListResourceTemplatesRequestSchema,
    ListRootsResultSchema,
    ListToolsRequestSchema,
    McpError,
    ReadResourceRequestSchema,
    SubscribeRequestSchema,
    UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';

import * as content from './content.mjs';
import * as tasks from './legacy-tasks.mjs';
import { body, isProgram, refuse, serve } from './serve.mjs';

const RESULTS = {
    'elicitation/create': ElicitResultSchema,
    'sampling/createMessage': CreateMessageResultSchema,
    'roots/list': ListRootsResultSchema,
};

// The protocol of the two endpoints has no tasks.
const gated =
    process.argv.includes('gated')
        ? {
              test_sampling: (can) => can.sampling,
              test_elicitation: (can) => can.elicitation,
              test_input_required_result_list_roots: (can) => can.roots,
              test_input_required_result_multiple_inputs: (can) => can.sampling && can.elicitation && can.roots,
          }
        : {};

const overLinks = process.argv.includes('sse');
const withTasks = !overLinks;

/** One session's server. */
function open() {
    const capabilities = {
        tools: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        prompts: { listChanged: true },
        logging: {},
        completions: {},
        ...(withTasks && tasks.capabilities),
    };
    const server = new Server(content.INFO, { capabilities, instructions: content.INSTRUCTIONS, ...(withTasks && tasks.options) });
    const session = {};
    const watched = new Set();
    const call = (extra) => ({
        session,
        capabilities: () => server.getClientCapabilities() ?? {},
        pause: (ms) => content.pause(ms, extra.signal),
        // sendLoggingMessage would use the session's own stream, and not the one of the request.
        log: async (level, data) => {
            if (server.isMessageIgnored(level, extra.sessionId)) return;
            await extra.sendNotification({ method: 'notifications/message', params: { level, logger: 'fixture', data } });
        },
        progress: async (progress, total, message) => {
            const progressToken = extra._meta?.progressToken;
            if (progressToken === undefined) return;
            await extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress, total, message } });
        },
        // `beside`: on the session's own stream, where the SDK sends messages without a related
        // request.
        ask: async (questions, { beside = false } = {}) => {
            const send = beside ? (...args) => server.request(...args) : extra.sendRequest;
            const answers = Object.entries(questions).map(async ([key, question]) => [
                key,
                await send(question, RESULTS[question.method], { signal: extra.signal }),
            ]);
            return Object.fromEntries(await Promise.all(answers));
        },
        detach: async () => extra.closeSSEStream?.(),
    });
    const isThere = (name) => gated[name]?.(server.getClientCapabilities() ?? {}) ?? !(name in gated);
    server.setRequestHandler(ListToolsRequestSchema, () => ({
        tools: [...content.listTools(), ...(withTasks ? tasks.listTools() : [])].filter(({ name }) => isThere(name)),
    }));
    server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
        if (!isThere(params.name)) throw new McpError(-32602, `Unknown tool: ${params.name}`);
        const task = withTasks ? await tasks.callTool(params, extra) : undefined;
        if (task) return task;
        let result;
        try {
            result = await content.callTool(params.name, params.arguments, call(extra));
        } catch (error) {
            return { content: [{ type: 'text', text: error.message }], isError: true };
        }
        if (!result) throw new McpError(-32602, `Unknown tool: ${params.name}`);
        return result;
    });
    server.setRequestHandler(ListPromptsRequestSchema, () => ({ prompts: content.listPrompts() }));
    server.setRequestHandler(GetPromptRequestSchema, async ({ params }, extra) => {
        const prompt = await content.getPrompt(params.name, params.arguments, call(extra));
        if (!prompt) throw new McpError(-32602, `Unknown prompt or missing argument: ${params.name}`);
        return prompt;
    });
    server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources: content.RESOURCES }));
    server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: content.TEMPLATES }));
    server.setRequestHandler(ReadResourceRequestSchema, ({ params }) => {
        const read = content.readResource(params.uri);
        if (!read) throw new McpError(-32002, 'Resource not found', { uri: params.uri });
        return read;
    });
    server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
        watched.add(params.uri);
        return {};
    });
    server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
        watched.delete(params.uri);
        return {};
    });
    server.setRequestHandler(CompleteRequestSchema, ({ params }) => {
        const completion = content.complete(params);
        if (!completion) throw new McpError(-32602, 'Unknown reference');
        return completion;
    });
    const listener = (what, uri) => {
        const told =
            what === 'tools'
                ? server.sendToolListChanged()
                : what === 'prompts'
                  ? server.sendPromptListChanged()
                  : watched.has(uri) && server.sendResourceUpdated({ uri });
        Promise.resolve(told).catch((error) => console.error(error));
    };
    content.world.listeners.add(listener);
    server.onclose = () => content.world.listeners.delete(listener);
    return server;
}

/** Events of all streams of a session in the order in which they were stored. */
class Events {
    #stored = [];
    async storeEvent(stream, message) {
        this.#stored.push({ stream, message });
        return `${stream}_${this.#stored.length}`;
    }
    async getStreamIdForEventId(id) {
        return this.#stored[Number(id.slice(id.lastIndexOf('_') + 1)) - 1]?.stream;
    }
    async replayEventsAfter(id, { send }) {
        const after = Number(id.slice(id.lastIndexOf('_') + 1));
        const { stream } = this.#stored[after - 1];
        for (let at = after; at < this.#stored.length; at += 1) {
            // Events without a message only open a stream.
            if (this.#stored[at].stream === stream && 'jsonrpc' in this.#stored[at].message) {
                await send(`${stream}_${at + 1}`, this.#stored[at].message);
            }
        }
        return stream;
    }
}

const transports = new Map();

export async function streamable(request, response) {
    if (new URL(request.url, 'http://fixture').pathname !== '/mcp') return refuse(response, 404, 'Not here');
    const id = request.headers['mcp-session-id'];
    const parsed = request.method === 'POST' ? await body(request) : undefined;
    let transport = id && transports.get(id);
    if (id && !transport) return refuse(response, 404, 'Session not found');
    if (!transport) {
        if (!isInitializeRequest(parsed)) return refuse(response, 400, 'No session');
        transport = new StreamableHTTPServerTransport({
            sessionIdGenerator: () => randomUUID(),
            eventStore: new Events(),
            retryInterval: 100,
            onsessioninitialized: (opened) => transports.set(opened, transport),
            onsessionclosed: (closed) => transports.delete(closed),
        });
        await open().connect(transport);
    }
    await transport.handleRequest(request, response, parsed);
}

async function twoEndpoints(request, response) {
    const url = new URL(request.url, 'http://fixture');
    if (request.method === 'GET' && url.pathname === '/sse') {
        const transport = new SSEServerTransport('/messages', response);
        transports.set(transport.sessionId, transport);
        const server = open();
        const { onclose } = server;
        server.onclose = () => {
            transports.delete(transport.sessionId);
            onclose();
        };
        return server.connect(transport);
    }
    const transport = transports.get(url.searchParams.get('sessionId'));
    if (request.method !== 'POST' || url.pathname !== '/messages' || !transport) return refuse(response, 404, 'Not here');
    await transport.handlePostMessage(request, response);
}

if (isProgram(import.meta.url)) serve(overLinks ? twoEndpoints : streamable);
