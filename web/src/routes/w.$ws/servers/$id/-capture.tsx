import { Button, NumberInput, Select, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { captureQuery, type ServerCapture, useDeleteCaptured, useSetCapture } from '../../../../api/captures';
import { Confirm } from '../../../../components/confirm';
import { useFields } from '../../../../components/form';
import { HelpLink } from '../../../../components/help-link';
import { Loaded, Panel } from '../../../../components/page';
import { Submit } from '../../../../components/submit';
import { toastDone, toastUndo } from '../../../../components/toast';
import { Unsaved } from '../../../../components/unsaved';
import { useMay, useSession } from '../../../../session';

type Policy = ServerCapture['policy'];

const policies: { value: Policy; label: string }[] = [
  { value: 'metadata', label: 'None: no arguments, no answers' },
  { value: 'errors', label: 'Failed calls' },
  { value: 'sample', label: 'A share of all calls' },
  { value: 'all', label: 'All calls' },
];

/** The calls of the server whose arguments and answers are kept. */
export function ServerCaptureSettings({ server }: { server: string }) {
  const { workspace } = useSession();
  const capture = useQuery(captureQuery(workspace.slug, server));
  return (
    <Panel
      title="Captured content"
      note={
        <>
          Arguments and answers of calls, masked and encrypted. Owners and admins can reveal them, and each
          reveal stands in the audit log. <HelpLink to="console#captured-content">Learn more</HelpLink>
        </>
      }
    >
      <Loaded query={capture} lines={3}>
        {(data) => <CaptureForm key={JSON.stringify(data)} server={server} capture={data} />}
      </Loaded>
    </Panel>
  );
}

function CaptureForm({ server, capture }: { server: string; capture: ServerCapture }) {
  const { workspace } = useSession();
  const administers = useMay('administer');
  const set = useSetCapture(workspace.slug, server);
  const form = useFields({
    initialValues: {
      policy: capture.policy as Policy,
      percent: (capture.percent ?? 10) as number | '',
      days: capture.days as number | '',
    },
    validate: ({ policy, percent, days }) => ({
      percent:
        policy === 'sample' && (percent === '' || percent < 1 || percent > 99)
          ? 'Enter 1 to 99 percent.'
          : null,
      days: days === '' || days < 1 || days > 30 ? 'Enter 1 to 30 days.' : null,
    }),
    error: set.error,
  });
  const { policy, days } = form.values;
  const fewer = days !== '' && days < capture.days;

  const send = (values: typeof form.values) =>
    set.mutate(
      {
        policy: values.policy,
        ...(values.policy === 'sample' && { percent: Number(values.percent) }),
        days: Number(values.days),
      },
      {
        onSuccess: () =>
          fewer
            ? toastDone('Capture changed. Older content was deleted.')
            : toastUndo(
                'Capture changed, for calls from now on.',
                () => set.mutateAsync(capture),
                'Change undone.',
              ),
      },
    );

  return (
    <Stack gap="lg">
      <form ref={form.ref} onSubmit={form.onSubmit(send)} noValidate>
        <Unsaved when={form.isChanged() && !set.isPending} />
        <fieldset disabled={!administers} className="bare">
          <Stack gap="md" maw={640}>
            <Select
              label="Keep the content of"
              description={administers ? undefined : 'Only an owner or admin can change this.'}
              allowDeselect={false}
              disabled={!administers}
              data={policies}
              {...form.getInputProps('policy')}
            />
            {policy === 'sample' && (
              <NumberInput
                label="Share"
                suffix=" %"
                min={1}
                max={99}
                allowDecimal={false}
                {...form.getInputProps('percent')}
              />
            )}
            {(policy !== 'metadata' || form.isChanged()) && (
              <NumberInput
                label="Keep for"
                description={
                  fewer
                    ? 'Content that is older is deleted at once, and can’t be restored.'
                    : 'Content that is kept already ends when it was to end.'
                }
                suffix={days === 1 ? ' day' : ' days'}
                min={1}
                max={30}
                allowDecimal={false}
                {...form.getInputProps('days')}
              />
            )}
            {administers && (
              <Submit error={form.refusal} title="The policy was not changed" fault={form.fault}>
                <Button type="submit" loading={set.isPending}>
                  Save policy
                </Button>
              </Submit>
            )}
          </Stack>
        </fieldset>
      </form>
      {administers && <DeleteCaptured server={server} />}
    </Stack>
  );
}

function DeleteCaptured({ server }: { server: string }) {
  const { workspace } = useSession();
  const remove = useDeleteCaptured(workspace.slug, server);
  const [asking, setAsking] = useState(false);
  return (
    <div>
      <Button color="red" variant="light" onClick={() => setAsking(true)}>
        Delete captured content
      </Button>
      <Confirm
        title="Delete captured content?"
        word="Delete"
        opened={asking}
        close={() => setAsking(false)}
        busy={remove.isPending}
        error={remove.error}
        failed="Nothing was deleted"
        act={() =>
          remove.mutate(undefined, {
            onSuccess: ({ calls }) => {
              setAsking(false);
              toastDone(
                calls === 0
                  ? 'There was no captured content.'
                  : `Content of ${calls === 1 ? '1 call' : `${calls.toLocaleString()} calls`} deleted.`,
              );
            },
          })
        }
      >
        Arguments and answers of all calls of this server are deleted. The calls stay in the log. This can’t
        be undone.
      </Confirm>
    </div>
  );
}
