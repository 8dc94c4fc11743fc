import { Text, TextInput } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { type ReactNode, useId, useState } from 'react';
import { Panel } from '../../../../../components/page';
import classes from './playground.module.css';

export interface Entry {
  key: string;
  title: string;
  note?: string;
  mark?: ReactNode;
}

/** Longer lists are filtered, not scrolled: a server may have a thousand tools. */
const shown = 100;

/** A list at the side and what was chosen beside it. */
export function Pick({
  noun,
  entries,
  chosen,
  onChoose,
  empty,
  children,
}: {
  noun: string;
  entries: Entry[];
  chosen: string | undefined;
  onChoose: (key: string) => void;
  empty: string;
  children: ReactNode;
}) {
  const [filter, setFilter] = useState('');
  const hint = useId();
  const words = filter.trim().toLowerCase();
  const found = entries.filter((one) => `${one.title} ${one.note ?? ''}`.toLowerCase().includes(words));
  if (entries.length === 0) {
    return (
      <Panel>
        <p className={classes.text}>{empty}</p>
      </Panel>
    );
  }
  return (
    <div className={classes.columns}>
      <div className={classes.side}>
        {entries.length > 8 && (
          <TextInput
            aria-label={`Filter ${noun}`}
            placeholder={`Filter ${entries.length} ${noun}`}
            leftSection={<IconSearch size={15} aria-hidden />}
            value={filter}
            onChange={(event) => setFilter(event.currentTarget.value)}
            mb="xs"
          />
        )}
        <ul className={classes.list} aria-label={noun} aria-describedby={hint}>
          {found.slice(0, shown).map((one) => (
            <li key={one.key}>
              <button
                type="button"
                className={classes.entry}
                aria-pressed={one.key === chosen}
                onClick={() => onChoose(one.key)}
              >
                <span className={classes.entryTitle}>
                  <code>{one.title}</code> {one.mark}
                </span>
                {one.note && <span className={classes.entryNote}>{one.note}</span>}
              </button>
            </li>
          ))}
        </ul>
        <Text id={hint} size="xs" c="dimmed" mt="xs">
          {found.length === 0
            ? 'No matches.'
            : found.length > shown
              ? `${shown} of ${found.length} are shown. Filter for the others.`
              : ''}
        </Text>
      </div>
      <div className={classes.main}>{children}</div>
    </div>
  );
}
