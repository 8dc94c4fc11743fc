import { useState } from 'react';
import { isObject } from '../json-schema';
import classes from './json-tree.module.css';

const page = 100;

export function JsonTree({ value, label }: { value: unknown; label: string }) {
  return (
    <section className={classes.tree} aria-label={label}>
      <ul className={classes.top}>
        <Node name={null} value={value} depth={0} />
      </ul>
    </section>
  );
}

function Node({ name, value, depth }: { name: string | null; value: unknown; depth: number }) {
  const [opened, setOpened] = useState(depth < 2);
  const [limit, setLimit] = useState(page);
  const key = name === null ? null : <span className={classes.key}>{name}: </span>;
  if (!Array.isArray(value) && !isObject(value)) {
    return (
      <li className={classes.leaf}>
        {key}
        <Leaf value={value} />
      </li>
    );
  }
  const entries: [string, unknown][] = Array.isArray(value)
    ? value.map((one, index) => [String(index), one])
    : Object.entries(value);
  const noun = Array.isArray(value)
    ? entries.length === 1
      ? 'item'
      : 'items'
    : entries.length === 1
      ? 'field'
      : 'fields';
  return (
    <li>
      <details open={opened} onToggle={(event) => setOpened(event.currentTarget.open)}>
        <summary>
          {key}
          <span className={classes.count}>
            {Array.isArray(value) ? '[ ]' : '{ }'} {entries.length} {noun}
          </span>
        </summary>
        {opened && (
          <ul>
            {entries.slice(0, limit).map(([inner, one]) => (
              <Node key={inner} name={inner} value={one} depth={depth + 1} />
            ))}
            {entries.length > limit && (
              <li className={classes.leaf}>
                <button type="button" onClick={() => setLimit(limit + page)}>
                  Show more
                </button>
              </li>
            )}
          </ul>
        )}
      </details>
    </li>
  );
}

function Leaf({ value }: { value: unknown }) {
  if (typeof value === 'string') return <span className={classes.string}>{JSON.stringify(value)}</span>;
  if (typeof value === 'number') return <span className={classes.number}>{String(value)}</span>;
  return <span className={classes.word}>{String(value)}</span>;
}
