import type { ReactNode } from 'react';
import type { Server } from '../api/servers';
import type { CallLog } from '../api/workspaces';
import { outcomes, type Verdict } from '../outcomes';
import classes from './badges.module.css';

type Tone = 'good' | 'bad' | 'warn' | 'quiet' | Verdict;

export function Method({ method }: { method: string }) {
  const upper = method.toUpperCase();
  return (
    <span className={classes.method} data-method={upper}>
      {upper}
    </span>
  );
}

export function Status({ tone, children }: { tone: Tone; children: ReactNode }) {
  return (
    <span className={classes.status} data-tone={tone}>
      {children}
    </span>
  );
}

export function Tag({ tone, children }: { tone?: 'warn' | 'bad'; children: ReactNode }) {
  return (
    <span className={classes.tag} data-tone={tone}>
      {children}
    </span>
  );
}

const serverStatus: Record<Server['status'], [Tone, string]> = {
  published: ['good', 'Published'],
  draft: ['quiet', 'Draft'],
  paused: ['warn', 'Paused'],
};

export function ServerStatus({ status }: { status: Server['status'] }) {
  const [tone, word] = serverStatus[status];
  return <Status tone={tone}>{word}</Status>;
}

export function Outcome({ call }: { call: Pick<CallLog, 'outcome' | 'status'> }) {
  const { verdict, name } = outcomes[call.outcome];
  return (
    <Status tone={verdict}>
      {name}
      {call.status ? ` · ${call.status}` : ''}
    </Status>
  );
}
