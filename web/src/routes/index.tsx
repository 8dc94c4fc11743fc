import { Alert, Button, Stack, TextInput, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute, Navigate, useNavigate } from '@tanstack/react-router';
import { useEffect } from 'react';
import { type Me, meQuery } from '../api/me';
import { useCreateWorkspace, useRestoreWorkspace } from '../api/workspaces';
import { nameAndAddress } from '../components/address';
import { useFields } from '../components/form';
import { LinkButton } from '../components/link-button';
import { Failed, Loading } from '../components/page';
import { Refused } from '../components/refused';
import { PlainShell } from '../components/shell';
import { Submit } from '../components/submit';
import { blank } from '../rules';
import { rememberedWorkspace } from '../session';
import { slugFault, slugField } from '../slug';
import { formatDate } from '../time';
import classes from './home.module.css';

export const Route = createFileRoute('/')({
  component: HomePage,
  validateSearch: (search: Record<string, unknown>): { create?: boolean } =>
    search.create ? { create: true } : {},
});

/** The start: the last workspace, or the form that creates the first one. */
function HomePage() {
  const { create } = Route.useSearch();
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
              ? `Everything in it will be deleted permanently after ${formatDate(one.delete_after)}.`
              : 'Contact the operator of this service.')}
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
            Restore
          </Button>
        )}
      </Stack>
    </Alert>
  ));
}

function CreateWorkspace({ me, first }: { me: Me; first: boolean }) {
  const navigate = useNavigate();
  const create = useCreateWorkspace();
  const form = useFields({
    initialValues: { name: '', slug: '' },
    validate: ({ name, slug }) => ({
      name: blank(name, 'Enter a name for the workspace.'),
      slug: slugFault(slug),
    }),
    error: create.error,
    place: slugField,
  });
  const fields = nameAndAddress(form);
  useEffect(() => {
    document.title = 'Create a workspace · Portolan';
  }, []);

  const send = ({ name, slug }: typeof form.values) =>
    create.mutate(
      { name: name.trim(), slug },
      { onSuccess: (made) => void navigate({ to: '/w/$ws', params: { ws: made.slug } }) },
    );

  return (
    <div className={classes.page}>
      <div>
        <Title order={1} className={classes.title}>
          Create a workspace
        </Title>
        <Stopped me={me} />
        <p className={classes.lede}>
          A workspace holds your APIs, their tools, and the servers you publish. Name it after your team or
          company.
        </p>
        <form ref={form.ref} className={classes.form} onSubmit={form.onSubmit(send)} noValidate>
          <TextInput
            label="Workspace name"
            size="md"
            {...fields.name}
            maxLength={80}
            autoComplete="organization"
            data-autofocus
            required
          />
          <TextInput
            label="Address"
            description={`Part of every server’s URL: ${window.location.host}/t/${form.values.slug || 'your-team'}/…  It can’t be changed later.`}
            size="md"
            {...fields.slug}
            maxLength={60}
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            required
          />
          <Submit error={form.refusal} title="The workspace was not created">
            <Button type="submit" size="md" loading={create.isPending}>
              Create workspace
            </Button>
            {!first && (
              <LinkButton to="/" size="md" variant="default">
                Cancel
              </LinkButton>
            )}
          </Submit>
        </form>
      </div>
      <aside className={classes.chart} aria-label="What comes next">
        <ol>
          <li>
            <span className={classes.number}>1</span>
            <span>Import an OpenAPI document. Each operation becomes a tool.</span>
          </li>
          <li>
            <span className={classes.number}>2</span>
            <span>Set the API’s credential. It is encrypted and can’t be viewed again.</span>
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
