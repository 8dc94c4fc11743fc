import { ActionIcon, Checkbox, Textarea, TextInput } from '@mantine/core';
import { IconTrash } from '@tabler/icons-react';
import type { PromptArgument } from '../api/prompts';
import { isArgumentName } from '../placeholders';
import classes from './argument-rows.module.css';

export interface ArgumentDraft {
  id: number;
  name: string;
  title: string;
  description: string;
  required: boolean;
  /** One value a line; ` | other=value` behind it says when it is offered. */
  values: string;
}

export const argumentDraft = (id: number, argument?: Partial<PromptArgument>): ArgumentDraft => ({
  id,
  name: argument?.name ?? '',
  title: argument?.title ?? '',
  description: argument?.description ?? '',
  required: argument?.required ?? false,
  values: (argument?.values ?? [])
    .map((one) =>
      [one.value, ...Object.entries(one.when ?? {}).map(([name, value]) => `${name}=${value}`)].join(' | '),
    )
    .join('\n'),
});

/** Converts a draft to the argument that the API takes. */
export function argumentOf(draft: ArgumentDraft): PromptArgument {
  const values = draft.values
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .map((line) => {
      const [value = '', ...conditions] = line.split(' | ').map((part) => part.trim());
      const when = Object.fromEntries(
        conditions.map((one) => [one.split('=', 1)[0]?.trim() ?? '', one.slice(one.indexOf('=') + 1).trim()]),
      );
      return conditions.length > 0 ? { value, when } : { value };
    });
  return {
    name: draft.name.trim(),
    ...(draft.title.trim() ? { title: draft.title.trim() } : {}),
    ...(draft.description.trim() ? { description: draft.description.trim() } : {}),
    required: draft.required,
    values,
  };
}

/** The fault of the name of each draft, in their order. */
export const argumentFaults = (drafts: readonly ArgumentDraft[]): (string | null)[] =>
  drafts.map(({ name }, place) => {
    if (!isArgumentName(name)) return 'Use 1 to 64 letters, digits, “_”, “-” or “.”.';
    return drafts.findIndex((one) => one.name === name) < place ? 'This name is already used.' : null;
  });

/** Arguments of a prompt, or variables of a template whose names the template gives. */
export function ArgumentRows({
  word,
  drafts,
  onChange,
  fixed,
  tried,
}: {
  word: 'Argument' | 'Variable';
  drafts: ArgumentDraft[];
  onChange: (drafts: ArgumentDraft[]) => void;
  /** The names are given and all are required. */
  fixed?: boolean;
  /** Shows the fault of an empty name too. */
  tried: boolean;
}) {
  const change = (id: number, part: Partial<ArgumentDraft>) =>
    onChange(drafts.map((one) => (one.id === id ? { ...one, ...part } : one)));
  const faults = argumentFaults(drafts);
  return drafts.map((draft, place) => {
    const label = draft.name || `${word} ${place + 1}`;
    return (
      <fieldset key={draft.id} className={classes.row}>
        <legend className="visually-hidden">{label}</legend>
        <div className={classes.line}>
          <TextInput
            label="Name"
            value={draft.name}
            readOnly={fixed}
            onChange={(event) => change(draft.id, { name: event.currentTarget.value })}
            error={(tried || draft.name !== '') && faults[place]}
            spellCheck={false}
            autoCapitalize="none"
            className={classes.mono}
          />
          <TextInput
            label="Title"
            value={draft.title}
            onChange={(event) => change(draft.id, { title: event.currentTarget.value })}
            maxLength={120}
          />
          {!fixed && (
            <div className={classes.end}>
              <Checkbox
                label="Required"
                checked={draft.required}
                onChange={(event) => change(draft.id, { required: event.currentTarget.checked })}
              />
              <ActionIcon
                variant="subtle"
                color="gray"
                aria-label={`Remove ${label}`}
                onClick={() => onChange(drafts.filter((one) => one.id !== draft.id))}
              >
                <IconTrash size={17} aria-hidden />
              </ActionIcon>
            </div>
          )}
        </div>
        <div className={classes.line}>
          <TextInput
            label="Description"
            value={draft.description}
            onChange={(event) => change(draft.id, { description: event.currentTarget.value })}
            maxLength={1000}
          />
          <Textarea
            label="Suggested values"
            description="One a line. “Flask | language=python” is offered with that other value only."
            rows={2}
            value={draft.values}
            onChange={(event) => change(draft.id, { values: event.currentTarget.value })}
          />
        </div>
      </fieldset>
    );
  });
}
