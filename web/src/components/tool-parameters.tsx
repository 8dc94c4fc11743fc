import { ActionIcon, Alert, Button, Checkbox, Select, Stack, TextInput } from '@mantine/core';
import { IconPlus, IconTrash } from '@tabler/icons-react';
import type { ToolParameter } from '../api/tools';
import type { Fields } from './form';
import { Panel } from './page';
import type { ToolDraft } from './tool-editor';
import classes from './tool-editor.module.css';

export type ParameterDraft = {
  id: number;
  name: string;
  in: ToolParameter['in'];
  required: boolean;
  description: string;
  type: string;
  schema: unknown;
};

const types = [
  { value: 'string', label: 'Text', schema: { type: 'string' } },
  { value: 'integer', label: 'Whole number', schema: { type: 'integer' } },
  { value: 'number', label: 'Number', schema: { type: 'number' } },
  { value: 'boolean', label: 'Yes or no', schema: { type: 'boolean' } },
  { value: 'strings', label: 'List of texts', schema: { type: 'array', items: { type: 'string' } } },
];

function typeOf(schema: unknown): string {
  const text = JSON.stringify(schema);
  return types.find((one) => JSON.stringify(one.schema) === text)?.value ?? 'custom';
}

/** The parameter of a tool as a draft. */
export const parameterDraft = (id: number, one: ToolParameter): ParameterDraft => ({
  id,
  name: one.name,
  in: one.in,
  required: one.required ?? false,
  description: one.description ?? '',
  type: typeOf(one.schema),
  schema: one.schema,
});

/** Converts a draft to the parameter that the API takes. */
export const parameterOf = (one: ParameterDraft): ToolParameter => ({
  name: one.name,
  in: one.in,
  required: one.in === 'path' ? true : one.required,
  ...(one.description.trim() ? { description: one.description.trim() } : {}),
  schema: (types.find((type) => type.value === one.type)?.schema ?? one.schema) as ToolParameter['schema'],
});

const inBraces = (path: string) => [...path.matchAll(/\{([^{}]+)\}/g)].map((match) => match[1] ?? '');

/** Names in the path without a parameter, and parameters that the path does not have. */
function compare({ path, parameters }: ToolDraft) {
  const names = inBraces(path);
  return {
    missing: names.filter((name) => !parameters.some((one) => one.in === 'path' && one.name === name)),
    stray: parameters.filter((one) => one.in === 'path' && one.name !== '' && !names.includes(one.name)),
  };
}

/** The faults in the parameters of a draft by path. */
export function parameterFaults(draft: ToolDraft): Record<string, string | boolean | undefined> {
  const { missing, stray } = compare(draft);
  const { parameters } = draft;
  const twice = parameters.find((one, index) =>
    parameters.some((other, place) => place < index && other.name === one.name && other.in === one.in),
  );
  return {
    missing: missing.length > 0,
    stray: stray.length > 0,
    twice: twice && `The parameter “${twice.name}” is listed twice.`,
    ...Object.fromEntries(
      parameters.map((one, place) => [`parameters.${place}`, one.name === '' && 'Enter a name.']),
    ),
  };
}

/** The parameters of a tool. Those of the path follow the path by themselves. */
export function ToolParameters({ form }: { form: Fields<ToolDraft> }) {
  const { parameters } = form.values;
  const { missing, stray } = compare(form.values);
  const tone = form.errors.missing ? 'red' : 'yellow';
  const change = (place: number, part: Partial<ParameterDraft>) =>
    form.setFieldValue('parameters', (old) =>
      old.map((one, index) => (index === place ? { ...one, ...part } : one)),
    );
  const add = (...parts: Partial<ParameterDraft>[]) =>
    form.setFieldValue('parameters', (old) => {
      const next = Math.max(0, ...old.map((one) => one.id)) + 1;
      const added = parts.map((part, place) => ({
        id: next + place,
        name: '',
        in: 'query' as const,
        required: false,
        description: '',
        type: 'string',
        schema: { type: 'string' },
        ...part,
      }));
      return [...old, ...added];
    });
  return (
    <Panel
      title="Parameters"
      aside={
        <Button
          variant="default"
          size="compact-sm"
          leftSection={<IconPlus size={15} aria-hidden />}
          onClick={() => add({})}
        >
          Add a parameter
        </Button>
      }
    >
      <Stack gap="md">
        {missing.length > 0 && (
          <Alert
            color={tone}
            data-tone={tone}
            title={`The path uses ${missing.map((one) => `{${one}}`).join(', ')}`}
          >
            <Button
              size="compact-sm"
              variant="default"
              onClick={() => add(...missing.map((name) => ({ name, in: 'path' as const, required: true })))}
            >
              Add {missing.length === 1 ? 'it' : 'them'} as path{' '}
              {missing.length === 1 ? 'parameter' : 'parameters'}
            </Button>
          </Alert>
        )}
        {form.errors.twice && (
          <Alert color="red" data-tone="red">
            {form.errors.twice}
          </Alert>
        )}
        {parameters.length === 0 && missing.length === 0 && (
          <span className={classes.none}>No parameters.</span>
        )}
        {parameters.map((one, index) => (
          <fieldset key={one.id} className={classes.parameter}>
            <legend className="visually-hidden">Parameter {index + 1}</legend>
            <TextInput
              label="Name"
              value={one.name}
              onChange={(event) => change(index, { name: event.currentTarget.value })}
              error={
                form.errors[`parameters.${index}`]
                  ? 'Enter a name.'
                  : stray.includes(one)
                    ? 'The path doesn’t contain it.'
                    : null
              }
              className={classes.mono}
              spellCheck={false}
            />
            <Select
              label="Sent in"
              data={[
                { value: 'path', label: 'Path' },
                { value: 'query', label: 'Query' },
                { value: 'header', label: 'Header' },
                { value: 'cookie', label: 'Cookie' },
              ]}
              value={one.in}
              onChange={(value) => value && change(index, { in: value as ToolParameter['in'] })}
              allowDeselect={false}
            />
            <Select
              label="Type"
              data={[
                ...types.map(({ value, label }) => ({ value, label })),
                ...(one.type === 'custom' ? [{ value: 'custom', label: 'Custom schema' }] : []),
              ]}
              value={one.type}
              onChange={(value) => value && change(index, { type: value })}
              allowDeselect={false}
            />
            <TextInput
              label="Description"
              value={one.description}
              onChange={(event) => change(index, { description: event.currentTarget.value })}
              className={classes.description}
            />
            <div className={classes.end}>
              <Checkbox
                label="Required"
                checked={one.in === 'path' || one.required}
                disabled={one.in === 'path'}
                onChange={(event) => change(index, { required: event.currentTarget.checked })}
              />
              <ActionIcon
                variant="subtle"
                color="gray"
                size="lg"
                aria-label={`Remove parameter ${one.name || index + 1}`}
                onClick={() => form.removeListItem('parameters', index)}
              >
                <IconTrash size={17} />
              </ActionIcon>
            </div>
          </fieldset>
        ))}
      </Stack>
    </Panel>
  );
}
