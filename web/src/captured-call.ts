import { isObject } from './json-schema';
import type { Members } from './mcp/messages';

/** A revealed call on its way to the playground. */
export interface CapturedCall {
  id: string;
  tool: string;
  arguments: Members;
  /** Places that were masked before the arguments were kept: a replay needs other values there. */
  masked: number;
  /** The result or the error of the call; undefined if it was cut, or there is none. */
  answer: unknown;
}

/** In the memory of this page alone: revealed content stands in no address, history or storage. */
let handed: CapturedCall | undefined;

export function handOver(call: CapturedCall) {
  handed = call;
}

/** The call with this id; undefined after the page was loaded anew. */
export const handedOver = (id: string | undefined) => (handed?.id === id ? handed : undefined);

/** The value of a kept text; undefined if it was cut. */
export function keptValue(kept: { text: string; is_cut: boolean } | undefined): unknown {
  if (!kept || kept.is_cut) return undefined;
  try {
    return JSON.parse(kept.text);
  } catch {
    return undefined;
  }
}

/** What two answers to one call have in common: without the ids of each. */
export function comparable(answer: unknown): unknown {
  if (!isObject(answer)) return answer;
  const { _meta: _, ...rest } = answer;
  return rest;
}

/** The result or the error of a JSON-RPC response. */
export function outcomeOf(response: unknown): unknown {
  if (!isObject(response)) return undefined;
  return response.result ?? response.error;
}
