import { Button, Group, SegmentedControl, Stack, Textarea, TextInput } from '@mantine/core';
import {
  type NewClient,
  type RegisteredClient,
  useChangeRegistered,
  useRegisterClient,
} from '../../../api/clients';
import { useFields } from '../../../components/form';
import { Refused } from '../../../components/refused';
import type { Shown } from '../../../components/secret';
import { toastDone } from '../../../components/toast';
import { publicKeysFault, publicKeysField, readPublicKeys } from '../../../public-keys';

const lines = (text: string) =>
  text
    .split(/\s+/)
    .map((line) => line.trim())
    .filter((line) => line !== '');

/** Registers a client, or changes the one that is given. */
export function ClientForm({
  ws,
  client,
  close,
  show,
  busy,
}: {
  ws: string;
  client: RegisteredClient | undefined;
  close: () => void;
  show: (shown: Shown) => void;
  busy: (registering: boolean) => void;
}) {
  const register = useRegisterClient(ws);
  const change = useChangeRegistered(ws);
  const error = register.error ?? change.error;
  const form = useFields({
    initialValues: {
      name: client?.name ?? '',
      redirect_uris: client?.redirect_uris.join('\n') ?? '',
      proof: 'none' as NewClient['proof'],
      keys: '',
    },
    validate: ({ proof, keys }) => ({ keys: proof === 'private_key_jwt' && publicKeysFault(keys) }),
    error,
    place: publicKeysField,
  });
  const { proof, redirect_uris } = form.values;
  const name = form.values.name.trim();

  function send({ keys }: typeof form.values) {
    if (client) {
      change.mutate(
        { id: client.id, name, redirect_uris: lines(redirect_uris) },
        {
          onSuccess: () => {
            toastDone(`${name} was updated.`);
            close();
          },
        },
      );
      return;
    }
    busy(true);
    register.mutate(
      {
        name,
        redirect_uris: lines(redirect_uris),
        proof,
        ...(proof === 'private_key_jwt' && readPublicKeys(keys)),
      },
      {
        onSettled: () => busy(false),
        onSuccess: ({ client: made, client_secret }) => {
          close();
          const values = [{ label: 'Client ID', value: made.client_id }];
          if (client_secret) values.push({ label: 'Client secret', value: client_secret });
          show({ title: `Client “${made.name}”`, values });
        },
      },
    );
  }

  return (
    <form ref={form.ref} onSubmit={form.onSubmit(send)} noValidate>
      <Stack gap="md">
        <Refused
          error={form.refusal}
          title={client ? 'Nothing was changed' : 'The client was not registered'}
        />
        <TextInput
          label="Name"
          description="Shown to users on the consent page."
          {...form.getInputProps('name')}
        />
        <Textarea
          label="Redirect URIs"
          description="One redirect URI per line."
          placeholder="https://app.example/oauth/callback"
          rows={3}
          {...form.getInputProps('redirect_uris')}
        />
        {!client && (
          <div>
            <span id="proof">Client authentication</span>
            <SegmentedControl
              fullWidth
              aria-labelledby="proof"
              {...form.getInputProps('proof')}
              data={[
                { value: 'none', label: 'None (public)' },
                { value: 'client_secret', label: 'Client secret' },
                { value: 'private_key_jwt', label: 'Private key (JWT)' },
              ]}
            />
          </div>
        )}
        {!client && proof === 'private_key_jwt' && (
          <Textarea
            label="Public keys"
            description="The https URL of a JWK set, or the JWK set as JSON."
            rows={3}
            {...form.getInputProps('keys')}
          />
        )}
        <Group justify="flex-end">
          <Button variant="default" disabled={register.isPending} onClick={close}>
            Cancel
          </Button>
          <Button
            type="submit"
            disabled={name === '' || lines(redirect_uris).length === 0}
            loading={register.isPending || change.isPending}
          >
            {client ? 'Save' : 'Register'}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
