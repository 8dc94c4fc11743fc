import { vi } from 'vitest';
import type { Schemas } from '../src/api/http';

export interface Received {
  method: string;
  path: string;
  /** The query with its `?`; empty if there is none. */
  search: string;
  contentType: string | null;
  body: unknown;
}

/** `text` instead of `body`: what is no JSON. */
type Answer = { status?: number; body?: unknown; text?: string };
type Answers = Record<string, Answer | ((request: Received) => Answer | Promise<Answer>)>;

/** Stands in for the network: answers by "METHOD /path", and keeps what was received. An unknown address is a fault of the test. */
export function serve(answers: Answers): Received[] {
  const received: Received[] = [];
  vi.stubGlobal('fetch', async (request: Request) => {
    const sent = await request.text();
    const url = new URL(request.url);
    const one: Received = {
      method: request.method,
      path: url.pathname,
      search: url.search,
      contentType: request.headers.get('content-type'),
      body: sent === '' ? undefined : JSON.parse(sent),
    };
    received.push(one);
    const answer = answers[`${one.method} ${one.path}`];
    if (!answer) throw new Error(`The test has no answer for ${one.method} ${one.path}`);
    const { status = 200, body, text } = typeof answer === 'function' ? await answer(one) : answer;
    if (text !== undefined) {
      return new Response(text, { status, headers: { 'content-type': 'application/yaml' } });
    }
    return new Response(body === undefined ? null : JSON.stringify(body), {
      status,
      headers: { 'content-type': 'application/json' },
    });
  });
  return received;
}

export const refusal = (status: number, error: Schemas['ErrorBody']): Answer => ({ status, body: { error } });

export const me: Schemas['Me'] = {
  user: { id: 'usr_1', email: 'ada@example.org', display_name: 'Ada' },
  workspaces: [{ id: 'ten_1', slug: 'harbour', name: 'Harbour', role: 'owner' }],
};
