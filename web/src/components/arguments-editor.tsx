import { Box, Group, SegmentedControl, Textarea } from '@mantine/core';
import type { ArgumentFault } from '../api/tools';
import { isObject, type Schema } from '../json-schema';
import classes from './arguments-editor.module.css';
import { SchemaForm } from './schema-form';

/**
 * Arguments while they are edited. `value` is the one truth; `text` is how it stands in the JSON field, and null while
 * the form is shown. A text that cannot be read leaves the last good value.
 */
export interface ArgumentsDraft {
  value: Record<string, unknown>;
  text: string | null;
  fault: string | null;
}

export const draftOf = (value: Record<string, unknown>): ArgumentsDraft => ({
  value,
  text: null,
  fault: null,
});

function readText(draft: ArgumentsDraft, text: string): ArgumentsDraft {
  try {
    const value: unknown = JSON.parse(text.trim() === '' ? '{}' : text);
    if (isObject(value)) return { value, text, fault: null };
    return { ...draft, text, fault: 'The arguments are one JSON object: { … }' };
  } catch (cause) {
    return { ...draft, text, fault: cause instanceof Error ? cause.message : 'This is not JSON.' };
  }
}

/** A form of the schema, or raw JSON. Both edit the same value, so nothing is escaped or lost on the way. */
export function ArgumentsEditor({
  schema,
  draft,
  onChange,
  faults = [],
}: {
  schema: Schema;
  draft: ArgumentsDraft;
  onChange: (draft: ArgumentsDraft) => void;
  faults?: ArgumentFault[];
}) {
  const json = draft.text !== null;
  return (
    <div>
      <Group justify="space-between" mb="sm">
        <span className={classes.title}>Arguments</span>
        <SegmentedControl
          size="xs"
          aria-label="Input mode"
          value={json ? 'json' : 'form'}
          // JSON that cannot be read stays, with its fault.
          disabled={draft.fault !== null}
          onChange={(mode) =>
            onChange({ ...draft, text: mode === 'json' ? JSON.stringify(draft.value, null, 2) : null })
          }
          data={[
            { value: 'form', label: 'Form' },
            { value: 'json', label: 'JSON' },
          ]}
        />
      </Group>
      {draft.text === null ? (
        <Box maw={640}>
          <SchemaForm
            schema={schema}
            value={draft.value}
            onChange={(value) => onChange({ ...draft, value })}
            faults={faults}
          />
        </Box>
      ) : (
        <Textarea
          aria-label="Arguments as JSON"
          rows={12}
          value={draft.text}
          error={draft.fault}
          onChange={(event) => onChange(readText(draft, event.currentTarget.value))}
          spellCheck={false}
          classNames={{ input: classes.json }}
        />
      )}
    </div>
  );
}
