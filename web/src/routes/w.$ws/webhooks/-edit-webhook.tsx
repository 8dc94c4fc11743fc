import { Button, Group, Stack, Textarea, TextInput } from '@mantine/core';
import { useChangeWebhook, useMoveWebhook, type Webhook } from '../../../api/webhooks';
import { Dialog } from '../../../components/dialog';
import { useFields } from '../../../components/form';
import { Submit } from '../../../components/submit';
import { toastDone } from '../../../components/toast';
import { EventChoice } from './-event-choice';
import { headersFault, readHeaders } from './-headers';

interface Props {
  ws: string;
  webhook: Webhook;
  opened: boolean;
  close: () => void;
}

/** Changes the events and the description of an endpoint. */
export function ChangeWebhookDialog({ opened, close, ...rest }: Props) {
  return (
    <Dialog opened={opened} onClose={close} title="Change events">
      {opened && <ChangeForm close={close} {...rest} />}
    </Dialog>
  );
}

function ChangeForm({ ws, webhook, close }: Omit<Props, 'opened'>) {
  const change = useChangeWebhook(ws, webhook.id);
  const form = useFields({
    initialValues: { description: webhook.description, events: webhook.events },
    validate: ({ events }) => (events.length === 0 ? { events: 'Choose at least one event.' } : {}),
    error: change.error,
    place: ({ field }) => field?.split(/[.[]/)[0],
  });
  return (
    <form
      ref={form.ref}
      noValidate
      onSubmit={form.onSubmit((values) =>
        change.mutate(values, {
          onSuccess: () => {
            toastDone('The endpoint was changed.');
            close();
          },
        }),
      )}
    >
      <Stack gap="md">
        <TextInput label="Description" maxLength={200} {...form.getInputProps('description')} />
        <EventChoice
          ws={ws}
          value={form.values.events}
          onChange={(next) => form.setFieldValue('events', next)}
          error={form.errors.events}
        />
        <Submit error={form.refusal} title="The endpoint was not changed" fault={form.fault}>
          <Group>
            <Button type="submit" loading={change.isPending}>
              Save
            </Button>
            <Button variant="default" onClick={close}>
              Cancel
            </Button>
          </Group>
        </Submit>
      </Stack>
    </form>
  );
}

/** Moves an endpoint to another URL with other headers. */
export function MoveWebhookDialog({ opened, close, ...rest }: Props) {
  return (
    <Dialog opened={opened} onClose={close} title="Change URL and headers">
      {opened && <MoveForm close={close} {...rest} />}
    </Dialog>
  );
}

function MoveForm({ ws, webhook, close }: Omit<Props, 'opened'>) {
  const move = useMoveWebhook(ws, webhook.id);
  const form = useFields({
    // The stored URL of a Slack endpoint is a secret, and is entered again.
    initialValues: { url: webhook.format === 'slack' ? '' : webhook.url, headers: '' },
    validate: ({ url, headers }) => ({
      ...(!URL.canParse(url.trim()) && { url: 'Enter an absolute URL, beginning with https://.' }),
      ...(readHeaders(headers) === undefined && { headers: headersFault }),
    }),
    error: move.error,
    place: ({ field }) => field?.split(/[.[]/)[0],
  });
  return (
    <form
      ref={form.ref}
      noValidate
      onSubmit={form.onSubmit(({ url, headers }) =>
        move.mutate(
          { url: url.trim(), headers: readHeaders(headers) ?? [] },
          {
            onSuccess: () => {
              toastDone('The endpoint was moved.');
              close();
            },
          },
        ),
      )}
    >
      <Stack gap="md">
        <TextInput
          label="URL"
          description="It must answer a signed endpoint.verify with 2xx now. The secret stays."
          withAsterisk
          inputMode="url"
          autoComplete="off"
          {...form.getInputProps('url')}
        />
        <Textarea
          label="Headers"
          description={
            webhook.header_names.length > 0
              ? `One a line. They replace the present ones: ${webhook.header_names.join(', ')}.`
              : 'Up to 10, one a line.'
          }
          placeholder="Authorization: Bearer …"
          autosize
          minRows={1}
          {...form.getInputProps('headers')}
        />
        <Submit error={form.refusal} title="The endpoint was not moved" fault={form.fault}>
          <Group>
            <Button type="submit" loading={move.isPending}>
              Save
            </Button>
            <Button variant="default" onClick={close}>
              Cancel
            </Button>
          </Group>
        </Submit>
      </Stack>
    </form>
  );
}
