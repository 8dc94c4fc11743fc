import { Alert, Button, Group, Stack, TextInput, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Navigate, useNavigate, useSearch } from '@tanstack/react-router';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { ApiError } from '../api/http';
import { type Me, meQuery } from '../api/me';
import { useCreateWorkspace, useRestoreWorkspace } from '../api/workspaces';
import { LinkButton } from '../components/link-button';
import { Failed, Loading } from '../components/page';
import { Refused } from '../components/refused';
import { PlainShell } from '../components/shell';
import { rememberedWorkspace } from '../session';
import { slugFault, suggestSlug } from '../slug';
import { formatDate } from '../time';
import classes from './home.module.css';

/** The door of the console: into the last workspace, or to making the first one. */
export function HomePage() {
  const { create } = useSearch({ from: '/' });
  const me = useQuery(meQuery);
  if (me.error && !me.data) {
    return (
      <PlainShell>
        <Failed error={me.error} retry={() => void me.refetch()} />
      </PlainShell>
    );
  }
  if (!me.data) return <Loading lines={5} />;
  const last = rememberedWorkspace();
  const target = me.data.workspaces.find((one) => one.slug === last) ?? me.data.workspaces[0];
  if (target && !create) return <Navigate to="/w/$ws" params={{ ws: target.slug }} replace />;
  return (
    <PlainShell me={me.data}>
      <CreateWorkspace me={me.data} first={!target} />
    </PlainShell>
  );
}

/** Workspaces that do not work now, and what can be done about it. */
function Stopped({ me }: { me: Me }) {
  const restore = useRestoreWorkspace();
  const navigate = useNavigate();
  return me.stopped_workspaces?.map((one) => (
    <Alert
      key={one.id}
      color="yellow"
      data-tone="yellow"
      mb="md"
      title={one.delete_after ? `${one.name} was deleted` : `${one.name} is suspended`}
    >
      <Stack gap="sm" align="flex-start">
        <span>
          {one.message ??
            (one.delete_after
              ? `Everything in it will be destroyed after ${formatDate(one.delete_after)}.`
              : 'Ask whoever runs this service.')}
        </span>
        {restore.error && restore.variables === one.slug && (
          <Refused error={restore.error} title="It was not restored" />
        )}
        {one.delete_after && one.role === 'owner' && (
          <Button
            variant="default"
            loading={restore.isPending && restore.variables === one.slug}
            onClick={() =>
              restore.mutate(one.slug, {
                onSuccess: () => void navigate({ to: '/w/$ws', params: { ws: one.slug } }),
              })
            }
          >
            Restore it
          </Button>
        )}
      </Stack>
    </Alert>
  ));
}

function CreateWorkspace({ me, first }: { me: Me; first: boolean }) {
  const navigate = useNavigate();
  const create = useCreateWorkspace();
  const [name, setName] = useState('');
  const [ownSlug, setOwnSlug] = useState<string | null>(null);
  const [tried, setTried] = useState(false);
  const slugInput = useRef<HTMLInputElement>(null);
  const nameInput = useRef<HTMLInputElement>(null);
  const slug = ownSlug ?? suggestSlug(name);
  const fault = slugFault(slug);
  const refused = create.error instanceof ApiError ? create.error : null;
  const slugRefused =
    refused &&
    (refused.field === 'slug' || refused.code.startsWith('slug_')) &&
    create.variables?.slug === slug;
  useEffect(() => {
    document.title = `${first ? 'Welcome' : 'New workspace'} · Portolan`;
  }, [first]);

  function submit(event: FormEvent) {
    event.preventDefault();
    setTried(true);
    if (name.trim() === '') return nameInput.current?.focus();
    if (fault) return slugInput.current?.focus();
    create.mutate(
      { name: name.trim(), slug },
      {
        onSuccess: (made) => void navigate({ to: '/w/$ws', params: { ws: made.slug } }),
        onError: () => slugInput.current?.focus(),
      },
    );
  }

  const slugError = slugRefused
    ? refused.message
    : (tried || ownSlug !== null) && slug !== ''
      ? fault
      : tried
        ? fault
        : null;
  return (
    <div className={classes.page}>
      <div>
        <Title order={1} className={classes.title}>
          {first
            ? `Welcome aboard${me.user.display_name ? `, ${me.user.display_name}` : ''}`
            : 'New workspace'}
        </Title>
        <Stopped me={me} />
        <p className={classes.lede}>
          A workspace holds your APIs, the tools made of them, and the servers you publish. Name it after your
          team or company.
        </p>
        <form className={classes.form} onSubmit={submit} noValidate>
          {refused && !slugRefused && (
            <Alert color="red" data-tone="red" role="alert" title="The workspace was not created">
              {refused.message}
            </Alert>
          )}
          <TextInput
            ref={nameInput}
            label="Workspace name"
            size="md"
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            error={tried && name.trim() === '' ? 'Give the workspace a name.' : null}
            maxLength={80}
            autoComplete="organization"
            data-autofocus
            required
          />
          <TextInput
            ref={slugInput}
            label="Address"
            description={`Part of every server's URL: ${window.location.host}/t/${slug || 'your-team'}/…  It cannot be changed later.`}
            size="md"
            value={slug}
            onChange={(event) => setOwnSlug(event.currentTarget.value.toLowerCase())}
            error={slugError}
            maxLength={60}
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            required
          />
          <Group gap="sm">
            <Button type="submit" size="md" loading={create.isPending}>
              Create workspace
            </Button>
            {!first && (
              <LinkButton to="/" size="md" variant="default">
                Cancel
              </LinkButton>
            )}
          </Group>
        </form>
      </div>
      <aside className={classes.chart} aria-label="What comes next">
        <ol>
          <li>
            <span className={classes.number}>1</span>
            <span>Import an OpenAPI document; each operation becomes a tool.</span>
          </li>
          <li>
            <span className={classes.number}>2</span>
            <span>Set the credential of the API. It is sealed and never shown again.</span>
          </li>
          <li>
            <span className={classes.number}>3</span>
            <span>Publish a server and connect Claude, ChatGPT, Cursor or VS Code.</span>
          </li>
        </ol>
      </aside>
    </div>
  );
}
