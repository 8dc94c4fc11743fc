import { Button, Checkbox, Select, TextInput } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { useMemo, useState } from 'react';
import type { OperationPreview } from '../api/sources';
import { sentence } from '../sentence';
import { Method, Tag } from './badges';
import { InlineCode } from './inline-code';
import classes from './operations.module.css';
import { SelectionBar, SelectionStatus, TableBar, useShown } from './table';

function matches(operation: OperationPreview, words: string): boolean {
  const text = `${operation.tool_name ?? ''} ${operation.title} ${operation.method} ${operation.path} ${operation.tags.join(' ')} ${operation.description}`;
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.toLowerCase().includes(word));
}

/** The operations of a document as the tools that they become, to choose from. */
export function Operations({
  operations,
  chosen,
  onChange,
}: {
  operations: OperationPreview[];
  chosen: ReadonlySet<string>;
  onChange: (chosen: Set<string>) => void;
}) {
  const [words, setWords] = useState('');
  const [method, setMethod] = useState<string | null>(null);
  const [tag, setTag] = useState<string | null>(null);
  const tools = useMemo(() => operations.filter((one) => one.status === 'tool'), [operations]);
  const methods = useMemo(() => [...new Set(tools.map((one) => one.method.toUpperCase()))].sort(), [tools]);
  const tags = useMemo(() => [...new Set(tools.flatMap((one) => one.tags))].sort(), [tools]);
  const found = tools.filter(
    (one) =>
      (!method || one.method.toUpperCase() === method) &&
      (!tag || one.tags.includes(tag)) &&
      matches(one, words.trim()),
  );
  const { shown, more } = useShown(found);
  const filtered = found.length !== tools.length;

  const choose = (pick: (operation: OperationPreview) => boolean) => {
    const next = new Set(chosen);
    for (const one of found) {
      if (pick(one)) next.add(one.key);
      else next.delete(one.key);
    }
    onChange(next);
  };

  return (
    <>
      <TableBar>
        <TextInput
          aria-label="Search operations"
          placeholder="Search by name, path or description"
          leftSection={<IconSearch size={16} aria-hidden />}
          value={words}
          onChange={(event) => setWords(event.currentTarget.value)}
        />
        <Select
          aria-label="Method"
          placeholder="All methods"
          data={methods}
          value={method}
          onChange={setMethod}
          clearable
          w={150}
        />
        {tags.length > 0 && (
          <Select
            aria-label="Tag"
            placeholder="All tags"
            data={tags}
            value={tag}
            onChange={setTag}
            clearable
            searchable
            w={170}
          />
        )}
      </TableBar>
      <SelectionBar>
        <SelectionStatus>
          <strong>{chosen.size}</strong> of {tools.length} selected
          {filtered ? `, ${found.length} shown` : ''}
        </SelectionStatus>
        <Button.Group>
          <Button size="compact-sm" variant="default" onClick={() => choose(() => true)}>
            Select all{filtered ? ' shown' : ''}
          </Button>
          <Button size="compact-sm" variant="default" onClick={() => choose((one) => one.read_only)}>
            Read-only
          </Button>
          <Button size="compact-sm" variant="default" onClick={() => choose(() => false)}>
            None
          </Button>
        </Button.Group>
      </SelectionBar>
      <ul className={classes.list}>
        {shown.map((one) => (
          <li key={one.key} className={classes.row}>
            <Checkbox
              id={`op-${one.key}`}
              checked={chosen.has(one.key)}
              onChange={(event) => {
                const next = new Set(chosen);
                if (event.currentTarget.checked) next.add(one.key);
                else next.delete(one.key);
                onChange(next);
              }}
              aria-label={one.tool_name ?? one.key}
            />
            <div>
              <div className={classes.line}>
                <label htmlFor={`op-${one.key}`} className={classes.name}>
                  {one.tool_name}
                </label>
                <span className={classes.title}>{one.title}</span>
              </div>
              <div className={classes.line}>
                <Method method={one.method} />
                <span className={classes.path}>{one.path}</span>
                {one.tags.map((name) => (
                  <Tag key={name}>{name}</Tag>
                ))}
                {one.destructive && <Tag tone="bad">destructive</Tag>}
                {one.deprecated && <Tag tone="warn">deprecated</Tag>}
              </div>
              {one.warnings.map((warning) => (
                <p key={warning} className={classes.warning}>
                  <InlineCode text={sentence(warning)} />
                </p>
              ))}
            </div>
          </li>
        ))}
      </ul>
      {found.length === 0 && <p className={classes.row}>No matches. Clear the search or the filters.</p>}
      {more}
    </>
  );
}

/** The operations that became no tool, each with its reason. */
export function LeftOut({ operations }: { operations: OperationPreview[] }) {
  const { shown, more } = useShown(operations);
  return (
    <>
      <ul className={classes.list}>
        {shown.map((one) => (
          <li key={one.key} className={`${classes.row} ${classes.left}`}>
            <div className={classes.line}>
              <Method method={one.method} />
              <span className={classes.path}>{one.path}</span>
            </div>
            <p className={classes.reason}>
              <InlineCode text={sentence(one.reason ?? '')} />
            </p>
          </li>
        ))}
      </ul>
      {more}
    </>
  );
}
