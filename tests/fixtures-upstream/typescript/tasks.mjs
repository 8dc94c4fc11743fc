// The tasks extension `io.modelcontextprotocol/tasks`: tools that go on after their call was answered. The SDK brings the types and the methods' names
// but no store, so this is one in memory.
import { randomUUID } from 'node:crypto';

import { MissingRequiredClientCapabilityError, ProtocolError } from '@modelcontextprotocol/server';
import { z } from 'zod';

import { pause } from './content.mjs';

const EXTENSION = 'io.modelcontextprotocol/tasks';
const ended = new Set(['completed', 'failed', 'cancelled']);
const text = (value) => ({ content: [{ type: 'text', text: value }] });
const nothing = { type: 'object', properties: {}, additionalProperties: false };
const form = (properties) => ({ type: 'object', properties, required: Object.keys(properties) });
const elicit = (message, requestedSchema) => ({ method: 'elicitation/create', params: { message, requestedSchema } });
const required = () => new MissingRequiredClientCapabilityError({ requiredCapabilities: { extensions: { [EXTENSION]: {} } } });

const TOOLS = {
    greet: {
        description: 'Greets, at once.',
        inputSchema: form({ name: { type: 'string' } }),
        at_once: ({ name }) => text(`Hello, ${name}!`),
    },
    slow_compute: {
        description: 'Computes for some seconds.',
        inputSchema: { type: 'object', properties: { seconds: { type: 'number' }, label: { type: 'string' } }, required: ['seconds'] },
        at_once: ({ seconds, label }) => (seconds === 0 ? text(`Computed ${label ?? 'it'}.`) : undefined),
        run: async ({ seconds, label }, task) => {
            await pause(seconds * 1000, task.signal);
            return text(`Computed ${label ?? 'it'}.`);
        },
    },
    failing_job: {
        description: 'Fails after a second.',
        needs_task: true,
        run: async (_, task) => {
            await pause(1000, task.signal);
            return { ...text('The job failed.'), isError: true };
        },
    },
    protocol_error_job: {
        description: 'Breaks after a moment.',
        run: async (_, task) => {
            await pause(100, task.signal);
            throw new ProtocolError(-32603, 'The job broke.');
        },
    },
    confirm_delete: {
        description: 'Asks before it deletes a file.',
        inputSchema: { type: 'object', properties: { filename: { type: 'string' } } },
        run: async ({ filename }, task) => {
            const [answer] = await task.ask([elicit(`Delete ${filename ?? 'it'}?`, form({ confirm: { type: 'boolean' } }))]);
            return text(answer.action === 'accept' && answer.content?.confirm !== false ? 'Deleted.' : 'Kept.');
        },
    },
    multi_input: {
        description: 'Asks two things at once.',
        run: async (_, task) => {
            const answers = await task.ask([
                elicit('What is your name?', form({ name: { type: 'string' } })),
                elicit('What is your color?', form({ color: { type: 'string' } })),
            ]);
            return text(answers.map((answer) => JSON.stringify(answer.content ?? {})).join(' '));
        },
    },
    test_tool_with_task: {
        description: 'Asks for a name and then works on.',
        needs_task: true,
        before: async (call) => {
            const { user_name } = await call.ask({ user_name: elicit('What is your name?', form({ name: { type: 'string' } })) }, { state: true });
            return { name: user_name.content?.name };
        },
        run: async ({ name }, task) => {
            await pause(50, task.signal);
            return text(`Worked for ${name}.`);
        },
    },
};

export class Tasks {
    #all = new Map();

    tools() {
        return Object.entries(TOOLS).map(([name, { description, inputSchema }]) => ({ name, description, inputSchema: inputSchema ?? nothing }));
    }

    /** `undefined` if it is no tool of these. */
    async call(name, args, call) {
        const tool = Object.hasOwn(TOOLS, name) ? TOOLS[name] : undefined;
        if (!tool) return undefined;
        const given = args ?? {};
        const now = tool.at_once?.(given);
        if (now) return now;
        const able = call.capabilities().extensions?.[EXTENSION] !== undefined;
        if (!able && tool.needs_task) throw required();
        if (!able) return tool.run(given, { signal: new AbortController().signal, ask: async () => [{ action: 'cancel' }, { action: 'cancel' }] });
        const more = await tool.before?.(call);
        return { resultType: 'task', ...this.#start(tool, { ...given, ...more }) };
    }

    #start(tool, args) {
        const now = new Date().toISOString();
        const abort = new AbortController();
        const task = {
            shown: { taskId: randomUUID(), status: 'working', createdAt: now, lastUpdatedAt: now, ttlMs: 600_000, pollIntervalMs: 100 },
            questions: new Map(),
            abort,
        };
        const become = (status, more = {}) => {
            if (!ended.has(task.shown.status)) Object.assign(task.shown, { status, lastUpdatedAt: new Date().toISOString(), ...more });
        };
        task.become = become;
        const ask = (requests) => {
            const waiting = requests.map((request) => {
                const key = randomUUID();
                return new Promise((resolve, reject) => {
                    task.questions.set(key, { request, resolve });
                    abort.signal.addEventListener('abort', () => reject(new Error('cancelled')), { once: true });
                });
            });
            become('input_required');
            return Promise.all(waiting);
        };
        this.#all.set(task.shown.taskId, task);
        tool.run(args, { signal: abort.signal, ask }).then(
            (result) => become('completed', { result }),
            (error) => become('failed', { error: { code: error.code ?? -32603, message: error.message } }),
        );
        const { result, error, ...created } = task.shown;
        return created;
    }

    register(server) {
        const params = z.looseObject({ taskId: z.string() });
        const find = ({ taskId }, ctx) => {
            const meta = { ...ctx.mcpReq._meta, ...ctx.mcpReq.envelope };
            if (meta['io.modelcontextprotocol/clientCapabilities']?.extensions?.[EXTENSION] === undefined) throw required();
            const task = this.#all.get(taskId);
            if (!task) throw new ProtocolError(-32602, 'Unknown task');
            return task;
        };
        server.setRequestHandler('tasks/get', { params }, (given, ctx) => {
            const task = find(given, ctx);
            const inputRequests = Object.fromEntries([...task.questions].map(([key, { request }]) => [key, request]));
            return { resultType: 'complete', ...task.shown, ...(task.shown.status === 'input_required' && { inputRequests }) };
        });
        server.setRequestHandler('tasks/update', { params }, (given, ctx) => {
            const task = find(given, ctx);
            for (const [key, answer] of Object.entries(given.inputResponses ?? ctx.mcpReq.inputResponses ?? {})) {
                task.questions.get(key)?.resolve(answer?.result ?? answer);
                task.questions.delete(key);
            }
            if (task.questions.size === 0 && task.shown.status === 'input_required') task.become('working');
            return { resultType: 'complete' };
        });
        server.setRequestHandler('tasks/cancel', { params }, (given, ctx) => {
            const task = find(given, ctx);
            task.become('cancelled');
            task.abort.abort();
            return { resultType: 'complete' };
        });
    }
}
