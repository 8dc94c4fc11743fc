import { Button, Pill, TextInput } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import { type CallFilter, filterNames, readTyped } from '../call-filter';
import { formatDateTime } from '../time';
import classes from './call-filter-bar.module.css';

function shown(name: string, value: string, people: Map<string, string>): string {
  if (name === 'from' || name === 'to') return formatDateTime(value);
  return name === 'user' ? (people.get(value) ?? value) : value;
}

/** A line for filters, and one chip for each that holds. */
export function CallFilterBar({
  filter,
  people,
  onChange,
}: {
  filter: CallFilter;
  /** Names of people by id: a link from insights narrows to an id. */
  people: Map<string, string>;
  onChange: (next: CallFilter) => void;
}) {
  const [typed, setTyped] = useState('');
  const [fault, setFault] = useState<string>();
  const add = (event: FormEvent) => {
    event.preventDefault();
    const read = readTyped(typed, Date.now());
    if ('fault' in read) return setFault(read.fault);
    setFault(undefined);
    setTyped('');
    onChange({ ...filter, ...read.filter });
  };
  const remove = (name: keyof CallFilter) => {
    const { [name]: _gone, ...rest } = filter;
    onChange(rest);
  };
  const chips = filterNames.flatMap((name) => {
    const value = filter[name];
    return value === undefined ? [] : [{ name, value }];
  });
  return (
    <form onSubmit={add} className={classes.bar} aria-label="Filter calls">
      <TextInput
        label="Filter"
        description="Any of tool: server: client: user: outcome: error: era: dur:>500ms from:1h to:1m, or the name of a tool."
        placeholder="outcome:error dur:>500ms from:1h"
        value={typed}
        error={fault}
        onChange={(event) => {
          setTyped(event.currentTarget.value);
          setFault(undefined);
        }}
        rightSectionWidth={64}
        rightSection={
          <Button type="submit" variant="subtle" size="compact-sm" disabled={typed.trim() === ''}>
            Add
          </Button>
        }
      />
      {chips.length > 0 && (
        <Pill.Group className={classes.chips}>
          {chips.map(({ name, value }) => (
            <Pill
              key={name}
              withRemoveButton
              onRemove={() => remove(name)}
              removeButtonProps={{
                'aria-label': `Remove the filter ${name}`,
                tabIndex: 0,
                'aria-hidden': false,
              }}
            >
              {name}: {shown(name, value, people)}
            </Pill>
          ))}
          <Button variant="subtle" size="compact-xs" onClick={() => onChange({})}>
            Clear all
          </Button>
        </Pill.Group>
      )}
    </form>
  );
}
