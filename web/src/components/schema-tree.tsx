import { SegmentedControl } from '@mantine/core';
import { useState } from 'react';
import { limits, resolve, type Schema, typeName, typesOf } from '../json-schema';
import { CodeBlock } from './copy';
import { InlineCode } from './inline-code';
import { Panel } from './page';
import classes from './schema-tree.module.css';

const deepest = 8;

/** A JSON Schema as a list that a person reads; the raw text is one switch away. */
export function SchemaPanel({ title, schema }: { title: string; schema: unknown }) {
  const [view, setView] = useState('fields');
  const root = (schema ?? {}) as Schema;
  return (
    <Panel
      title={title}
      aside={
        <SegmentedControl
          size="xs"
          aria-label={`View of ${title}`}
          value={view}
          onChange={setView}
          data={[
            { value: 'fields', label: 'Fields' },
            { value: 'json', label: 'JSON Schema' },
          ]}
        />
      }
    >
      {view === 'json' ? (
        <CodeBlock code={JSON.stringify(schema, null, 2)} label="JSON Schema" />
      ) : (
        <Fields schema={resolve(root, root)} root={root} depth={0} />
      )}
    </Panel>
  );
}

function Fields({ schema, root, depth }: { schema: Schema; root: Schema; depth: number }) {
  const names = Object.keys(schema.properties ?? {});
  if (names.length === 0) {
    return <p className={classes.none}>{depth === 0 ? 'No fields.' : 'Any fields.'}</p>;
  }
  // Required fields first, otherwise in the document's own order.
  const required = new Set(schema.required ?? []);
  const ordered = [
    ...names.filter((name) => required.has(name)),
    ...names.filter((name) => !required.has(name)),
  ];
  return (
    <ul className={classes.list}>
      {ordered.map((name) => (
        <Field
          key={name}
          name={name}
          schema={resolve(schema.properties?.[name], root)}
          root={root}
          required={required.has(name)}
          depth={depth}
        />
      ))}
    </ul>
  );
}

/** What lies inside of a field: its own properties, those of its items, or those of its alternatives. */
function inside(schema: Schema, root: Schema): { label: string; schema: Schema }[] {
  if (schema.properties && Object.keys(schema.properties).length > 0) return [{ label: 'Fields', schema }];
  if (typesOf(schema).types.includes('array')) {
    return inside(resolve(schema.items, root), root).map((one) => ({ ...one, label: 'Fields of each item' }));
  }
  const choices = schema.oneOf ?? schema.anyOf ?? [];
  return choices.flatMap((choice, index) => {
    const one = resolve(choice, root);
    return one.properties ? [{ label: one.title ?? `Choice ${index + 1}`, schema: one }] : [];
  });
}

function Field({
  name,
  schema,
  root,
  required,
  depth,
}: {
  name: string;
  schema: Schema;
  root: Schema;
  required: boolean;
  depth: number;
}) {
  const rules = limits(schema);
  const values =
    schema.enum ?? (typesOf(schema).types.includes('array') ? resolve(schema.items, root).enum : undefined);
  const [opened, setOpened] = useState(depth < 1);
  const nested = depth < deepest ? inside(schema, root) : [];
  return (
    <li className={classes.field}>
      <div className={classes.head}>
        <span className={classes.name}>{name}</span>
        <span className={classes.type}>{typeName(schema, root)}</span>
        {required && <span className={classes.required}>required</span>}
        {schema.deprecated && <span className={classes.type}>deprecated</span>}
      </div>
      {schema.description && (
        <p className={classes.text}>
          <InlineCode text={schema.description} />
        </p>
      )}
      {rules.length > 0 && <p className={classes.limits}>{rules.join(' · ')}</p>}
      {values && (
        <div className={classes.enum}>
          {values.slice(0, 40).map((value) => (
            <span key={JSON.stringify(value)} className={classes.value}>
              {typeof value === 'string' ? value : JSON.stringify(value)}
            </span>
          ))}
          {values.length > 40 && <span className={classes.type}>and {values.length - 40} more</span>}
        </div>
      )}
      {nested.map((one) => (
        <details
          key={one.label}
          className={classes.inner}
          open={opened}
          onToggle={(event) => setOpened(event.currentTarget.open)}
        >
          <summary>{one.label}</summary>
          {opened && <Fields schema={one.schema} root={root} depth={depth + 1} />}
        </details>
      ))}
    </li>
  );
}
