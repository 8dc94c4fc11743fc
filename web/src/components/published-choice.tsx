import { Button, Checkbox, Stack, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import { useMay } from '../session';
import { useFields } from './form';
import classes from './operations.module.css';
import { Panel } from './page';
import { Submit } from './submit';
import { Unsaved } from './unsaved';

/** Id → published name, of the chosen things in the order in which they were chosen. */
export type Names = ReadonlyMap<string, string>;

/** The published names that stand more than once. */
export function clashingNames(names: Names): Set<string> {
  const seen = new Set<string>();
  const twice = new Set<string>();
  for (const name of names.values()) {
    if (seen.has(name)) twice.add(name);
    seen.add(name);
  }
  return twice;
}

/** `names` with things chosen under the names that they have themselves, or without them. */
export function choose(
  names: Names,
  things: { id: string; name: string }[],
  chosen: boolean,
): Map<string, string> {
  const next = new Map(names);
  for (const { id, name } of things) {
    if (!chosen) next.delete(id);
    else if (!next.has(id)) next.set(id, name);
  }
  return next;
}

const differs = (names: Names, before: Names) =>
  names.size !== before.size || [...names].some(([id, name]) => before.get(id) !== name);

/** The things of one kind that a server publishes, with their names; buttons save or discard it. */
export function PublishedChoice({
  word,
  note,
  none,
  before,
  refused = [],
  faultOf = () => null,
  pending,
  error,
  onSave,
  children,
}: {
  word: 'tools' | 'prompts' | 'resources';
  note?: string;
  /** The text for a list without anything to choose. */
  none: string | false;
  /** The choice as it is saved. */
  before: Names;
  /** Names that the server refused. */
  refused?: readonly string[];
  /** The fault of a name by itself. */
  faultOf?: (name: string) => string | null;
  pending: boolean;
  error: Error | null;
  onSave: (names: Names) => void;
  /** The list; without `onChange` for those who may only look. */
  children: (
    names: Names,
    onChange: ((names: Names) => void) | undefined,
    clashes: ReadonlySet<string>,
  ) => ReactNode;
}) {
  const edits = useMay('edit_registry');
  const form = useFields({ initialValues: { names: new Map(before) } });
  const { names } = form.values;
  const clashes = clashingNames(names);
  const current = [...names.values()];
  const shown = new Set([...clashes, ...refused.filter((name) => current.includes(name))]);
  const changed = differs(names, before);
  return (
    <Stack gap="lg">
      <Unsaved when={changed && !pending} />
      <Panel title={`${word[0]?.toUpperCase()}${word.slice(1)} of this server`} note={note} flush>
        {none ? (
          <p className={classes.none}>{none}</p>
        ) : (
          children(names, edits ? (next) => form.setFieldValue('names', new Map(next)) : undefined, shown)
        )}
      </Panel>
      {edits && (
        <Submit sticky error={error} title={`The ${word} were not saved`}>
          <Button
            disabled={!changed || clashes.size > 0 || current.some(faultOf)}
            loading={pending}
            onClick={() => onSave(names)}
          >
            Save {word}
          </Button>
          {changed && (
            <Button variant="subtle" onClick={() => form.setFieldValue('names', new Map(before))}>
              Discard changes
            </Button>
          )}
        </Submit>
      )}
    </Stack>
  );
}

/** One thing to choose, with the name under which it is published once it is chosen. */
export function ChoiceRow({
  id,
  own,
  label,
  name,
  fault,
  onChoose,
  onRename,
  children,
}: {
  /** Of the box, for a label in `children`. */
  id: string;
  /** The thing's own name or URI. */
  own: string;
  /** The label of the published name. */
  label: string;
  /** The published name; undefined if it is not chosen. */
  name: string | undefined;
  fault: ReactNode;
  onChoose: (chosen: boolean) => void;
  /** Absent for those who may only look. */
  onRename: ((name: string) => void) | undefined;
  children: ReactNode;
}) {
  return (
    <li className={`${classes.row} ${classes.picked}`}>
      <Checkbox
        id={id}
        aria-label={own}
        checked={name !== undefined}
        disabled={!onRename}
        onChange={(event) => onChoose(event.currentTarget.checked)}
      />
      <div>{children}</div>
      {name !== undefined && onRename && (
        <TextInput
          size="xs"
          aria-label={`${label} of ${own}`}
          leftSection={<span className={classes.title}>as</span>}
          value={name}
          onChange={(event) => onRename(event.currentTarget.value)}
          error={fault}
          spellCheck={false}
          classNames={{ input: classes.published }}
        />
      )}
    </li>
  );
}
