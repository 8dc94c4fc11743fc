// PLAY-7: assertions of saved calls, by the vectors that the command line is held to, too.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { checked } from '../src/mcp/assertions';
import { parsePath, valueAt } from '../src/mcp/json-path';

const file = new URL('../../tests/vectors/saved_calls.json', import.meta.url);
const vectors = JSON.parse(
  readFileSync(process.cwd().endsWith('web') ? '../tests/vectors/saved_calls.json' : file, 'utf8'),
);

test('a path names the value that it names everywhere', () => {
  for (const { path, value, found, absent } of vectors.paths) {
    const steps = parsePath(path);
    expect(steps, path).toBeDefined();
    expect(valueAt(value, steps ?? []), path).toEqual(absent ? undefined : found);
  }
  for (const path of vectors.no_paths) expect(parsePath(path), path).toBeUndefined();
});

test('assertions hold where they hold for the command line', () => {
  for (const { expect: wanted, result, took_ms, holds } of vectors.checks) {
    const answer = { result: result ?? undefined, tookMs: took_ms, outputSchema: undefined };
    const findings = checked({ schema: false, ...wanted }, answer);
    expect(
      findings.map((one) => one.holds),
      JSON.stringify(wanted),
    ).toEqual(holds);
    for (const finding of findings) expect(finding.found === undefined).toBe(finding.holds);
  }
});

test('a result is held against its output schema', () => {
  const outputSchema = { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] };
  const found = (structuredContent: unknown, schema: object | undefined = outputSchema) =>
    checked(
      { status: 'ok', schema: true },
      { result: { content: [], structuredContent }, tookMs: 1, outputSchema: schema as never },
    )[1];
  expect(found({ id: 1 })?.holds).toBe(true);
  expect(found({ id: 'x' })?.holds).toBe(false);
  expect(found({ id: 'x' })?.found).toContain('#/id');
  expect(found(undefined)?.found).toBe('no structured content');
});
