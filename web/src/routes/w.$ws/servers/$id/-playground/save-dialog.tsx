import { ActionIcon, Button, Group, NumberInput, Select, Stack, Switch, TextInput } from '@mantine/core';
import { IconPlus, IconTrash } from '@tabler/icons-react';
import { useId, useState } from 'react';
import { ApiError } from '../../../../../api/http';
import { type SavedCall, useSaveCall } from '../../../../../api/saved-calls';
import { CodeBlock } from '../../../../../components/copy';
import { Dialog } from '../../../../../components/dialog';
import { toastDone } from '../../../../../components/toast';
import { parsePath } from '../../../../../mcp/json-path';
import { useSession } from '../../../../../session';
import classes from './playground.module.css';
import type { Call } from './tools';

interface Row {
  key: number;
  path: string;
  text: string;
}

/** A value as it is typed: JSON, or a text without quotes. */
function valueFrom(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Names a call and its assertions. With `saved` it changes that one. */
export function SaveDialog({
  server,
  call,
  saved,
  onClose,
}: {
  server: string;
  call: Call;
  saved?: SavedCall;
  onClose: () => void;
}) {
  const { workspace } = useSession();
  const save = useSaveCall(workspace.slug, server);
  const [name, setName] = useState(saved?.name ?? String(call.params.name ?? call.params.uri));
  const [status, setStatus] = useState<'ok' | 'error'>(saved?.expect.status ?? 'ok');
  const [schema, setSchema] = useState(saved?.expect.schema ?? false);
  const [maxMs, setMaxMs] = useState<number | ''>(saved?.expect.max_ms ?? '');
  const [rows, setRows] = useState<Row[]>(() =>
    (saved?.expect.equals ?? []).map(({ path, value }, key) => ({ key, path, text: JSON.stringify(value) })),
  );
  const [tried, setTried] = useState(false);
  const group = useId();
  const bad = rows.some((row) => parsePath(row.path) === undefined);
  const refusal = save.error instanceof ApiError ? save.error : undefined;

  function submit() {
    setTried(true);
    if (bad || name.trim() === '') return;
    const expect = {
      status,
      schema,
      ...(maxMs !== '' && { max_ms: maxMs }),
      equals: rows.map(({ path, text }) => ({ path, value: valueFrom(text) })),
    };
    const body = { name: name.trim(), method: call.method, params: call.params, expect };
    save.mutate(
      { call: saved?.id, body },
      {
        onSuccess: () => {
          toastDone(saved ? 'Saved call changed.' : 'Call saved.');
          onClose();
        },
      },
    );
  }

  const change = (key: number, part: Partial<Row>) =>
    setRows((all) => all.map((row) => (row.key === key ? { ...row, ...part } : row)));

  return (
    <Dialog title={saved ? 'Change saved call' : 'Save call'} opened onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
        noValidate
      >
        <Stack gap="md">
          <TextInput
            label="Name"
            withAsterisk
            maxLength={100}
            value={name}
            error={
              tried && name.trim() === ''
                ? 'Required.'
                : refusal?.field === 'name'
                  ? refusal.message
                  : undefined
            }
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <Select
            label="Status"
            allowDeselect={false}
            data={[
              { value: 'ok', label: 'Succeeds' },
              { value: 'error', label: 'Fails' },
            ]}
            value={status}
            onChange={(next) => setStatus(next === 'error' ? 'error' : 'ok')}
          />
          {call.method === 'tools/call' && (
            <Switch
              label="Result fits the output schema"
              checked={schema}
              onChange={(event) => setSchema(event.currentTarget.checked)}
            />
          )}
          <NumberInput
            label="Longest time"
            description="In milliseconds. Empty: any time."
            min={1}
            max={600_000}
            allowDecimal={false}
            value={maxMs}
            onChange={(next) => setMaxMs(next === '' ? '' : Number(next))}
          />
          <fieldset className="bare" aria-labelledby={group}>
            <p id={group} className={classes.heading}>
              Values of the result
            </p>
            <Stack gap="xs" mt="xs">
              {rows.map(({ key, path, text }, place) => (
                <Group key={key} gap="xs" wrap="nowrap" align="flex-start">
                  <TextInput
                    aria-label={`Path ${place + 1}`}
                    placeholder="$.content[0].text"
                    value={path}
                    error={
                      tried && parsePath(path) === undefined ? 'Write it as $.content[0].text.' : undefined
                    }
                    onChange={(event) => change(key, { path: event.currentTarget.value })}
                    className={classes.grow}
                    spellCheck={false}
                  />
                  <TextInput
                    aria-label={`Value ${place + 1}`}
                    placeholder="Value, as JSON"
                    value={text}
                    onChange={(event) => change(key, { text: event.currentTarget.value })}
                    className={classes.grow}
                    spellCheck={false}
                  />
                  <ActionIcon
                    variant="subtle"
                    color="gray"
                    size={36}
                    aria-label={`Remove value ${place + 1}`}
                    onClick={() => setRows((all) => all.filter((row) => row.key !== key))}
                  >
                    <IconTrash size={16} />
                  </ActionIcon>
                </Group>
              ))}
              <div>
                <Button
                  variant="default"
                  size="compact-sm"
                  leftSection={<IconPlus size={15} aria-hidden />}
                  onClick={() =>
                    setRows((all) => [
                      ...all,
                      { key: Math.max(-1, ...all.map((one) => one.key)) + 1, path: '$.', text: '' },
                    ])
                  }
                >
                  Add a value
                </Button>
              </div>
            </Stack>
          </fieldset>
          <details className={classes.details}>
            <summary>Parameters</summary>
            <CodeBlock code={JSON.stringify(call.params, null, 2)} label="parameters" wrap />
          </details>
          {refusal && refusal.field !== 'name' && (
            <p role="alert" className={classes.fault}>
              {refusal.message}
            </p>
          )}
          <p className={classes.small}>Members of the workspace see the parameters. Don’t save secrets.</p>
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={save.isPending}>
              Save
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}
