import { Button } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import classes from './table.module.css';

/** A table that becomes cards on a phone. Cells: `data-label`, `data-wide`, `data-grow`, `data-align`, `data-shrink`. */
export function Table({ label, head, children }: { label: string; head: ReactNode; children: ReactNode }) {
  return (
    <table className={classes.table} aria-label={label}>
      <thead>
        <tr>{head}</tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  );
}

export function TableBar({ children }: { children: ReactNode }) {
  return <div className={classes.bar}>{children}</div>;
}

/** Shows the selection ({@link SelectionStatus}) and its actions. */
export function SelectionBar({ children }: { children: ReactNode }) {
  return <div className={classes.selection}>{children}</div>;
}

/**
 * How much is selected. A live region: screen readers announce a change of its text. It stays in the page with an empty
 * selection, because a region that appears with its text is not announced.
 */
export function SelectionStatus({ children }: { children: ReactNode }) {
  return (
    <span role="status" aria-live="polite">
      {children}
    </span>
  );
}

const step = 100;

/** The first rows of a long list, and the rest on request: hundreds of operations stay quick. */
export function useShown<T>(items: T[]): { shown: T[]; more: ReactNode } {
  const [limit, setLimit] = useState(step);
  const left = items.length - limit;
  return {
    shown: items.slice(0, limit),
    more:
      left > 0 ? (
        <div className={classes.more}>
          <Button variant="subtle" onClick={() => setLimit(limit + step)}>
            Show {Math.min(step, left)} more of {left}
          </Button>
        </div>
      ) : null,
  };
}

export function LoadMore({
  query,
  label = 'Show older',
}: {
  label?: string;
  query: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown };
}) {
  if (!query.hasNextPage) return null;
  return (
    <div className={classes.more}>
      <Button variant="subtle" loading={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
        {label}
      </Button>
    </div>
  );
}

export const cell = { main: classes.main, sub: classes.sub, clamp: classes.clamp, id: classes.id };
