import { Alert, Button, Checkbox, Group, Stack, TextInput } from '@mantine/core';
import { useState } from 'react';
import { ApiError } from '../api/http';
import { useMay } from '../session';
import classes from './operations.module.css';
import { Panel } from './page';
import { clashingNames } from './tool-picker';

/** Something that a server can offer beside tools. */
export interface Offer {
  id: string;
  /** Its own name or URI. */
  key: string;
  title: string;
  note: string | null;
  /** Enabled, and still there. */
  awake: boolean;
}

/** Choosing the prompts, or the resources, of a server, each with the name under which clients see it. */
export function OfferPicker({
  word,
  offers,
  before,
  pending,
  error,
  onSave,
}: {
  word: 'prompts' | 'resources';
  offers: Offer[];
  /** Id → published name, as it is saved. */
  before: ReadonlyMap<string, string>;
  pending: boolean;
  error: Error | null;
  onSave: (names: ReadonlyMap<string, string>) => void;
}) {
  const edits = useMay('edit_registry');
  const [names, setNames] = useState<ReadonlyMap<string, string>>(before);
  const shown = offers.filter((one) => one.awake || before.has(one.id));
  const asleep = offers.filter((one) => before.has(one.id) && !one.awake);
  const refused = error instanceof ApiError ? error : null;
  const clashes = clashingNames(names);
  const dirty = names.size !== before.size || [...names].some(([id, name]) => before.get(id) !== name);
  const label = word === 'prompts' ? 'Published name' : 'Published URI';
  const set = (offer: Offer, chosen: boolean) => {
    const next = new Map(names);
    if (chosen) next.set(offer.id, offer.key);
    else next.delete(offer.id);
    setNames(next);
  };
  return (
    <Stack gap="lg">
      {asleep.length > 0 && (
        <Alert color="yellow" data-tone="yellow" title="Not all of them are served">
          {asleep.map((one) => one.key).join(', ')}: disabled, or gone from the source.
        </Alert>
      )}
      {error && (
        <Alert color="red" data-tone="red" role="alert" title={`The ${word} were not saved`}>
          {(refused ?? error).message}
        </Alert>
      )}
      <Panel title={`${word === 'prompts' ? 'Prompts' : 'Resources'} of this server`} flush>
        {shown.length === 0 ? (
          <p style={{ padding: '0 22px' }}>There are no enabled {word} in this workspace.</p>
        ) : (
          <ul className={classes.list}>
            {shown.map((offer) => {
              const name = names.get(offer.id);
              return (
                <li key={offer.id} className={`${classes.row} ${classes.picked}`}>
                  <Checkbox
                    id={`offer-${offer.id}`}
                    aria-label={offer.key}
                    checked={name !== undefined}
                    disabled={!edits}
                    onChange={(event) => set(offer, event.currentTarget.checked)}
                  />
                  <div>
                    <label htmlFor={`offer-${offer.id}`} className={classes.name}>
                      {offer.key}
                    </label>
                    <div className={classes.title}>
                      {[offer.title, offer.note].filter(Boolean).join(' · ')}
                    </div>
                  </div>
                  {name !== undefined && edits && (
                    <TextInput
                      size="xs"
                      aria-label={`${label} of ${offer.key}`}
                      leftSection={<span className={classes.title}>as</span>}
                      value={name}
                      onChange={(event) => setNames(new Map(names).set(offer.id, event.currentTarget.value))}
                      error={clashes.has(name) && 'Another chosen one has this. Change one of the two.'}
                      spellCheck={false}
                      styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
                    />
                  )}
                </li>
              );
            })}
          </ul>
        )}
      </Panel>
      {edits && (
        <Group>
          <Button disabled={!dirty || clashes.size > 0} loading={pending} onClick={() => onSave(names)}>
            Save {word}
          </Button>
          {dirty && (
            <Button variant="subtle" onClick={() => setNames(before)}>
              Discard changes
            </Button>
          )}
        </Group>
      )}
    </Stack>
  );
}
