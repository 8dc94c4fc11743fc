import { Button, Checkbox, SegmentedControl, TextInput } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import type { ToolSummary } from '../api/tools';
import { useFilter } from '../filter';
import { Method, Status, Tag } from './badges';
import { Confirm } from './confirm';
import classes from './operations.module.css';
import { cell, SelectionBar, SelectionStatus, Table, TableBar, useShown } from './table';

function found(tool: ToolSummary, words: string): boolean {
  const text =
    `${tool.name} ${tool.title} ${tool.method} ${tool.path} ${tool.source_name} ${tool.description}`.toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/** Tools with search, filter, and enabling in bulk. */
export function ToolList({
  ws,
  tools,
  withSource,
  editable,
  pending,
  onSetEnabled,
  beside,
}: {
  ws: string;
  tools: ToolSummary[];
  withSource: boolean;
  editable: boolean;
  pending: boolean;
  onSetEnabled: (ids: string[], enabled: boolean) => void;
  beside?: ReactNode;
}) {
  const [words, setWords] = useFilter('q');
  const [show, setShow] = useFilter('show');
  const which = show === 'enabled' || show === 'disabled' ? show : 'all';
  const [asking, setAsking] = useState(false);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const list = tools.filter(
    (tool) => (which === 'all' || tool.enabled === (which === 'enabled')) && found(tool, words.trim()),
  );
  const { shown, more } = useShown(list);
  const picked = list.filter((tool) => chosen.has(tool.id));
  // Servers that lose a tool when the picked ones are disabled.
  const serving = [...new Set(picked.filter((tool) => tool.enabled).flatMap((tool) => tool.used_by_servers))];
  const set = (enabled: boolean) => {
    onSetEnabled(
      picked.filter((tool) => tool.enabled !== enabled).map((tool) => tool.id),
      enabled,
    );
    setChosen(new Set());
  };
  return (
    <>
      <TableBar>
        <TextInput
          aria-label="Search tools"
          placeholder="Search by name, path or description"
          leftSection={<IconSearch size={16} aria-hidden />}
          value={words}
          onChange={(event) => setWords(event.currentTarget.value)}
        />
        <SegmentedControl
          aria-label="Which tools"
          value={which}
          onChange={(next) => setShow(next === 'all' ? '' : next)}
          data={[
            { value: 'all', label: 'All' },
            { value: 'enabled', label: 'Enabled' },
            { value: 'disabled', label: 'Disabled' },
          ]}
        />
        {beside}
      </TableBar>
      {editable && (
        <SelectionBar>
          <Checkbox
            label="Select all"
            checked={list.length > 0 && picked.length === list.length}
            indeterminate={picked.length > 0 && picked.length < list.length}
            onChange={(event) =>
              setChosen(event.currentTarget.checked ? new Set(list.map((tool) => tool.id)) : new Set())
            }
          />
          <SelectionStatus>
            <strong>{picked.length}</strong> of {list.length} selected
          </SelectionStatus>
          {picked.length > 0 && (
            <Button.Group>
              <Button
                size="compact-sm"
                variant="default"
                loading={pending}
                disabled={picked.every((tool) => tool.enabled)}
                onClick={() => set(true)}
              >
                Enable
              </Button>
              <Button
                size="compact-sm"
                variant="default"
                loading={pending}
                disabled={picked.every((tool) => !tool.enabled)}
                onClick={() => (serving.length > 0 ? setAsking(true) : set(false))}
              >
                Disable
              </Button>
            </Button.Group>
          )}
        </SelectionBar>
      )}
      <Table
        label="Tools"
        head={
          <>
            {editable && (
              <th data-shrink>
                <span className="visually-hidden">Select</span>
              </th>
            )}
            <th>Tool</th>
            <th>Operation</th>
            {withSource && <th>Source</th>}
            <th data-shrink>State</th>
          </>
        }
      >
        {shown.map((tool) => (
          <tr key={tool.id}>
            {editable && (
              <td data-shrink>
                <Checkbox
                  aria-label={`Select ${tool.name}`}
                  checked={chosen.has(tool.id)}
                  onChange={(event) => {
                    const next = new Set(chosen);
                    if (event.currentTarget.checked) next.add(tool.id);
                    else next.delete(tool.id);
                    setChosen(next);
                  }}
                />
              </td>
            )}
            <td data-grow={editable || undefined} data-wide={!editable || undefined}>
              <Link to="/w/$ws/tools/$id" params={{ ws, id: tool.id }} className={`plain ${cell.main}`}>
                <code>{tool.name}</code>
              </Link>
              <div className={cell.sub}>
                {tool.title} {tool.customised && <Tag>edited</Tag>}{' '}
                {tool.used_by_servers.length > 0 && (
                  <Tag>
                    in {tool.used_by_servers.length}{' '}
                    {tool.used_by_servers.length === 1 ? 'server' : 'servers'}
                  </Tag>
                )}
              </div>
            </td>
            <td data-wide>
              <Method method={tool.method} /> <code>{tool.path}</code>
            </td>
            {withSource && <td>{tool.source_name}</td>}
            <td data-shrink>
              {tool.state === 'removed' ? (
                <Status tone="bad">Removed</Status>
              ) : (
                <Status tone={tool.enabled ? 'good' : 'quiet'}>
                  {tool.enabled ? 'Enabled' : 'Disabled'}
                </Status>
              )}
            </td>
          </tr>
        ))}
      </Table>
      {list.length === 0 && (
        <p className={classes.none}>{tools.length === 0 ? 'There are no tools yet.' : 'No tool matches.'}</p>
      )}
      {more}
      <Confirm
        title={`Disable ${picked.length === 1 ? 'this tool' : `${picked.length} tools`}?`}
        word="Disable"
        opened={asking}
        close={() => setAsking(false)}
        busy={pending}
        act={() => {
          setAsking(false);
          set(false);
        }}
      >
        {serving.length === 1 ? 'The server' : 'The servers'} {serving.join(', ')}{' '}
        {serving.length === 1 ? 'stops' : 'stop'} offering {picked.length === 1 ? 'it' : 'them'} immediately.
        You can enable {picked.length === 1 ? 'it' : 'them'} again at any time.
      </Confirm>
    </>
  );
}
