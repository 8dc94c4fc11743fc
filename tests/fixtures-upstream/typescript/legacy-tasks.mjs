// Tasks of 2025-11-25 with the TypeScript SDK 1.x: its protocol answers for them, from one store for all sessions.
import { InMemoryTaskMessageQueue, InMemoryTaskStore } from '@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js';
import { ElicitResultSchema, McpError } from '@modelcontextprotocol/sdk/types.js';

import * as content from './content.mjs';

const pause = (ms) => content.pause(ms, new AbortController().signal);
const text = (value) => ({ content: [{ type: 'text', text: value }] });
const nothing = { type: 'object', properties: {} };
const form = (properties) => ({ type: 'object', properties, required: Object.keys(properties) });

const TOOLS = {
    task_optional: {
        description: 'Computes for some seconds, as a task if that is wanted.',
        inputSchema: { type: 'object', properties: { seconds: { type: 'number' } } },
        execution: { taskSupport: 'optional' },
        run: async ({ seconds }) => {
            await pause((seconds ?? 0) * 1000);
            return text('Computed.');
        },
    },
    task_required: {
        description: 'Fails after a moment, as a task.',
        inputSchema: nothing,
        execution: { taskSupport: 'required' },
        run: async () => {
            await pause(50);
            return { ...text('The job failed.'), isError: true };
        },
    },
    task_asks: {
        description: 'Asks before it deletes a file, as a task.',
        inputSchema: nothing,
        execution: { taskSupport: 'required' },
        run: async (_, ask) => {
            const params = { mode: 'form', message: 'Delete it?', requestedSchema: form({ confirm: { type: 'boolean' } }) };
            const answer = await ask({ method: 'elicitation/create', params });
            return text(answer.action === 'accept' && answer.content?.confirm ? 'Deleted.' : 'Kept.');
        },
    },
};

export const options = {
    taskStore: new InMemoryTaskStore(),
    taskMessageQueue: new InMemoryTaskMessageQueue(),
    defaultTaskPollInterval: 100,
};

export const capabilities = { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } };

export const listTools = () => Object.entries(TOOLS).map(([name, { run, ...tool }]) => ({ name, ...tool }));

/** `undefined` if it is no tool of these. */
export async function callTool({ name, arguments: given, task: wanted }, extra) {
    const tool = Object.hasOwn(TOOLS, name) ? TOOLS[name] : undefined;
    if (!tool) return undefined;
    if (!wanted) {
        if (tool.execution.taskSupport === 'required') throw new McpError(-32601, `${name} must be called as a task`);
        return tool.run(given ?? {});
    }
    const { taskStore } = extra;
    const task = await taskStore.createTask({ ttl: extra.taskRequestedTtl, pollInterval: 100 });
    const relatedTask = { taskId: task.taskId };
    const ask = (request) => extra.sendRequest(request, ElicitResultSchema, { relatedTask });
    tool.run(given ?? {}, ask)
        .then((result) => taskStore.storeTaskResult(task.taskId, result.isError ? 'failed' : 'completed', result))
        .catch((error) => console.error(error));
    return { task };
}
