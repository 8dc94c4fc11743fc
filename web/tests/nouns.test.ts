import { QueryClient } from '@tanstack/react-query';
import { expect, test } from 'vitest';
import { changed, key, type Noun, shownIn } from '../src/api/nouns';

const nouns = Object.keys(shownIn) as Noun[];

/** A client that has read each noun of two workspaces, and one server by its id. */
function read(): QueryClient {
  const client = new QueryClient();
  for (const noun of nouns) {
    client.setQueryData(key('harbour', noun), noun);
    client.setQueryData(key('other', noun), noun);
  }
  client.setQueryData(key('harbour', 'servers', 'srv_1', 'connection'), 'gone');
  return client;
}

const stale = (client: QueryClient) =>
  client
    .getQueryCache()
    .getAll()
    .filter((query) => query.state.isInvalidated)
    .map((query) => query.queryKey.join(' '))
    .sort();

test.each(nouns)('a change of %s makes stale what shows it, in its workspace', async (noun) => {
  const client = read();
  await changed(client, 'harbour', noun);
  const expected = shownIn[noun].map((one) => `harbour ${one}`);
  if (expected.includes('harbour servers')) expected.push('harbour servers srv_1 connection' as never);
  expect(stale(client)).toEqual([...expected].sort());
});

test('the pages of a deleted thing are not read again', async () => {
  const client = read();
  await changed(client, 'harbour', 'servers', 'srv_1');
  expect(stale(client)).toContain('harbour servers');
  expect(stale(client)).not.toContain('harbour servers srv_1 connection');
});
