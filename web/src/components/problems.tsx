import { Alert, Button } from '@mantine/core';
import { IconAlertTriangle, IconCircleX } from '@tabler/icons-react';
import { useState } from 'react';
import { ApiError } from '../api/http';
import type { Problem } from '../api/sources';
import { sentence } from '../sentence';
import { InlineCode } from './inline-code';
import classes from './operations.module.css';

function where(problem: Problem): string {
  const parts: string[] = [];
  if (problem.line)
    parts.push(problem.column ? `line ${problem.line}, column ${problem.column}` : `line ${problem.line}`);
  if (problem.pointer) parts.push(problem.pointer);
  return parts.join(' · ');
}

export function Problems({ problems }: { problems: Problem[] }) {
  const [all, setAll] = useState(false);
  const shown = all ? problems : problems.slice(0, 8);
  return (
    <>
      <ul className={classes.problems}>
        {shown.map((problem, row) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: problems have no id and do not move
          <li key={row} className={classes.problem} data-severity={problem.severity}>
            {problem.severity === 'error' ? (
              <IconCircleX size={19} aria-label="Error" />
            ) : (
              <IconAlertTriangle size={19} aria-label="Warning" />
            )}
            <div>
              <InlineCode text={sentence(problem.message)} />
              {where(problem) && (
                <div className={classes.where}>
                  <code>{where(problem)}</code>
                </div>
              )}
            </div>
          </li>
        ))}
      </ul>
      {shown.length < problems.length && (
        <Button variant="subtle" mt="sm" onClick={() => setAll(true)}>
          Show all {problems.length}
        </Button>
      )}
    </>
  );
}

/** The problems that the API put into its refusal, if it did. */
export function problemsOf(error: unknown): Problem[] {
  if (!(error instanceof ApiError)) return [];
  const details = error.details as { problems?: Problem[] } | null | undefined;
  return Array.isArray(details?.problems) ? details.problems : [];
}

/** Why a document was refused, once: a single problem is the sentence of the refusal, with its place. */
export function DocumentRefused({ error }: { error: Error }) {
  const problems = problemsOf(error);
  const bare = (text: string) => text.trim().replace(/[.!]$/, '').toLowerCase();
  const isSaid = problems.some((one) => bare(one.message) === bare(error.message));
  return (
    <Alert color="red" data-tone="red" role="alert" title="The document can’t be imported">
      {!isSaid && (
        <p className={classes.lead}>
          <InlineCode text={sentence(error.message)} />
        </p>
      )}
      {problems.length > 0 && <Problems problems={problems} />}
    </Alert>
  );
}
