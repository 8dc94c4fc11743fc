import { Button, Group, SegmentedControl, Stack, Text, Textarea, TextInput } from '@mantine/core';
import type { Schemas } from '../../../api/http';
import { useCreateWebhook, type WebhookFormat } from '../../../api/webhooks';
import { Dialog } from '../../../components/dialog';
import { useFields } from '../../../components/form';
import { Submit } from '../../../components/submit';
import { EventChoice } from './-event-choice';
import { headersFault, readHeaders } from './-headers';

const alerts = ['alert.fired', 'alert.resolved'];

/** Adds an endpoint, after it answered the challenge. */
export function NewWebhookDialog({
  ws,
  opened,
  close,
  made,
}: {
  ws: string;
  opened: boolean;
  close: () => void;
  made: (made: Schemas['WebhookWithSecret']) => void;
}) {
  const create = useCreateWebhook(ws);
  const form = useFields({
    initialValues: {
      format: 'standard' as WebhookFormat,
      url: '',
      description: '',
      headers: '',
      events: [] as string[],
    },
    validate: ({ url, events, headers }) => ({
      ...(!URL.canParse(url.trim()) && { url: 'Enter an absolute URL, beginning with https://.' }),
      ...(events.length === 0 && { events: 'Choose at least one event.' }),
      ...(readHeaders(headers) === undefined && { headers: headersFault }),
    }),
    error: create.error,
    place: ({ field }) => field?.split(/[.[]/)[0],
  });
  const { format, url, description, headers, events } = form.values;

  function leave() {
    create.reset();
    form.restart();
    close();
  }

  return (
    <Dialog opened={opened} onClose={leave} title="Add an endpoint">
      <form
        ref={form.ref}
        noValidate
        onSubmit={form.onSubmit(() =>
          create.mutate(
            {
              format,
              url: url.trim(),
              description: description.trim(),
              headers: readHeaders(headers) ?? [],
              events,
            },
            {
              onSuccess: (answer) => {
                form.restart();
                made(answer);
              },
            },
          ),
        )}
      >
        <Stack gap="md">
          <SegmentedControl
            aria-label="Format"
            value={format}
            onChange={(next) => {
              form.setFieldValue('format', next as WebhookFormat);
              if (next === 'slack' && events.length === 0) form.setFieldValue('events', alerts);
            }}
            data={[
              { value: 'standard', label: 'Signed JSON' },
              { value: 'slack', label: 'Slack' },
            ]}
          />
          <TextInput
            label="URL"
            placeholder="https://example.com/hooks/portolan"
            description={
              format === 'slack'
                ? 'An incoming webhook of Slack, or of a service that takes {"text": …}. It gets a message now.'
                : 'It must answer a signed endpoint.verify with 2xx now.'
            }
            withAsterisk
            inputMode="url"
            autoComplete="off"
            {...form.getInputProps('url')}
          />
          <TextInput label="Description" maxLength={200} {...form.getInputProps('description')} />
          <Textarea
            label="Headers"
            description="Up to 10, one a line. Values are encrypted and not shown again."
            placeholder="Authorization: Bearer …"
            autosize
            minRows={1}
            {...form.getInputProps('headers')}
          />
          <EventChoice
            ws={ws}
            value={events}
            onChange={(next) => form.setFieldValue('events', next)}
            error={form.errors.events}
          />
          {format === 'slack' && (
            <Text size="sm" c="dimmed">
              For alerts in a channel, choose alert.fired and alert.resolved.
            </Text>
          )}
          <Submit error={form.refusal} title="The endpoint was not added" fault={form.fault}>
            <Group>
              <Button type="submit" loading={create.isPending}>
                Add endpoint
              </Button>
              <Button variant="default" onClick={leave}>
                Cancel
              </Button>
            </Group>
          </Submit>
        </Stack>
      </form>
    </Dialog>
  );
}
