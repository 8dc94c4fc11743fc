import { Button, Checkbox, Stack, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useMay } from '../session';
import { Tag } from './badges';
import classes from './operations.module.css';
import { Panel } from './page';
import { Submit } from './submit';
import { clashingNames } from './tool-picker';
import { Unsaved } from './unsaved';

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
  const clashes = clashingNames(names);
  const dirty = names.size !== before.size || [...names].some(([id, name]) => before.get(id) !== name);
  return (
    <Stack gap="lg">
      <Unsaved when={dirty && !pending} />
      <Panel title={`${word === 'prompts' ? 'Prompts' : 'Resources'} of this server`} flush>
        {shown.length === 0 ? (
          <p className={classes.none}>There are no enabled {word} in this workspace.</p>
        ) : (
          <OfferList
            word={word}
            offers={shown}
            names={names}
            onChange={edits ? setNames : undefined}
            clashes={clashes}
          />
        )}
      </Panel>
      {edits && (
        <Submit sticky error={error} title={`The ${word} were not saved`}>
          <Button disabled={!dirty || clashes.size > 0} loading={pending} onClick={() => onSave(names)}>
            Save {word}
          </Button>
          {dirty && (
            <Button variant="subtle" onClick={() => setNames(before)}>
              Discard changes
            </Button>
          )}
        </Submit>
      )}
    </Stack>
  );
}

/** The prompts or resources of a server, each with a box and, once selected, its published name. */
export function OfferList({
  word,
  offers,
  names,
  onChange,
  clashes,
}: {
  word: 'prompts' | 'resources';
  offers: Offer[];
  names: ReadonlyMap<string, string>;
  /** Absent for those who may only look. */
  onChange: ((names: ReadonlyMap<string, string>) => void) | undefined;
  clashes: ReadonlySet<string>;
}) {
  const label = word === 'prompts' ? 'Published name' : 'Published URI';
  const set = (offer: Offer, chosen: boolean) => {
    const next = new Map(names);
    if (chosen) next.set(offer.id, offer.key);
    else next.delete(offer.id);
    onChange?.(next);
  };
  return (
    <ul className={classes.list}>
      {offers.map((offer) => {
        const name = names.get(offer.id);
        return (
          <li key={offer.id} className={`${classes.row} ${classes.picked}`}>
            <Checkbox
              id={`offer-${offer.id}`}
              aria-label={offer.key}
              checked={name !== undefined}
              disabled={!onChange}
              onChange={(event) => set(offer, event.currentTarget.checked)}
            />
            <div>
              <label htmlFor={`offer-${offer.id}`} className={classes.name}>
                {offer.key}
              </label>
              <div className={classes.title}>
                {[offer.title, offer.note].filter(Boolean).join(' · ')}{' '}
                {!offer.awake && <Tag tone="warn">disabled, not served</Tag>}
              </div>
            </div>
            {name !== undefined && onChange && (
              <TextInput
                size="xs"
                aria-label={`${label} of ${offer.key}`}
                leftSection={<span className={classes.title}>as</span>}
                value={name}
                onChange={(event) => onChange(new Map(names).set(offer.id, event.currentTarget.value))}
                error={clashes.has(name) && 'This name is already used. Change one of the two.'}
                spellCheck={false}
                styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
              />
            )}
          </li>
        );
      })}
    </ul>
  );
}
