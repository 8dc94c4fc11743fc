import { Validator } from '@cfworker/json-schema';
import type { SavedExpectations } from '../api/saved-calls';
import { isObject } from '../json-schema';
import { parsePath, valueAt } from './json-path';
import type { Members } from './messages';

/** The finding of one assertion (PLAY-7). */
export interface Finding {
  what: string;
  holds: boolean;
  found: string | undefined;
}

export interface Answer {
  /** Undefined after a JSON-RPC error. */
  result: Members | undefined;
  tookMs: number;
  outputSchema: Members | undefined;
}

/** JSON equality: members have no order. */
export function same(left: unknown, right: unknown): boolean {
  if (Array.isArray(left) && Array.isArray(right)) {
    return left.length === right.length && left.every((one, place) => same(one, right[place]));
  }
  if (isObject(left) && isObject(right)) {
    const names = Object.keys(left);
    return (
      names.length === Object.keys(right).length &&
      names.every((name) => Object.hasOwn(right, name) && same(left[name], right[name]))
    );
  }
  return left === right;
}

/** Holds assertions against an answer, in the order in which the command line does. */
export function checked(expect: SavedExpectations, { result, tookMs, outputSchema }: Answer): Finding[] {
  const failed = result === undefined || result.isError === true;
  const findings: Finding[] = [
    finding(`status is ${expect.status}`, failed === (expect.status === 'error'), failed ? 'error' : 'ok'),
  ];
  for (const { path, value } of expect.equals ?? []) {
    const steps = parsePath(path);
    const here = steps && valueAt(result, steps);
    const found = here === undefined ? 'nothing' : JSON.stringify(here);
    findings.push(
      finding(`${path} is ${JSON.stringify(value)}`, here !== undefined && same(here, value), found),
    );
  }
  if (expect.schema) {
    const fault = schemaFault(result, outputSchema);
    findings.push(finding('the result fits its output schema', fault === undefined, fault ?? ''));
  }
  if (expect.max_ms != null) {
    const took = Math.round(tookMs);
    findings.push(finding(`it takes at most ${expect.max_ms} ms`, took <= expect.max_ms, `${took} ms`));
  }
  return findings;
}

const finding = (what: string, holds: boolean, found: string): Finding => ({
  what,
  holds,
  found: holds ? undefined : found,
});

function schemaFault(result: Members | undefined, schema: Members | undefined): string | undefined {
  if (!schema) return 'the tool has no output schema';
  if (result?.structuredContent === undefined) return 'no structured content';
  const { valid, errors } = new Validator(schema as object, '2020-12').validate(result.structuredContent);
  if (valid) return undefined;
  const last = errors.at(-1);
  return last ? `${last.instanceLocation}: ${last.error}` : 'it does not fit';
}
