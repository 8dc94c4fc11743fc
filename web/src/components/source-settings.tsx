import { Button, Group, NumberInput, Select, Stack, Switch, TextInput } from '@mantine/core';
import type { Source, SourceSettings } from '../api/sources';
import { addressFault, blank } from '../rules';
import { useFields } from './form';
import { Submit } from './submit';
import { Unsaved } from './unsaved';

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
  const form = useFields({
    initialValues: {
      name: source.name,
      base_url: source.base_url,
      timeout: (source.settings.timeout_ms / 1000) as number | string,
      size: (source.settings.max_response_bytes / 1024 / 1024) as number | string,
      follow_redirects: source.settings.follow_redirects,
      tasks: source.settings.tasks ?? false,
    },
    validate: ({ name, base_url }) => ({
      name: blank(name, 'Enter a name for the source.'),
      base_url: addressFault(base_url),
    }),
    eager: true,
    error,
  });

  const send = ({ name, base_url, timeout, size, ...settings }: typeof form.values) =>
    onSubmit({
      name: name.trim(),
      base_url: base_url.trim(),
      settings: {
        timeout_ms: Math.round(Number(timeout || 30) * 1000),
        max_response_bytes: Math.round(Number(size || 1) * 1024 * 1024),
        ...settings,
      },
    });

  return (
    <form ref={form.ref} onSubmit={form.onSubmit(send)} noValidate>
      <Unsaved when={form.isChanged() && !pending} tabs />
      <fieldset disabled={readOnly} className="bare">
        <Stack gap="md" maw={560}>
          <TextInput label="Name" {...form.getInputProps('name')} />
          <TextInput label="Base URL" {...form.getInputProps('base_url')} />
          <Group grow align="flex-start">
            <NumberInput label="Timeout" suffix=" s" min={1} max={120} {...form.getInputProps('timeout')} />
            <NumberInput
              label="Maximum response size"
              suffix=" MiB"
              min={0.1}
              max={8}
              step={1}
              {...form.getInputProps('size')}
            />
          </Group>
          <Select
            label="Redirects"
            description="A redirect to another host never carries the credential."
            data={[
              { value: 'none', label: 'Do not follow' },
              { value: 'same_origin', label: 'Follow within the same origin' },
            ]}
            allowDeselect={false}
            {...form.getInputProps('follow_redirects')}
          />
          <Switch
            label="Run long calls as MCP tasks"
            description="Clients that support MCP tasks get the result later; other clients wait for it."
            {...form.getInputProps('tasks', { type: 'checkbox' })}
          />
          {!readOnly && (
            <Submit error={error} title="The settings were not saved">
              <Button type="submit" loading={pending}>
                Save settings
              </Button>
            </Submit>
          )}
        </Stack>
      </fieldset>
    </form>
  );
}
