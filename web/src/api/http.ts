import createClient from 'openapi-fetch';
import { sessionAnswered, sessionEnded } from '../signed-out';
import type { components, paths } from './client.gen';

/** The nouns of the console's API, as the server's document names them. */
export type Schemas = components['schemas'];

/** An error of the API with its reason. `status` 0 means that no response arrived. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly field: string | undefined;
  readonly details: unknown;

  constructor(status: number, code: string, message: string, field?: string | null, details?: unknown) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.code = code;
    this.field = field ?? undefined;
    this.details = details;
  }
}

export const api = createClient<paths>({
  baseUrl: window.location.origin,
  credentials: 'same-origin',
  // Looked up at each call, so that a test can stand in for the network.
  fetch: (request: Request) => globalThis.fetch(request),
});

api.use({
  onRequest({ request }) {
    if (request.method !== 'GET') request.headers.set('content-type', 'application/json');
    return request;
  },
});

const silent: Record<number, string> = {
  403: 'Your role in this workspace does not allow this. Ask an owner or admin.',
  404: 'This does not exist, or it belongs to another workspace.',
  413: 'This is too large. The limit is 10 MiB.',
  429: 'Too many requests. Wait a moment and try again.',
  503: 'Portolan is busy. Wait a moment and try again.',
};

function refusal(status: number, body: unknown): ApiError {
  const error = (body as { error?: Schemas['ErrorBody'] } | undefined)?.error;
  if (error && typeof error.message === 'string') {
    return new ApiError(status, error.code, error.message, error.field, error.details);
  }
  return new ApiError(
    status,
    'unreadable',
    silent[status] ?? `The server answered ${status} without a reason. Try again.`,
  );
}

/** The answer's body, or an `ApiError`. Without a session the person is asked to sign in. */
export async function answer<T>(
  call: Promise<{ data?: T; error?: unknown; response: Response }>,
): Promise<T> {
  let outcome: { data?: T; error?: unknown; response: Response };
  try {
    outcome = await call;
  } catch (cause) {
    if (cause instanceof ApiError) throw cause;
    throw new ApiError(0, 'unreachable', 'Portolan cannot be reached. Check the connection and try again.');
  }
  const { response } = outcome;
  if (response.status === 401) {
    sessionEnded();
    throw new ApiError(401, 'signed_out', 'You are signed out. Sign in again to continue.');
  }
  sessionAnswered();
  if (!response.ok) throw refusal(response.status, outcome.error);
  return outcome.data as T;
}

/** All pages of a list, one after the other. The bound keeps a faulty cursor from looping. */
export async function everyPage<T>(
  page: (cursor: string | undefined) => Promise<{ items: T[]; next_cursor?: string | null }>,
): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | undefined;
  for (let turn = 0; turn < 200; turn += 1) {
    const one = await page(cursor);
    items.push(...one.items);
    if (!one.next_cursor) break;
    cursor = one.next_cursor;
  }
  return items;
}
