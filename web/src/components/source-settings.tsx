import { Button, Group, NumberInput, Select, Stack, Switch, TextInput } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import type { Source, SourceSettings } from '../api/sources';
import { Refused } from './refused';

/** Name, base URL and limits of a source. */
export function SourceSettingsForm({
  source,
  pending,
  error,
  readOnly,
  onSubmit,
}: {
  source: Source;
  pending: boolean;
  error: Error | null;
  readOnly: boolean;
  onSubmit: (change: { name: string; base_url: string; settings: SourceSettings }) => void;
}) {
  const [name, setName] = useState(source.name);
  const [baseUrl, setBaseUrl] = useState(source.base_url);
  const [timeout, setTimeout] = useState<string | number>(source.settings.timeout_ms / 1000);
  const [size, setSize] = useState<string | number>(source.settings.max_response_bytes / 1024 / 1024);
  const [redirects, setRedirects] = useState(source.settings.follow_redirects);
  const [tasks, setTasks] = useState(source.settings.tasks ?? false);
  const badUrl = !/^https?:\/\//i.test(baseUrl) || !URL.canParse(baseUrl);

  function submit(event: FormEvent) {
    event.preventDefault();
    if (badUrl || name.trim() === '') return;
    onSubmit({
      name: name.trim(),
      base_url: baseUrl.trim(),
      settings: {
        timeout_ms: Math.round(Number(timeout || 30) * 1000),
        max_response_bytes: Math.round(Number(size || 1) * 1024 * 1024),
        follow_redirects: redirects,
        tasks,
      },
    });
  }

  return (
    <form onSubmit={submit} noValidate>
      <fieldset disabled={readOnly} style={{ border: 0, padding: 0, margin: 0, minWidth: 0 }}>
        <Stack gap="md" maw={560}>
          <Refused error={error} title="The settings were not saved" />
          <TextInput
            label="Name"
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            error={name.trim() === '' ? 'Give the source a name.' : null}
          />
          <TextInput
            label="Base URL"
            value={baseUrl}
            onChange={(event) => setBaseUrl(event.currentTarget.value)}
            error={badUrl ? 'Give a complete URL: https://host/path.' : null}
          />
          <Group grow align="flex-start">
            <NumberInput
              label="Timeout"
              suffix=" s"
              value={timeout}
              onChange={setTimeout}
              min={1}
              max={300}
            />
            <NumberInput
              label="Largest answer"
              suffix=" MiB"
              value={size}
              onChange={setSize}
              min={0.1}
              max={100}
              step={1}
            />
          </Group>
          <Select
            label="Redirects"
            description="A redirect to another host never carries the credential."
            data={[
              { value: 'none', label: 'Do not follow' },
              { value: 'same_origin', label: 'Follow within the same origin' },
            ]}
            value={redirects}
            onChange={(value) => value && setRedirects(value as SourceSettings['follow_redirects'])}
            allowDeselect={false}
          />
          <Switch
            label="Long calls as tasks"
            description="A client that knows MCP tasks gets its answer later instead of waiting; others wait as before."
            checked={tasks}
            onChange={(event) => setTasks(event.currentTarget.checked)}
          />
          {!readOnly && (
            <div>
              <Button type="submit" loading={pending}>
                Save settings
              </Button>
            </div>
          )}
        </Stack>
      </fieldset>
    </form>
  );
}
