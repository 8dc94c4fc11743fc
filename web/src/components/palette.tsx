import { Combobox, Modal, Switch, TextInput, useCombobox } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { useEffect, useState } from 'react';
import { setSingleKeys, singleKeys } from '../shortcuts';
import { Dialog } from './dialog';
import classes from './palette.module.css';

/** A result of the palette. */
export interface Entry {
  /** Unique in the palette. */
  id: string;
  label: string;
  /** Distinguishes entries of equal label. */
  detail?: string;
  open: () => void;
}

export interface EntryGroup {
  label: string;
  entries: Entry[];
}

/** Whether a text contains every word of a query, in any case. */
export function matches(query: string, text: string): boolean {
  const whole = text.toLowerCase();
  return query
    .toLowerCase()
    .split(/\s+/)
    .every((word) => whole.includes(word));
}

/** The command palette: one field over groups of results, worked by the arrow keys and Enter. */
export function Palette({
  query,
  onQuery,
  groups,
  pending,
  failed,
  onClose,
}: {
  query: string;
  onQuery: (query: string) => void;
  groups: EntryGroup[];
  /** More results are on their way. */
  pending?: boolean;
  /** Why there are fewer results than there could be. */
  failed?: string;
  onClose: () => void;
}) {
  const combobox = useCombobox({ opened: true });
  const shown = groups.filter((group) => group.entries.length > 0);
  const entries = shown.flatMap((group) => group.entries);
  const ids = entries.map((entry) => entry.id).join(' ');
  // biome-ignore lint/correctness/useExhaustiveDependencies: the first result is selected when the results change
  useEffect(() => {
    combobox.selectFirstOption();
  }, [ids]);
  const status = failed ?? (pending ? 'Searching…' : entries.length === 0 ? 'No results.' : '');
  return (
    <Modal.Root opened onClose={onClose} size={640} centered={false} yOffset="8dvh">
      <Modal.Overlay />
      <Modal.Content data-scroll-lock aria-label="Search">
        <div className={classes.content}>
          <Combobox
            store={combobox}
            onOptionSubmit={(id) => {
              onClose();
              entries.find((entry) => entry.id === id)?.open();
            }}
          >
            <Combobox.EventsTarget>
              <TextInput
                data-autofocus
                aria-label="Search pages, servers, tools and docs"
                placeholder="Search pages, servers, tools, docs…"
                leftSection={<IconSearch size={18} aria-hidden />}
                size="md"
                value={query}
                onChange={(event) => onQuery(event.currentTarget.value)}
                maxLength={200}
                spellCheck={false}
                autoComplete="off"
              />
            </Combobox.EventsTarget>
            <Combobox.Options className={classes.results} aria-label="Results">
              {shown.map((group) => (
                <Combobox.Group key={group.label} label={group.label}>
                  {group.entries.map((entry) => (
                    <Combobox.Option key={entry.id} value={entry.id} className={classes.entry}>
                      <span className={classes.label}>{entry.label}</span>
                      {entry.detail && <span className={classes.detail}>{entry.detail}</span>}
                    </Combobox.Option>
                  ))}
                </Combobox.Group>
              ))}
            </Combobox.Options>
          </Combobox>
          <p className={classes.status} role="status">
            {status}
          </p>
        </div>
      </Modal.Content>
    </Modal.Root>
  );
}

const shortcuts: [string[], string][] = [
  [['Ctrl', 'K'], 'Search and go to anything (⌘ K on a Mac)'],
  [['/'], 'The same'],
  [['?'], 'Show the shortcuts'],
  [['↑', '↓'], 'Move through results'],
  [['Enter'], 'Open the selected result'],
  [['Esc'], 'Close'],
];

/** The keys that the console knows. */
export function ShortcutHelp({ onClose }: { onClose: () => void }) {
  const [single, setSingle] = useState(singleKeys);
  return (
    <Dialog opened onClose={onClose} title="Keyboard shortcuts">
      <dl className={classes.keys}>
        {shortcuts.map(([keys, what]) => (
          <div key={what}>
            <dt>
              {keys.map((one) => (
                <kbd key={one}>{one}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <Switch
        label="Shortcuts of a single key (/ and ?)"
        checked={single}
        onChange={(event) => {
          setSingle(event.currentTarget.checked);
          setSingleKeys(event.currentTarget.checked);
        }}
      />
    </Dialog>
  );
}
