import type { CallLog } from './api/workspaces';

/** The three ways in which a call ends. A rejected call has invalid arguments: nothing was sent. */
export type Verdict = 'succeeded' | 'failed' | 'rejected';

/** Name and colour, the same wherever calls are shown or counted. Blue and red differ for every eye. */
export const verdicts = {
  succeeded: { name: 'Succeeded', color: 'var(--outcome-succeeded)' },
  failed: { name: 'Failed', color: 'var(--outcome-failed)' },
  rejected: { name: 'Rejected', color: 'var(--outcome-rejected)' },
} as const;

/** How each outcome is counted, and its own words. */
export const outcomes: Record<CallLog['outcome'], { verdict: Verdict; name: string }> = {
  ok: { verdict: 'succeeded', name: 'Succeeded' },
  tool_error: { verdict: 'failed', name: 'API error' },
  upstream_error: { verdict: 'failed', name: 'API unreachable' },
  internal: { verdict: 'failed', name: 'Internal error' },
  invalid_arguments: { verdict: 'rejected', name: 'Rejected: invalid arguments' },
};

/** Counts of the service by verdict, in the order of a chart from below. */
export function counted({ calls, errors, rejected }: { calls: number; errors: number; rejected: number }) {
  const values = { succeeded: Math.max(0, calls - errors - rejected), failed: errors, rejected };
  return (['succeeded', 'rejected', 'failed'] as const).map((verdict) => ({
    ...verdicts[verdict],
    value: values[verdict],
  }));
}
