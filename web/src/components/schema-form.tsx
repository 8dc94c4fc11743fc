import { ActionIcon, Button, MultiSelect, NumberInput, Select, Textarea, TextInput } from '@mantine/core';
import { IconPlus, IconTrash } from '@tabler/icons-react';
import { type ReactNode, useEffect, useState } from 'react';
import type { ArgumentFault } from '../api/tools';
import { isObject, limits, resolve, type Schema, startingValue, typeName, typesOf } from '../json-schema';
import { sentence } from '../sentence';
import { InlineCode } from './inline-code';
import classes from './schema-form.module.css';

type Values = Record<string, unknown>;

/** "/a/0/b", "$.a[0].b" and "a.0.b" are one place. */
function parts(path: string): string {
  return path
    .replace(/^\$/, '')
    .replaceAll(/\[['"]?([^\]'"]*)['"]?\]/g, '/$1')
    .replaceAll('.', '/')
    .split('/')
    .filter((part) => part !== '')
    .join('/');
}

const faultsAt = (faults: ArgumentFault[], path: string[]) =>
  faults.filter((fault) => parts(fault.path) === path.join('/')).map((fault) => faultText(fault));

/** Turns the API's message for models about an argument into the text of a form. */
export function faultText(fault: ArgumentFault): string {
  return /^is required/.test(fault.message) ? 'Required.' : sentence(fault.message);
}

/** A form for the arguments of a tool. Schemas that it cannot draw are entered as JSON. */
export function SchemaForm({
  schema,
  value,
  onChange,
  faults,
}: {
  schema: Schema;
  value: Values;
  onChange: (value: Values) => void;
  faults: ArgumentFault[];
}) {
  const root = schema;
  const top = resolve(schema, root);
  if (Object.keys(top.properties ?? {}).length === 0)
    return <p className={classes.note}>This tool takes no arguments.</p>;
  return (
    <div className={classes.fields}>
      <ObjectFields schema={top} root={root} value={value} onChange={onChange} faults={faults} path={[]} />
    </div>
  );
}

interface FieldProps {
  schema: Schema;
  root: Schema;
  value: unknown;
  onChange: (value: unknown) => void;
  faults: ArgumentFault[];
  path: string[];
}

function ObjectFields({
  schema,
  root,
  value,
  onChange,
  faults,
  path,
}: Omit<FieldProps, 'value' | 'onChange'> & { value: Values; onChange: (value: Values) => void }) {
  const required = new Set(schema.required ?? []);
  const names = Object.keys(schema.properties ?? {});
  const ordered = [
    ...names.filter((name) => required.has(name)),
    ...names.filter((name) => !required.has(name)),
  ];
  return ordered.map((name) => (
    <Field
      key={name}
      name={name}
      required={required.has(name)}
      schema={resolve(schema.properties?.[name], root)}
      root={root}
      value={value[name]}
      onChange={(next) => {
        const { [name]: _, ...others } = value;
        onChange(next === undefined ? others : { ...others, [name]: next });
      }}
      faults={faults}
      path={[...path, name]}
    />
  ));
}

function Field({
  name,
  required,
  schema,
  root,
  value,
  onChange,
  faults,
  path,
}: FieldProps & { name: string; required: boolean }) {
  const found = faultsAt(faults, path);
  const error = found.length > 0 ? found.join(' ') : null;
  const common = {
    label: <code>{name}</code>,
    description: schema.description && <InlineCode text={schema.description} />,
    withAsterisk: required,
    error,
    className: classes.label,
  };
  const { types } = typesOf(schema);
  const type = types.length === 1 ? types[0] : undefined;
  const hint = limits(schema).join(' · ');

  if (schema.enum?.every((one) => typeof one === 'string' || typeof one === 'number')) {
    const choices = schema.enum as (string | number)[];
    return (
      <Select
        {...common}
        data={choices.map(String)}
        value={value === undefined ? null : String(value)}
        onChange={(chosen) => onChange(choices.find((one) => String(one) === chosen))}
        clearable={!required}
        searchable={choices.length > 8}
        placeholder={required ? 'Choose' : 'Not set'}
      />
    );
  }
  if (type === 'boolean') {
    return (
      <Select
        {...common}
        data={[
          { value: 'true', label: 'Yes' },
          { value: 'false', label: 'No' },
        ]}
        value={typeof value === 'boolean' ? String(value) : null}
        onChange={(chosen) => onChange(chosen === null ? undefined : chosen === 'true')}
        clearable={!required}
        placeholder={required ? 'Choose' : 'Not set'}
      />
    );
  }
  if (type === 'integer' || type === 'number') {
    return (
      <NumberInput
        {...common}
        value={typeof value === 'number' ? value : ''}
        onChange={(next) => onChange(next === '' ? undefined : Number(next))}
        allowDecimal={type === 'number'}
        placeholder={hint}
      />
    );
  }
  if (type === 'string') {
    const long = schema.format === undefined && (schema.maxLength ?? 0) > 200;
    const props = {
      ...common,
      placeholder:
        schema.examples?.[0] !== undefined
          ? String(schema.examples[0])
          : [schema.format, hint].filter(Boolean).join(' · '),
      value: typeof value === 'string' ? value : '',
      onChange: (event: { currentTarget: { value: string } }) =>
        onChange(event.currentTarget.value === '' && !required ? undefined : event.currentTarget.value),
      spellCheck: false,
    };
    return long ? <Textarea {...props} rows={4} /> : <TextInput {...props} />;
  }
  if (type === 'object' && schema.properties && path.length < 4) {
    if (value === undefined && !required) {
      return (
        <div>
          <Button
            variant="default"
            size="compact-sm"
            leftSection={<IconPlus size={15} aria-hidden />}
            onClick={() => onChange(startingValue(schema, root))}
          >
            Add&nbsp;<code>{name}</code>
          </Button>
          {schema.description && (
            <p className={classes.note}>
              <InlineCode text={schema.description} />
            </p>
          )}
        </div>
      );
    }
    return (
      <fieldset className={classes.group}>
        <legend className={classes.legend}>
          <code>{name}</code>
          {!required && (
            <ActionIcon
              variant="subtle"
              color="gray"
              size="sm"
              ml={6}
              aria-label={`Remove ${name}`}
              onClick={() => onChange(undefined)}
            >
              <IconTrash size={14} />
            </ActionIcon>
          )}
        </legend>
        {schema.description && (
          <p className={classes.note}>
            <InlineCode text={schema.description} />
          </p>
        )}
        {error && <p className={classes.error}>{error}</p>}
        <ObjectFields
          schema={schema}
          root={root}
          value={isObject(value) ? value : {}}
          onChange={onChange}
          faults={faults}
          path={path}
        />
      </fieldset>
    );
  }
  const choices = type === 'array' ? resolve(schema.items, root).enum : undefined;
  if (choices?.every((one) => typeof one === 'string')) {
    return (
      <MultiSelect
        {...common}
        data={[...new Set(choices)]}
        value={Array.isArray(value) ? value.map(String) : []}
        onChange={(chosen) => onChange(chosen.length === 0 && !required ? undefined : chosen)}
        searchable={choices.length > 8}
        clearable
        placeholder={Array.isArray(value) && value.length > 0 ? undefined : 'Choose any'}
      />
    );
  }
  if (type === 'array' && path.length < 4) {
    return (
      <ListField
        name={name}
        required={required}
        schema={schema}
        root={root}
        value={value}
        onChange={onChange}
        faults={faults}
        path={path}
        error={error}
      />
    );
  }
  return <JsonField {...common} hint={typeName(schema, root)} value={value} onChange={onChange} />;
}

function ListField({
  name,
  required,
  schema,
  root,
  value,
  onChange,
  faults,
  path,
  error,
}: FieldProps & { name: string; required: boolean; error: string | null }) {
  const items = Array.isArray(value) ? value : [];
  const item = resolve(schema.items, root);
  const set = (next: unknown[]) => onChange(next.length === 0 && !required ? undefined : next);
  const fresh = () => {
    const { types } = typesOf(item);
    if (types[0] === 'object') return startingValue(item, root);
    if (types[0] === 'boolean') return false;
    if (types[0] === 'integer' || types[0] === 'number') return item.minimum ?? 0;
    return item.enum?.[0] ?? '';
  };
  return (
    <fieldset className={classes.group}>
      <legend className={classes.legend}>
        <code>{name}</code>
        {required ? ' *' : ''}
      </legend>
      {schema.description && (
        <p className={classes.note}>
          <InlineCode text={schema.description} />
        </p>
      )}
      {error && <p className={classes.error}>{error}</p>}
      <div className={classes.items}>
        {items.map((one, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the place in the list is the item's identity
          <div key={index} className={classes.item}>
            <Field
              name={`${name} ${index + 1}`}
              required
              schema={{ ...item, description: undefined }}
              root={root}
              value={one}
              onChange={(next) => set(items.map((old, place) => (place === index ? next : old)))}
              faults={faults}
              path={[...path, String(index)]}
            />
            <ActionIcon
              variant="subtle"
              color="gray"
              size={36}
              mt={26}
              aria-label={`Remove ${name} ${index + 1}`}
              onClick={() => set(items.filter((_, place) => place !== index))}
            >
              <IconTrash size={16} />
            </ActionIcon>
          </div>
        ))}
      </div>
      <div>
        <Button
          variant="default"
          size="compact-sm"
          leftSection={<IconPlus size={15} aria-hidden />}
          onClick={() => set([...items, fresh()])}
        >
          Add an item
        </Button>
      </div>
    </fieldset>
  );
}

function JsonField({
  value,
  onChange,
  hint,
  error,
  ...common
}: {
  label: ReactNode;
  description?: ReactNode;
  withAsterisk: boolean;
  error: string | null;
  className?: string;
  hint: string;
  value: unknown;
  onChange: (value: unknown) => void;
}) {
  const [text, setText] = useState(() => (value === undefined ? '' : JSON.stringify(value, null, 2)));
  const [fault, setFault] = useState<string | null>(null);
  useEffect(() => {
    // The value was taken away from outside: the text follows.
    if (value === undefined && fault === null) setText('');
  }, [value, fault]);
  return (
    <Textarea
      {...common}
      className={classes.mono}
      placeholder={`JSON: ${hint}`}
      rows={3}
      value={text}
      error={fault ?? error}
      onChange={(event) => {
        const next = event.currentTarget.value;
        setText(next);
        if (next.trim() === '') {
          setFault(null);
          onChange(undefined);
          return;
        }
        try {
          onChange(JSON.parse(next));
          setFault(null);
        } catch (cause) {
          setFault(cause instanceof Error ? cause.message : 'This is not JSON.');
        }
      }}
      spellCheck={false}
    />
  );
}
