import { text } from './search';

/** The filters of calls, in the order of the chips. The address of the page has one parameter for each. */
export const filterNames = [
  'tool',
  'server',
  'client',
  'user',
  'outcome',
  'error',
  'era',
  'dur',
  'from',
  'to',
] as const;

export type FilterName = (typeof filterNames)[number];

export type CallFilter = Partial<Record<FilterName, string>>;

/** The filters that an address names. */
export function readFilter(search: Record<string, unknown>): CallFilter {
  const filter: CallFilter = {};
  for (const name of filterNames) {
    const value = text(search[name]);
    if (value) filter[name] = value;
  }
  return filter;
}

const words: Partial<Record<FilterName, readonly string[]>> = {
  outcome: ['ok', 'error', 'tool_error', 'invalid_arguments', 'upstream_error', 'internal'],
  era: ['session', 'stateless', 'console', 'unknown'],
};

/** `>500ms`, `<2s`, or `256ms..512ms`: longer than the first and at most the second. */
const duration = /^(?:([<>])|(\d+(?:\.\d+)?)(ms|s)?\.\.)(\d+(?:\.\d+)?)(ms|s)?$/;
const ago = /^(\d+)(m|h|d)$/;
const units = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `1h` is an hour ago; everything else is a date that the browser can read. */
function time(value: string, now: number): string | undefined {
  const relative = ago.exec(value);
  const at = relative
    ? now - Number(relative[1]) * units[relative[2] as keyof typeof units]
    : Date.parse(value);
  return Number.isFinite(at) ? new Date(at).toISOString() : undefined;
}

/** The typed line: filters, or a sentence about the first part that is none. */
export type Typed = { filter: CallFilter } | { fault: string };

/** Reads `tool:get_port outcome:error dur:>500ms`. A value with spaces stands in quotes; a bare word is a tool. */
export function readTyped(typed: string, now: number): Typed {
  const filter: CallFilter = {};
  for (const [part, name = 'tool', quoted, plain] of typed.matchAll(/(?:(\w+):)?(?:"([^"]*)"|(\S+))/g)) {
    const value = quoted ?? plain ?? '';
    if (!filterNames.includes(name as FilterName)) {
      return { fault: `“${name}” is no filter. Use ${filterNames.join(', ')}.` };
    }
    const known = words[name as FilterName];
    if (known && !known.includes(value)) return { fault: `${name} is one of ${known.join(', ')}.` };
    if (name === 'dur' && !duration.test(value)) {
      return { fault: 'Write a duration as dur:>500ms, dur:<2s or dur:250ms..500ms.' };
    }
    if (name === 'from' || name === 'to') {
      const at = time(value, now);
      if (!at) return { fault: `“${part}” is no time. Write ${name}:1h, ${name}:7d or ${name}:2026-11-26.` };
      filter[name] = at;
    } else {
      filter[name as FilterName] = value;
    }
  }
  return { filter };
}

/** Milliseconds with at most three digits after the point: the service counts microseconds. */
const millis = (size: string | undefined, unit: string | undefined, more = 0) =>
  Math.round(Number(size) * (unit === 's' ? 1_000_000 : 1000) + more) / 1000;

/** The filter as the API takes it. */
export function asQuery({ dur, ...rest }: CallFilter) {
  const [found, sign, low, lowUnit, size, unit] = (dur && duration.exec(dur)) || [];
  if (!found) return rest;
  if (sign === '>') return { ...rest, longer_ms: millis(size, unit) };
  if (sign === '<') return { ...rest, shorter_ms: millis(size, unit) };
  return { ...rest, longer_ms: millis(low, lowUnit), shorter_ms: millis(size, unit, 1) };
}

/** The same as a query string, for links that leave the router. */
export function asSearch(filter: CallFilter, more: Record<string, string> = {}): string {
  const pairs = Object.entries({ ...asQuery(filter), ...more }).map(([name, value]) => [name, String(value)]);
  return new URLSearchParams(pairs).toString();
}
