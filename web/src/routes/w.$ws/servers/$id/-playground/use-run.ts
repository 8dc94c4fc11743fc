import { useRef, useState } from 'react';
import type { Progress } from '../../../../../mcp/connection';
import type { Members } from '../../../../../mcp/messages';

/** One request of the person: its progress, and how it ended. */
export interface Run {
  state: 'idle' | 'running' | 'done' | 'failed' | 'cancelled';
  result?: Members;
  error?: unknown;
  progress?: Progress;
  durationMs?: number;
}

export interface RunTools {
  signal: AbortSignal;
  onProgress: (progress: Progress) => void;
}

/** Runs one request at a time, which can be cancelled. It goes on while another tab is shown. */
export function useRun() {
  const [run, setRun] = useState<Run>({ state: 'idle' });
  const running = useRef<AbortController>(undefined);

  async function start(request: (tools: RunTools) => Promise<Members>) {
    running.current?.abort();
    const own = new AbortController();
    running.current = own;
    const begun = performance.now();
    const current = () => running.current === own;
    setRun({ state: 'running' });
    try {
      const result = await request({
        signal: own.signal,
        onProgress: (progress) => {
          if (current()) setRun((before) => ({ ...before, progress }));
        },
      });
      if (current()) setRun({ state: 'done', result, durationMs: performance.now() - begun });
    } catch (error) {
      const state = own.signal.aborted ? 'cancelled' : 'failed';
      if (current()) setRun({ state, error, durationMs: performance.now() - begun });
    }
  }

  return { run, start, cancel: () => running.current?.abort(), reset: () => setRun({ state: 'idle' }) };
}
