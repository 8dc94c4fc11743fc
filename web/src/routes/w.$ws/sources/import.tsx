import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { IconAnchor } from '@tabler/icons-react';
import { createFileRoute, useNavigate } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import {
  type Credential,
  type CredentialState,
  type ImportPreview,
  type Source,
  useCreateSource,
  usePreviewImport,
  useSetCredential,
} from '../../../api/sources';
import { CredentialForm } from '../../../components/credential-form';
import { TestResult } from '../../../components/credential-state';
import { DocumentInputFields, emptyDraft, readDraft } from '../../../components/document-input';
import { useFields } from '../../../components/form';
import { LinkButton } from '../../../components/link-button';
import { Empty, Page, Panel } from '../../../components/page';
import { DocumentRefused } from '../../../components/problems';
import { Restricted } from '../../../components/restricted';
import { Steps } from '../../../components/steps';
import { forgetImport, keepImport, keptImport } from '../../../import-draft';
import { text } from '../../../search';
import { useSession } from '../../../session';
import { type Chosen, chosenFaults, ToolsStep } from './-import-tools';
import classes from './import.module.css';

export const Route = createFileRoute('/w/$ws/sources/import')({
  component: ImportPage,
  validateSearch: (search: Record<string, unknown>): { step?: string } => ({ step: text(search.step) }),
});

type Step = 'document' | 'tools' | 'credential' | 'done';
const order: Step[] = ['document', 'tools', 'credential', 'done'];

const title = 'Import an API';

/** From a document to a source with its tools. Nothing is stored at the server before the last step but one. */
function ImportPage() {
  const { workspace } = useSession();
  const back = { label: 'Sources', to: '/w/$ws/sources', params: { ws: workspace.slug } } as const;
  return (
    <Restricted needs="edit_registry" title={title} back={back}>
      <ImportWizard back={back} />
    </Restricted>
  );
}

function ImportWizard({ back }: { back: Parameters<typeof Page>[0]['back'] }) {
  const { me, workspace } = useSession();
  const ws = workspace.slug;
  const navigate = useNavigate();
  const search = Route.useSearch();
  // Without a step in the address an import begins anew; with one it goes on where this tab left it.
  const [kept] = useState(() => (search.step === undefined ? undefined : keptImport(ws)));
  const demo = me.demo_api ?? undefined;
  const form = useFields({
    initialValues: kept?.document ?? emptyDraft(demo ? 'demo' : 'url'),
    validate: (draft) => {
      const outcome = readDraft(draft, demo);
      return { document: 'fault' in outcome ? outcome.fault : null };
    },
  });
  const draft = form.values;
  const tools = useFields<Chosen>({
    initialValues: {
      name: kept?.name ?? '',
      base_url: kept?.baseUrl ?? '',
      operations: new Set(kept?.selected),
    },
    validate: chosenFaults,
  });
  const { name, base_url, operations: chosen } = tools.values;
  const [source, setSource] = useState<Source | undefined>(kept?.source);
  const [tested, setTested] = useState<CredentialState>();
  const [found, setFound] = useState<ImportPreview | undefined>(kept?.preview);
  const preview = usePreviewImport(ws);
  const create = useCreateSource(ws);
  const setCredential = useSetCredential(ws);
  const top = useRef<HTMLDivElement>(null);
  const step = stepOf(search.step, found, source);
  const shownStep = useRef<Step>(step);

  useEffect(() => {
    if (step === 'done') forgetImport(ws);
    else {
      const selected = [...chosen];
      keepImport(ws, { document: draft, preview: found, selected, name, baseUrl: base_url, source });
    }
  }, [ws, step, draft, found, chosen, name, base_url, source]);

  // The next step begins at its top, and the keyboard is there too.
  useEffect(() => {
    if (shownStep.current === step) return;
    shownStep.current = step;
    window.scrollTo({ top: 0 });
    top.current?.focus({ preventScroll: true });
  }, [step]);

  /** Each step is a page of the history; `replace` for one to which Back must not lead. */
  function go(next: Step, replace = false) {
    void navigate({
      to: '/w/$ws/sources/import',
      params: { ws },
      search: { step: next },
      replace,
      ignoreBlocker: true,
    });
  }

  function read() {
    const outcome = readDraft(draft, demo);
    if ('fault' in outcome) return;
    preview.mutate(outcome.input, {
      onSuccess: (found) => {
        setFound(found);
        tools.restart({
          operations: new Set(found.operations.filter((one) => one.status === 'tool').map((one) => one.key)),
          name: found.title,
          base_url:
            found.base_url ??
            (draft.kind === 'demo' ? demo?.base_url : undefined) ??
            found.servers[0]?.url ??
            '',
        });
        go('tools');
      },
    });
  }

  /** Creates the source and then sets its credential. When only the second fails, trying again does only the second. */
  async function finish(credential: Credential | null, then: 'done' | 'sign-in' = 'done') {
    const outcome = readDraft(draft, demo);
    if ('fault' in outcome) return;
    try {
      let made = source;
      if (!made) {
        made = await create.mutateAsync({
          kind: 'openapi',
          name: name.trim(),
          input: outcome.input,
          base_url: base_url.trim(),
          operations: [...chosen],
        });
        setSource(made);
      }
      if (credential) {
        const saved = await setCredential.mutateAsync({ id: made.id, credential });
        setTested(saved.state);
        // A refused credential can be corrected here.
        if (saved.state.state !== 'works') return;
      }
      if (then === 'done') go('done', true);
      else {
        await navigate({
          to: '/w/$ws/sources/$id',
          params: { ws: workspace.slug, id: made.id },
          search: { tab: 'credential' },
          ignoreBlocker: true,
        });
      }
    } catch {
      // Both mutations keep their error, and the step shows it.
    }
  }

  return (
    <Page title={title} back={back} lede="OpenAPI 3.0 or 3.1. Preview the tools before anything is saved.">
      <Steps names={['Document', 'Tools', 'Credential', 'Done']} current={order.indexOf(step)} />
      <div ref={top} tabIndex={-1} className={classes.top}>
        {step === 'document' && (
          <Stack gap="lg">
            <Panel title="OpenAPI document">
              <form ref={form.ref} onSubmit={form.onSubmit(read)} noValidate>
                <DocumentInputFields
                  draft={draft}
                  onChange={form.setValues}
                  demo={demo}
                  fault={form.errors.document}
                />
                <Stack gap="md" mt="lg">
                  {preview.error && <DocumentRefused error={preview.error} />}
                  <div>
                    <Button type="submit" loading={preview.isPending}>
                      Preview tools
                    </Button>
                  </div>
                </Stack>
              </form>
            </Panel>
          </Stack>
        )}
        {step === 'tools' && found && (
          <ToolsStep
            preview={found}
            form={tools}
            onBack={() => go('document')}
            onNext={() => go('credential')}
          />
        )}
        {step === 'credential' && found && (
          <Stack gap="lg">
            {source && setCredential.error && (
              <Alert color="yellow" data-tone="yellow" title="The source was created">
                “{source.name}” was created with {source.tool_count} tools. Only its credential is missing.
              </Alert>
            )}
            <Panel
              title={`Credential for ${name}`}
              note="Portolan sends it with every call. Encrypted at rest. It can’t be viewed again."
            >
              <CredentialForm
                hints={found.security}
                known={draft.kind === 'demo' ? demo?.api_key : undefined}
                submitLabel="Save and test"
                pending={create.isPending || setCredential.isPending}
                error={create.error ?? setCredential.error}
                failed={source ? 'The credential was not saved' : 'The source was not created'}
                guarded={false}
                signIn={
                  <>
                    <Text size="sm">
                      Users connect accounts at the service, and calls use them. The source is created first;
                      its page then asks for the authorization server and shows the redirect URI to register.
                    </Text>
                    <Group gap="sm">
                      <Button onClick={() => void finish(null, 'sign-in')} loading={create.isPending}>
                        {source ? 'Set up sign-in' : 'Create source and set up sign-in'}
                      </Button>
                      <Button variant="default" onClick={() => go('tools')} disabled={source !== undefined}>
                        Back
                      </Button>
                    </Group>
                  </>
                }
                onSubmit={(credential) => void finish(credential)}
                extra={
                  <>
                    {tested ? (
                      <Button variant="default" onClick={() => go('done', true)}>
                        Continue
                      </Button>
                    ) : (
                      <>
                        <Button variant="default" onClick={() => go('tools')} disabled={source !== undefined}>
                          Back
                        </Button>
                        <Button variant="subtle" onClick={() => void finish(null)} loading={create.isPending}>
                          {found.security.length === 0 ? 'Create without a credential' : 'Skip for now'}
                        </Button>
                      </>
                    )}
                    {tested && !setCredential.isPending && <TestResult state={tested} />}
                  </>
                }
              />
            </Panel>
          </Stack>
        )}
        {step === 'done' && source && (
          <Panel>
            <Empty
              icon={<IconAnchor size={24} />}
              title={`${source.name} was imported`}
              actions={
                <>
                  <LinkButton
                    to="/w/$ws/servers/new"
                    params={{ ws: workspace.slug }}
                    search={{ source: source.id }}
                  >
                    Publish as a server
                  </LinkButton>
                  <LinkButton
                    to="/w/$ws/sources/$id"
                    params={{ ws: workspace.slug, id: source.id }}
                    variant="default"
                  >
                    View tools
                  </LinkButton>
                </>
              }
            >
              {tested?.state === 'works' && 'The API accepts the credential. '}
              {chosen.size} {chosen.size === 1 ? 'tool is' : 'tools are'} enabled. Publish them as a server so
              that AI clients can connect.
            </Empty>
          </Panel>
        )}
      </div>
    </Page>
  );
}

/** The step that can be shown: an address may name one whose beginnings are gone. */
function stepOf(
  wanted: string | undefined,
  found: ImportPreview | undefined,
  source: Source | undefined,
): Step {
  const step = order.find((one) => one === wanted) ?? 'document';
  if (step === 'done') return source ? 'done' : 'document';
  // Once the source exists, only its credential is left to be set.
  if (source) return found ? 'credential' : 'done';
  return found ? step : 'document';
}
