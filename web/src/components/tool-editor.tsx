import {
  ActionIcon,
  Alert,
  Button,
  Checkbox,
  Group,
  JsonInput,
  Select,
  Stack,
  Switch,
  Textarea,
  TextInput,
} from '@mantine/core';
import { IconPlus, IconTrash } from '@tabler/icons-react';
import { type FormEvent, useRef, useState } from 'react';
import { ApiError } from '../api/http';
import type { ToolDefinition, ToolParameter } from '../api/tools';
import { Panel } from './page';
import { Submit, useFaultFocus } from './submit';
import classes from './tool-editor.module.css';
import { Unsaved, useChanged } from './unsaved';

interface ParameterDraft {
  id: number;
  name: string;
  in: ToolParameter['in'];
  required: boolean;
  description: string;
  type: string;
  schema: unknown;
}

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

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
const toolName = /^[A-Za-z0-9_-]{1,64}$/;

const placeholders = (path: string) => [...path.matchAll(/\{([^{}]+)\}/g)].map((match) => match[1] ?? '');

/** A hand-made tool: name, call, parameters and body. Path parameters follow the path by themselves. */
export function ToolEditor({
  initial,
  submitLabel,
  pending,
  error,
  onSubmit,
}: {
  initial?: ToolDefinition;
  submitLabel: string;
  pending: boolean;
  error: Error | null;
  onSubmit: (definition: ToolDefinition) => void;
}) {
  const nextId = useRef(initial?.parameters?.length ?? 0);
  const [name, setName] = useState(initial?.name ?? '');
  const [title, setTitle] = useState(initial?.title ?? '');
  const [description, setDescription] = useState(initial?.description ?? '');
  const [method, setMethod] = useState(initial?.method.toUpperCase() ?? 'GET');
  const [path, setPath] = useState(initial?.path ?? '/');
  const [parameters, setParameters] = useState<ParameterDraft[]>(() =>
    (initial?.parameters ?? []).map((one, id) => ({
      id,
      name: one.name,
      in: one.in,
      required: one.required ?? false,
      description: one.description ?? '',
      type: typeOf(one.schema),
      schema: one.schema,
    })),
  );
  const [withBody, setWithBody] = useState(Boolean(initial?.body));
  const [contentType, setContentType] = useState(initial?.body?.content_type ?? 'application/json');
  const [bodyRequired, setBodyRequired] = useState(initial?.body?.required ?? true);
  const [bodySchema, setBodySchema] = useState(
    JSON.stringify(initial?.body?.schema ?? { type: 'object', properties: {} }, null, 2),
  );
  const [tries, setTries] = useState(0);
  const tried = tries > 0;

  const change = (id: number, part: Partial<ParameterDraft>) =>
    setParameters((old) => old.map((one) => (one.id === id ? { ...one, ...part } : one)));
  const add = (part: Partial<ParameterDraft>) => {
    const id = nextId.current;
    nextId.current += 1;
    setParameters((old) => [
      ...old,
      {
        id,
        name: '',
        in: 'query',
        required: false,
        description: '',
        type: 'string',
        schema: { type: 'string' },
        ...part,
      },
    ]);
  };

  const inPath = placeholders(path);
  const missing = inPath.filter(
    (one) => !parameters.some((parameter) => parameter.in === 'path' && parameter.name === one),
  );
  const stray = parameters.filter(
    (one) => one.in === 'path' && one.name !== '' && !inPath.includes(one.name),
  );
  let schema: unknown;
  let badSchema: string | null = null;
  if (withBody) {
    try {
      schema = JSON.parse(bodySchema);
      if (typeof schema !== 'object' || schema === null || Array.isArray(schema))
        badSchema = 'A JSON Schema is an object.';
    } catch (cause) {
      badSchema = cause instanceof Error ? cause.message : 'This is not JSON.';
    }
  }
  const nameFault = toolName.test(name) ? null : 'Use 1 to 64 letters, digits, hyphens and underscores.';
  const descriptionFault =
    description.trim() === '' ? 'Describe what the tool does. Models choose tools by this text.' : null;
  const pathFault = path.startsWith('/') ? null : 'Begin the path with a slash.';
  const twice = parameters.find((one, index) =>
    parameters.some((other, place) => place < index && other.name === one.name && other.in === one.in),
  );
  const faulty =
    nameFault ||
    descriptionFault ||
    pathFault ||
    badSchema ||
    missing.length > 0 ||
    stray.length > 0 ||
    twice ||
    parameters.some((one) => one.name === '');

  const changed = useChanged([
    name,
    title,
    description,
    method,
    path,
    parameters,
    withBody,
    contentType,
    bodyRequired,
    bodySchema,
  ]);
  const form = useFaultFocus(error ?? tries);

  function submit(event: FormEvent) {
    event.preventDefault();
    setTries((old) => old + 1);
    if (faulty) return;
    onSubmit({
      name,
      ...(title.trim() ? { title: title.trim() } : {}),
      description: description.trim(),
      method,
      path,
      parameters: parameters.map((one) => ({
        name: one.name,
        in: one.in,
        required: one.in === 'path' ? true : one.required,
        ...(one.description.trim() ? { description: one.description.trim() } : {}),
        schema: (types.find((type) => type.value === one.type)?.schema ??
          one.schema) as ToolParameter['schema'],
      })),
      ...(withBody
        ? { body: { content_type: contentType, schema: schema as never, required: bodyRequired } }
        : {}),
    });
  }

  const refused = error instanceof ApiError ? error : null;
  return (
    <form ref={form} onSubmit={submit} noValidate>
      <Unsaved when={changed} />
      <Stack gap="lg">
        <Panel title="What the model sees">
          <Stack gap="md" maw={640}>
            <TextInput
              label="Name"
              placeholder="find_order"
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              error={refused?.field === 'name' ? refused.message : tried ? nameFault : null}
              className={classes.mono}
              spellCheck={false}
              required
            />
            <TextInput
              label="Title"
              value={title}
              onChange={(event) => setTitle(event.currentTarget.value)}
              maxLength={120}
            />
            <Textarea
              label="Description"
              description="Say when to use the tool and what it returns. Models choose tools by this text."
              rows={3}
              value={description}
              onChange={(event) => setDescription(event.currentTarget.value)}
              error={tried ? descriptionFault : null}
              required
            />
          </Stack>
        </Panel>
        <Panel title="Request">
          <Group align="flex-end" gap="sm" wrap="wrap">
            <Select
              label="Method"
              data={methods}
              value={method}
              onChange={(value) => value && setMethod(value)}
              w={120}
              allowDeselect={false}
            />
            <TextInput
              label="Path"
              description="Write parameters in braces: /orders/{id}"
              value={path}
              onChange={(event) => setPath(event.currentTarget.value)}
              error={tried ? pathFault : null}
              className={`${classes.mono} ${classes.path}`}
              spellCheck={false}
            />
          </Group>
        </Panel>
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
                color={tried ? 'red' : 'yellow'}
                data-tone={tried ? 'red' : 'yellow'}
                title={`The path uses ${missing.map((one) => `{${one}}`).join(', ')}`}
              >
                <Button
                  size="compact-sm"
                  variant="default"
                  onClick={() => {
                    for (const one of missing) add({ name: one, in: 'path', required: true });
                  }}
                >
                  Add {missing.length === 1 ? 'it' : 'them'} as path{' '}
                  {missing.length === 1 ? 'parameter' : 'parameters'}
                </Button>
              </Alert>
            )}
            {twice && tried && (
              <Alert color="red" data-tone="red">
                The parameter “{twice.name}” is listed twice.
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
                  onChange={(event) => change(one.id, { name: event.currentTarget.value })}
                  error={
                    tried && one.name === ''
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
                  onChange={(value) => value && change(one.id, { in: value as ToolParameter['in'] })}
                  allowDeselect={false}
                />
                <Select
                  label="Type"
                  data={[
                    ...types.map(({ value, label }) => ({ value, label })),
                    ...(one.type === 'custom' ? [{ value: 'custom', label: 'Custom schema' }] : []),
                  ]}
                  value={one.type}
                  onChange={(value) => value && change(one.id, { type: value })}
                  allowDeselect={false}
                />
                <TextInput
                  label="Description"
                  value={one.description}
                  onChange={(event) => change(one.id, { description: event.currentTarget.value })}
                  className={classes.description}
                />
                <div className={classes.end}>
                  <Checkbox
                    label="Required"
                    checked={one.in === 'path' || one.required}
                    disabled={one.in === 'path'}
                    onChange={(event) => change(one.id, { required: event.currentTarget.checked })}
                  />
                  <ActionIcon
                    variant="subtle"
                    color="gray"
                    size="lg"
                    aria-label={`Remove parameter ${one.name || index + 1}`}
                    onClick={() => setParameters((old) => old.filter((other) => other.id !== one.id))}
                  >
                    <IconTrash size={17} />
                  </ActionIcon>
                </div>
              </fieldset>
            ))}
          </Stack>
        </Panel>
        <Panel title="Body">
          <Stack gap="md">
            <Switch
              label="Send a request body"
              checked={withBody}
              onChange={(event) => setWithBody(event.currentTarget.checked)}
            />
            {withBody && (
              <>
                <Select
                  label="Content type"
                  data={[
                    'application/json',
                    'application/x-www-form-urlencoded',
                    'multipart/form-data',
                    'text/plain',
                  ]}
                  value={contentType}
                  onChange={(value) => value && setContentType(value)}
                  maw={340}
                  allowDeselect={false}
                />
                <JsonInput
                  label="JSON Schema of the body"
                  rows={10}
                  value={bodySchema}
                  onChange={setBodySchema}
                  error={badSchema}
                  className={classes.mono}
                  formatOnBlur
                />
                <Checkbox
                  label="Required"
                  checked={bodyRequired}
                  onChange={(event) => setBodyRequired(event.currentTarget.checked)}
                />
              </>
            )}
          </Stack>
        </Panel>
        <Submit
          sticky
          error={error}
          title="The tool was not saved"
          fault={tried && faulty && 'Fix the highlighted fields.'}
        >
          <Button type="submit" loading={pending}>
            {submitLabel}
          </Button>
        </Submit>
      </Stack>
    </form>
  );
}
