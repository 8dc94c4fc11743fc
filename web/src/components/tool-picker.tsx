import { Button, Checkbox, Select, TextInput } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { useState } from 'react';
import type { ToolBudget } from '../api/tool-budget';
import type { ToolSummary } from '../api/tools';
import { nameFault } from '../rules';
import { Method, Tag } from './badges';
import { ClientWarnings } from './client-warnings';
import { HelpLink } from './help-link';
import classes from './operations.module.css';
import { ChoiceRow, choose, type Names } from './published-choice';
import { SelectionBar, SelectionStatus, TableBar, useShown } from './table';

const count = new Intl.NumberFormat();

/** Choosing the tools of a server, with the name under which each is published. */
export function ToolPicker({
  tools,
  names,
  onChange,
  clashes,
  budget,
  onlySelected = false,
}: {
  tools: ToolSummary[];
  names: Names;
  /** Absent for those who may only look. */
  onChange: ((names: Names) => void) | undefined;
  clashes: ReadonlySet<string>;
  /** Tokens and problems of the choice, once they are known. */
  budget: ToolBudget | undefined;
  /** Begins with the selected ones only; the others are one click away. */
  onlySelected?: boolean;
}) {
  const [words, setWords] = useState('');
  const [source, setSource] = useState<string | null>(null);
  const [onlyChosen, setOnlyChosen] = useState(onlySelected);
  // Those that were selected when the list was opened stand first; a click moves none away from under the pointer.
  const [first] = useState(() => new Set(names.keys()));
  const ordered = [
    ...tools.filter((tool) => first.has(tool.id)),
    ...tools.filter((tool) => !first.has(tool.id)),
  ];
  const sources = [...new Map(tools.map((tool) => [tool.source_id, tool.source_name])).entries()];
  const asked = words.trim().toLowerCase().split(/\s+/);
  const found = ordered.filter((tool) => {
    if (source && tool.source_id !== source) return false;
    if (onlyChosen && !names.has(tool.id)) return false;
    const text =
      `${tool.name} ${tool.title} ${tool.path} ${tool.description} ${tool.source_name}`.toLowerCase();
    return asked.every((word) => text.includes(word));
  });
  const { shown, more } = useShown(found);

  const weights = new Map(budget?.tools.map((tool) => [tool.tool_id, tool]));
  const set = (list: ToolSummary[], chosen: boolean) => onChange?.(choose(names, list, chosen));

  return (
    <>
      <TableBar>
        <TextInput
          aria-label="Search tools"
          placeholder="Search tools"
          leftSection={<IconSearch size={16} aria-hidden />}
          value={words}
          onChange={(event) => setWords(event.currentTarget.value)}
        />
        {sources.length > 1 && (
          <Select
            aria-label="Source"
            placeholder="All sources"
            data={sources.map(([value, label]) => ({ value, label }))}
            value={source}
            onChange={setSource}
            clearable
            w={200}
          />
        )}
      </TableBar>
      <SelectionBar>
        <SelectionStatus>
          <strong>{names.size}</strong> selected
          {budget && (
            <>
              {' · about '}
              <strong>{count.format(budget.tokens)}</strong> tokens
            </>
          )}
        </SelectionStatus>
        <Checkbox
          label="Selected only"
          size="sm"
          checked={onlyChosen}
          onChange={(event) => setOnlyChosen(event.currentTarget.checked)}
        />
        {onChange && (
          <Button.Group>
            <Button size="compact-sm" variant="default" onClick={() => set(found, true)}>
              Select all shown
            </Button>
            <Button
              size="compact-sm"
              variant="default"
              onClick={() =>
                set(
                  found.filter((tool) => tool.annotations.readOnlyHint),
                  true,
                )
              }
            >
              Read-only
            </Button>
            <Button size="compact-sm" variant="default" onClick={() => set(found, false)}>
              None
            </Button>
          </Button.Group>
        )}
      </SelectionBar>
      <div className={classes.alerts}>
        {budget && <ClientWarnings warnings={budget.warnings} />}
        <p className={classes.reason}>
          Clients send the list to the model in each conversation. Tokens are estimated: one for four bytes.{' '}
          <HelpLink to="console#token-budget">Token budget</HelpLink>
        </p>
      </div>
      <ul className={classes.list}>
        {shown.map((tool) => {
          const name = names.get(tool.id);
          const weight = name === undefined ? undefined : weights.get(tool.id);
          return (
            <ChoiceRow
              key={tool.id}
              id={`tool-${tool.id}`}
              own={tool.name}
              label="Published name"
              name={name}
              fault={
                name !== undefined &&
                (clashes.has(name)
                  ? 'Another selected tool has this name. Change one of the two.'
                  : nameFault(name))
              }
              onChoose={(chosen) => set([tool], chosen)}
              onRename={onChange && ((next) => onChange(new Map(names).set(tool.id, next)))}
            >
              <div className={classes.line}>
                <label htmlFor={`tool-${tool.id}`} className={classes.name}>
                  {tool.name}
                </label>
                <span className={classes.title}>{tool.title}</span>
                {tool.state === 'removed' ? (
                  <Tag tone="bad">removed, not served</Tag>
                ) : (
                  !tool.enabled && <Tag tone="warn">disabled, not served</Tag>
                )}
              </div>
              <div className={classes.line}>
                <Method method={tool.method} />
                <span className={classes.path}>{tool.path}</span>
                {sources.length > 1 && <span className={classes.title}>{tool.source_name}</span>}
                {weight && <span className={classes.tokens}>{count.format(weight.tokens)} tokens</span>}
              </div>
              {weight?.notes.map((note) => (
                <p key={note} className={classes.warning}>
                  {note}
                </p>
              ))}
            </ChoiceRow>
          );
        })}
      </ul>
      {found.length === 0 && (
        <p className={classes.row}>
          {onlyChosen && names.size === 0 ? 'No tools selected yet.' : 'No tool matches.'}
        </p>
      )}
      {more}
    </>
  );
}
