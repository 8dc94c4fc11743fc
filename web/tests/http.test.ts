import { expect, test, vi } from 'vitest';
import { ApiError, answer, api, everyPage } from '../src/api/http';
import { refusal, serve } from './server';

test('a refusal keeps status, code, sentence, field and details', async () => {
  serve({
    'POST /api/v1/workspaces': refusal(409, {
      code: 'slug_taken',
      message: 'Choose another.',
      field: 'slug',
      details: { a: 1 },
    }),
  });
  const error = await answer(api.POST('/api/v1/workspaces', { body: { name: 'A', slug: 'abc' } })).catch(
    (one) => one,
  );
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject({
    status: 409,
    code: 'slug_taken',
    message: 'Choose another.',
    field: 'slug',
    details: { a: 1 },
  });
});

test('an unsafe request says application/json, also without a body', async () => {
  const received = serve({ 'POST /api/v1/workspaces/w/servers/s/publish': { body: {} } });
  await answer(
    api.POST('/api/v1/workspaces/{ws}/servers/{id}/publish', { params: { path: { ws: 'w', id: 's' } } }),
  );
  expect(received[0]?.contentType).toBe('application/json');
});

test('without a session the browser goes to the sign-in page', async () => {
  serve({ 'GET /api/v1/me': refusal(401, { code: 'signed_out', message: 'Sign in.' }) });
  const assign = vi.spyOn(window.location, 'assign').mockImplementation(() => {});
  await expect(answer(api.GET('/api/v1/me'))).rejects.toMatchObject({ status: 401 });
  expect(assign).toHaveBeenCalledWith('/login');
});

test('no network is an error with a sentence, not a stack', async () => {
  vi.stubGlobal('fetch', () => Promise.reject(new TypeError('Failed to fetch')));
  await expect(answer(api.GET('/api/v1/me'))).rejects.toMatchObject({ status: 0, code: 'unreachable' });
});

test('an answer that is no error document still says what to do', async () => {
  serve({ 'GET /api/v1/me': { status: 503, body: 'x' } });
  await expect(answer(api.GET('/api/v1/me'))).rejects.toMatchObject({
    status: 503,
    message: expect.stringContaining('Wait'),
  });
});

test('pages are read to the last, and a cursor that never ends is left', async () => {
  const pages: Record<string, { items: number[]; next_cursor?: string }> = {
    first: { items: [1, 2], next_cursor: 'second' },
    second: { items: [3] },
  };
  expect(await everyPage(async (cursor) => pages[cursor ?? 'first'] ?? { items: [] })).toEqual([1, 2, 3]);
  expect((await everyPage(async () => ({ items: [1], next_cursor: 'again' }))).length).toBe(200);
});
