import { ActionIcon, Alert, Button, Group, PasswordInput, Select, Stack, TextInput } from '@mantine/core';
import { IconPlus, IconTrash } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import type { Credential, SecurityHint } from '../api/sources';
import { useFields } from './form';
import { InlineCode } from './inline-code';
import { Submit } from './submit';
import { Unsaved } from './unsaved';

/** The last one is no credential but a way to accounts: its form is the caller's. */
type Kind = Credential['kind'] | 'oauth_authorization_code';

type Draft = {
  kind: Kind;
  in: 'header' | 'query' | 'cookie';
  name: string;
  value: string;
  token: string;
  username: string;
  password: string;
  headers: { id: number; name: string; value: string }[];
  token_url: string;
  client_id: string;
  client_secret: string;
  scope: string;
  auth: 'basic' | 'post';
};

/** Returns a draft that is filled in from the security that the document declares. */
function draftFrom(hint: SecurityHint | undefined, withSignIn: boolean, known = ''): Draft {
  const location = hint?.location;
  const kind = hint?.kind ?? 'bearer';
  return {
    kind: kind === 'oauth_authorization_code' && !withSignIn ? 'bearer' : kind,
    in: location === 'query' || location === 'cookie' ? location : 'header',
    name: hint?.kind === 'api_key' ? (hint.name ?? '') : '',
    value: hint?.kind === 'api_key' ? known : '',
    token: '',
    username: '',
    password: '',
    headers: [{ id: 0, name: '', value: '' }],
    token_url: hint?.token_url ?? '',
    client_id: '',
    client_secret: '',
    scope: '',
    auth: 'basic',
  };
}

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

function read(draft: Draft): { credential: Credential } | { faults: Partial<Record<string, string>> } {
  const faults: Record<string, string> = {};
  const need = (field: keyof Draft, message: string) => {
    if (String(draft[field]).trim() === '') faults[field] = message;
  };
  switch (draft.kind) {
    case 'api_key':
      need('name', 'Enter the name of the header, parameter or cookie.');
      if (draft.in === 'header' && draft.name && !headerName.test(draft.name)) {
        faults.name = 'A header name has letters, digits and hyphens only.';
      }
      need('value', 'Enter the key.');
      if (Object.keys(faults).length > 0) return { faults };
      return {
        credential: { kind: 'api_key', in: draft.in, name: draft.name.trim(), value: draft.value.trim() },
      };
    case 'bearer':
      need('token', 'Enter the token.');
      if (Object.keys(faults).length > 0) return { faults };
      return { credential: { kind: 'bearer', token: draft.token.trim() } };
    case 'basic':
      need('username', 'Enter the user name.');
      if (Object.keys(faults).length > 0) return { faults };
      return { credential: { kind: 'basic', username: draft.username, password: draft.password } };
    case 'headers':
      for (const [place, header] of draft.headers.entries()) {
        const path = `headers.${place}.name`;
        if (!headerName.test(header.name)) faults[path] = 'Enter a header name.';
        else if (header.value.trim() === '') faults[path] = 'Enter the value.';
      }
      if (Object.keys(faults).length > 0) return { faults };
      return {
        credential: {
          kind: 'headers',
          headers: draft.headers.map(({ name, value }) => ({ name, value: value.trim() })),
        },
      };
    case 'oauth_client_credentials':
      if (!URL.canParse(draft.token_url)) faults.token_url = 'Enter the complete URL of the token endpoint.';
      need('client_id', 'Enter the client ID.');
      need('client_secret', 'Enter the client secret.');
      if (Object.keys(faults).length > 0) return { faults };
      return {
        credential: {
          kind: 'oauth_client_credentials',
          token_url: draft.token_url,
          client_id: draft.client_id.trim(),
          client_secret: draft.client_secret.trim(),
          ...(draft.scope.trim() ? { scope: draft.scope.trim() } : {}),
          auth: draft.auth,
        },
      };
    case 'oauth_authorization_code':
      return { faults: {} };
  }
}

const kinds: { value: Kind; label: string }[] = [
  { value: 'api_key', label: 'API key' },
  { value: 'bearer', label: 'Bearer token' },
  { value: 'basic', label: 'User name and password' },
  { value: 'headers', label: 'Custom headers' },
  { value: 'oauth_client_credentials', label: 'OAuth client credentials' },
];

const withAccounts: typeof kinds = [
  ...kinds,
  { value: 'oauth_authorization_code', label: 'OAuth sign-in (authorization code)' },
];

export function CredentialForm({
  hints,
  note,
  known,
  submitLabel,
  pending,
  error,
  failed = 'The credential was not saved',
  onSubmit,
  extra,
  signIn,
  guarded = true,
}: {
  hints: SecurityHint[];
  note?: string;
  /** A key that is public: that of the demo API. It is filled in. */
  known?: string;
  submitLabel: string;
  pending: boolean;
  error: unknown;
  /** The heading of a refusal. */
  failed?: string;
  onSubmit: (credential: Credential) => void;
  extra?: ReactNode;
  /** Shown for accounts that people connect; without it that kind is not offered. */
  signIn?: ReactNode;
  /** Leaving with what was typed is asked about; a wizard that keeps its steps asks by itself. */
  guarded?: boolean;
}) {
  const form = useFields<Draft>({
    initialValues: draftFrom(hints[0], signIn !== undefined, known),
    validate: (values) => {
      const outcome = read(values);
      return 'faults' in outcome ? outcome.faults : {};
    },
    error,
    // Other names are fields of what is created along with the credential.
    place: ({ field }) => (field === 'token_url' ? field : undefined),
  });
  const draft = form.values;
  const text = (field: 'name' | 'username' | 'token_url' | 'client_id' | 'scope') => ({
    ...form.getInputProps(field),
    autoComplete: 'off',
    spellCheck: false,
  });
  // "new-password" keeps the browser from offering, and from storing, the person's own password.
  const secret = (field: 'value' | 'token' | 'password' | 'client_secret') => ({
    ...form.getInputProps(field),
    autoComplete: 'new-password',
    spellCheck: false,
  });

  function send(values: Draft) {
    const outcome = read(values);
    if ('credential' in outcome) onSubmit(outcome.credential);
  }

  const hint = hints.find((one) => one.kind === draft.kind);
  return (
    <Stack gap="md" maw={560}>
      {note && (
        <Alert color="sea" data-tone="sea" variant="light">
          <InlineCode text={note} />
        </Alert>
      )}
      <Unsaved when={guarded && form.isChanged() && !pending} tabs />
      {/* Outside the form, which is another one for accounts: whoever chooses by keyboard stays where they are. */}
      <Select
        label="Authentication"
        description={hint?.description ? <InlineCode text={hint.description} /> : undefined}
        data={signIn === undefined ? kinds : withAccounts}
        value={draft.kind}
        onChange={(kind) => {
          if (!kind) return;
          const own = hints.find((one) => one.kind === kind);
          const known = own ? draftFrom(own, true) : undefined;
          form.restart({
            ...draft,
            ...(known ? { name: known.name, in: known.in, token_url: known.token_url } : {}),
            kind: kind as Kind,
          });
        }}
        allowDeselect={false}
      />
      {draft.kind === 'oauth_authorization_code' ? (
        signIn
      ) : (
        <form ref={form.ref} onSubmit={form.onSubmit(send)} noValidate>
          <Stack gap="md">
            {draft.kind === 'api_key' && (
              <>
                <Group grow align="flex-start">
                  <Select
                    label="Sent in"
                    data={[
                      { value: 'header', label: 'Header' },
                      { value: 'query', label: 'Query parameter' },
                      { value: 'cookie', label: 'Cookie' },
                    ]}
                    allowDeselect={false}
                    {...form.getInputProps('in')}
                  />
                  <TextInput label="Name" placeholder="X-Api-Key" {...text('name')} />
                </Group>
                <PasswordInput
                  label="Key"
                  description={known && draft.value === known ? 'The public key of the demo API.' : undefined}
                  {...secret('value')}
                />
              </>
            )}
            {draft.kind === 'bearer' && <PasswordInput label="Token" {...secret('token')} />}
            {draft.kind === 'basic' && (
              <>
                <TextInput label="User name" {...text('username')} />
                <PasswordInput label="Password" {...secret('password')} />
              </>
            )}
            {draft.kind === 'headers' && (
              <Stack gap="xs">
                {draft.headers.map((header, index) => (
                  <Group key={header.id} align="flex-end" gap="xs" wrap="nowrap">
                    <TextInput
                      label={index === 0 ? 'Header' : undefined}
                      aria-label={`Header ${index + 1}`}
                      placeholder="X-Tenant"
                      flex={1}
                      autoComplete="off"
                      {...form.getInputProps(`headers.${index}.name`)}
                    />
                    <PasswordInput
                      label={index === 0 ? 'Value' : undefined}
                      aria-label={`Value of header ${index + 1}`}
                      flex={1}
                      autoComplete="new-password"
                      {...form.getInputProps(`headers.${index}.value`)}
                    />
                    <ActionIcon
                      variant="subtle"
                      color="gray"
                      size={36}
                      aria-label={`Remove header ${index + 1}`}
                      disabled={draft.headers.length === 1}
                      onClick={() => form.removeListItem('headers', index)}
                    >
                      <IconTrash size={17} />
                    </ActionIcon>
                  </Group>
                ))}
                <div>
                  <Button
                    variant="subtle"
                    leftSection={<IconPlus size={16} aria-hidden />}
                    onClick={() =>
                      form.insertListItem('headers', {
                        id: Math.max(...draft.headers.map((one) => one.id)) + 1,
                        name: '',
                        value: '',
                      })
                    }
                  >
                    Add a header
                  </Button>
                </div>
              </Stack>
            )}
            {draft.kind === 'oauth_client_credentials' && (
              <>
                <TextInput
                  label="Token URL"
                  placeholder="https://auth.example.com/oauth/token"
                  {...text('token_url')}
                />
                <TextInput label="Client ID" {...text('client_id')} />
                <PasswordInput label="Client secret" {...secret('client_secret')} />
                <TextInput label="Scope" description="Optional; separated by spaces" {...text('scope')} />
                <Select
                  label="Client authentication"
                  data={[
                    { value: 'basic', label: 'Authorization header (basic)' },
                    { value: 'post', label: 'In the request body (post)' },
                  ]}
                  allowDeselect={false}
                  {...form.getInputProps('auth')}
                />
              </>
            )}
            <Submit error={error} title={failed}>
              <Button type="submit" loading={pending}>
                {submitLabel}
              </Button>
              {extra}
            </Submit>
          </Stack>
        </form>
      )}
    </Stack>
  );
}
