import { vi } from 'vitest';
import type { Schemas } from '../src/api/http';

export interface Received {
  method: string;
  path: string;
  contentType: string | null;
  body: unknown;
}

type Answer = { status?: number; body?: unknown };
type Answers = Record<string, Answer | ((request: Received) => Answer | Promise<Answer>)>;

/** Stands in for the network: answers by "METHOD /path", and keeps what was received. An unknown address is a fault of the test. */
export function serve(answers: Answers): Received[] {
  const received: Received[] = [];
  vi.stubGlobal('fetch', async (request: Request) => {
    const text = await request.text();
    const one: Received = {
      method: request.method,
      path: new URL(request.url).pathname,
      contentType: request.headers.get('content-type'),
      body: text === '' ? undefined : JSON.parse(text),
    };
    received.push(one);
    const answer = answers[`${one.method} ${one.path}`];
    if (!answer) throw new Error(`The test has no answer for ${one.method} ${one.path}`);
    const { status = 200, body } = typeof answer === 'function' ? await answer(one) : answer;
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
