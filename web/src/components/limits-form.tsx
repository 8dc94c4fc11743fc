import { Alert, Button, NumberInput } from '@mantine/core';
import { useId } from 'react';
import { ApiError } from '../api/http';
import type { Limit, LimitName, LimitsChange } from '../api/limits';
import { confirmPath } from '../api/people';
import { Status, Tag } from './badges';
import { useFields } from './form';
import classes from './limits-form.module.css';
import { Unsaved } from './unsaved';

export const limitTexts: Record<LimitName, { name: string; meaning: string }> = {
  tenant_calls: {
    name: 'Workspace calls',
    meaning: 'Tool calls per minute, all users and AI clients combined.',
  },
  client_requests: {
    name: 'Requests per user and client',
    meaning:
      'Requests that one user can send through one AI client per minute, so one client can’t starve the others.',
  },
  tool_calls: {
    name: 'Calls per tool',
    meaning: 'Calls per minute to each tool, all users combined. This protects the API behind the tool.',
  },
  running_calls: {
    name: 'Concurrent calls',
    meaning: 'Tool calls that can run at the same time, across all servers.',
  },
  open_streams: {
    name: 'Open event streams',
    meaning: 'Connections that AI clients can keep open at the same time for notifications and long results.',
  },
  stream_opens: {
    name: 'New event streams of one person',
    meaning:
      'Event streams that one person may open through one AI client each minute. A client that comes back for a broken one is never refused.',
  },
  session_streams: {
    name: 'Event streams of one session',
    meaning: 'Event streams for news that one session of an AI client may hold open at the same moment.',
  },
  listens: {
    name: 'Subscriptions of one person',
    meaning: 'Subscriptions to news that one person may hold open at the same moment through one AI client.',
  },
  parked_calls: {
    name: 'Calls that wait for an answer',
    meaning:
      'Calls of one person through one AI client that have asked something and wait for the answer at the same moment.',
  },
  tasks: {
    name: 'Tasks of one person',
    meaning: 'Tasks that are kept at the same moment for one person with one AI client on one server.',
  },
};

const suffixes: Record<Limit['unit'], string> = { per_minute: ' a minute', at_once: ' at once' };

/** "600 a minute", "64 at once", "no limit". */
export function amount(value: number | null, unit: Limit['unit']): string {
  return value === null ? 'no limit' : `${value.toLocaleString()}${suffixes[unit]}`;
}

/** The number that an input holds; undefined if it is none that may be set. An emptied input means "no limit" where that is the default. */
export function read(draft: string | number, limit: Limit): number | null | undefined {
  if (draft === '') return limit.default === null ? null : undefined;
  const value = Number(draft);
  return Number.isInteger(value) && value >= limit.minimum && value <= limit.maximum ? value : undefined;
}

type Drafts = Partial<Record<LimitName, string | number>>;

function faultOf(limit: Limit, drafts: Drafts): string | null {
  const draft = drafts[limit.name];
  if (draft === undefined || draft === (limit.value ?? '') || read(draft, limit) !== undefined) return null;
  const range = `${limit.minimum.toLocaleString()} to ${limit.maximum.toLocaleString()}`;
  return limit.default === null
    ? `Enter a whole number from ${range}, or leave it empty for no limit.`
    : `Enter a whole number from ${range}.`;
}

/** The limits of a workspace, each with what it means and what it did; for those who may, with a field to change it. */
export function LimitsForm({
  limits,
  hours,
  readOnly,
  pending,
  error,
  onChange,
}: {
  limits: Limit[];
  /** How far back `refused` counts. */
  hours: number;
  readOnly: boolean;
  pending: boolean;
  error: Error | null;
  onChange: (change: LimitsChange) => Promise<unknown>;
}) {
  const id = useId();
  const inputOf = (name: LimitName) => `${id}${name}`;
  // Only what was touched: the other fields follow what the server says.
  const form = useFields<Drafts>({
    initialValues: {},
    validate: (drafts) => Object.fromEntries(limits.map((limit) => [limit.name, faultOf(limit, drafts)])),
    eager: true,
    error,
  });
  const drafts = form.values;
  const refused = error instanceof ApiError ? error.field : undefined;
  const path = confirmPath(error);
  const touched = limits.filter(
    ({ name, value }) => drafts[name] !== undefined && drafts[name] !== (value ?? ''),
  );

  const forget = (names: LimitName[]) =>
    form.setValues(Object.fromEntries(names.map((name) => [name, undefined])));

  function send() {
    const names = touched.map(({ name }) => name);
    onChange(
      Object.fromEntries(touched.map((limit) => [limit.name, read(drafts[limit.name] ?? '', limit)])),
    ).then(
      () => forget(names),
      () => {
        // The alert and the field say it.
      },
    );
  }

  function reset(name: LimitName) {
    onChange({ [name]: null }).then(
      () => {
        forget([name]);
        form.clearFieldError(name);
        // The button that had the focus is gone.
        document.getElementById(inputOf(name))?.focus();
      },
      () => {
        // The alert says it.
      },
    );
  }

  const list = (
    <ul className={classes.list}>
      {limits.map((limit, place) => {
        const { name, meaning } = limitTexts[limit.name];
        const bounds = `Default: ${limit.default?.toLocaleString() ?? 'no limit'}. Maximum: ${limit.maximum.toLocaleString()}.`;
        return (
          <li key={limit.name} className={classes.limit} data-last={place === limits.length - 1 || undefined}>
            <div>
              <div className={classes.name}>
                <h3>{readOnly ? name : <label htmlFor={inputOf(limit.name)}>{name}</label>}</h3>
                {limit.own !== null && <Tag>custom</Tag>}
              </div>
              <p className={classes.meaning}>{meaning}</p>
              <div className={classes.now}>
                <InUse limit={limit} />
                <Status tone={limit.refused > 0 ? 'bad' : 'quiet'}>
                  {limit.refused > 0 ? limit.refused.toLocaleString() : 'None'} refused in {hours} hours
                </Status>
              </div>
            </div>
            {readOnly ? (
              <div>
                <p className={classes.value}>{amount(limit.value, limit.unit)}</p>
                <p className={classes.bounds}>{bounds}</p>
              </div>
            ) : (
              <div>
                <NumberInput
                  id={inputOf(limit.name)}
                  {...form.getInputProps(limit.name)}
                  value={drafts[limit.name] ?? limit.value ?? ''}
                  description={bounds}
                  inputWrapperOrder={['input', 'error', 'description']}
                  placeholder="No limit"
                  suffix={suffixes[limit.unit]}
                  min={limit.minimum}
                  max={limit.maximum}
                  clampBehavior="none"
                  allowDecimal={false}
                  allowNegative={false}
                  inputMode="numeric"
                  autoComplete="off"
                />
                {limit.own !== null && (
                  <Button
                    className={classes.reset}
                    variant="subtle"
                    size="compact-sm"
                    disabled={pending}
                    aria-label={`Reset to default: ${name}`}
                    onClick={() => reset(limit.name)}
                  >
                    Reset to default
                  </Button>
                )}
              </div>
            )}
          </li>
        );
      })}
    </ul>
  );

  if (readOnly) return list;
  return (
    <form ref={form.ref} onSubmit={form.onSubmit(send)} noValidate>
      <Unsaved when={touched.length > 0 && !pending} />
      {list}
      {error && (
        <div className={classes.alert}>
          <Alert color="red" data-tone="red" role="alert" title="The limits were not saved">
            {refused && refused in limitTexts ? `${limitTexts[refused as LimitName].name}: ` : ''}
            {error.message} {path && <a href={path}>Confirm</a>}
          </Alert>
        </div>
      )}
      <div className={classes.save}>
        <Button type="submit" loading={pending} disabled={touched.length === 0}>
          Save changes
        </Button>
        {touched.length > 0 && !pending && (
          <Button variant="default" onClick={() => form.restart()}>
            Discard
          </Button>
        )}
      </div>
    </form>
  );
}

/** The usage now, if the process that answers knows it. */
function InUse({ limit }: { limit: Limit }) {
  if (limit.in_use === null) return null;
  const full = limit.value !== null && limit.in_use >= limit.value * 0.9;
  return (
    <Status tone={full ? 'warn' : limit.in_use > 0 ? 'good' : 'quiet'}>
      {limit.in_use.toLocaleString()} {limit.name === 'open_streams' ? 'open' : 'running'} now
    </Status>
  );
}
