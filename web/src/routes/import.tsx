import { Alert, Autocomplete, Button, Group, Stack, Tabs, Text, TextInput } from '@mantine/core';
import { IconAnchor } from '@tabler/icons-react';
import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { ApiError } from '../api/http';
import {
  type Credential,
  type ImportPreview,
  type Source,
  useCreateSource,
  usePreviewImport,
  useSetCredential,
} from '../api/sources';
import { CredentialForm } from '../components/credential-form';
import { type DocumentDraft, DocumentInputFields, emptyDraft, readDraft } from '../components/document-input';
import { LinkButton } from '../components/link-button';
import { LeftOut, Operations } from '../components/operations';
import { Empty, Page, Panel } from '../components/page';
import { Problems, problemsOf } from '../components/problems';
import { Steps } from '../components/steps';
import { useSession } from '../session';

type Step = 'document' | 'tools' | 'credential' | 'done';
const order: Step[] = ['document', 'tools', 'credential', 'done'];

/** From a document to a source with its tools. Nothing is stored before the last step but one. */
export function ImportPage() {
  const { me, workspace } = useSession();
  const navigate = useNavigate();
  const [step, setStep] = useState<Step>('document');
  const [draft, setDraft] = useState<DocumentDraft>(() => emptyDraft(me.demo_api ? 'demo' : 'url'));
  const [fault, setFault] = useState<string | null>(null);
  const [chosen, setChosen] = useState<Set<string>>(new Set());
  const [name, setName] = useState('');
  const [baseUrl, setBaseUrl] = useState('');
  const [source, setSource] = useState<Source | null>(null);
  const preview = usePreviewImport(workspace.slug);
  const create = useCreateSource(workspace.slug);
  const setCredential = useSetCredential(workspace.slug);
  const top = useRef<HTMLDivElement>(null);
  const shownStep = useRef<Step>('document');
  const document_ = preview.data;

  // The next step begins at its top, and the keyboard is there too.
  useEffect(() => {
    if (shownStep.current === step) return;
    shownStep.current = step;
    window.scrollTo({ top: 0 });
    top.current?.focus({ preventScroll: true });
  }, [step]);

  function read(event: FormEvent) {
    event.preventDefault();
    const outcome = readDraft(draft, me.demo_api ?? undefined);
    if ('fault' in outcome) return setFault(outcome.fault);
    setFault(null);
    preview.mutate(outcome.input, {
      onSuccess: (found) => {
        setChosen(new Set(found.operations.filter((one) => one.status === 'tool').map((one) => one.key)));
        setName(found.title);
        setBaseUrl(
          found.base_url ??
            (draft.kind === 'demo' ? me.demo_api?.base_url : undefined) ??
            found.servers[0]?.url ??
            '',
        );
        setStep('tools');
      },
    });
  }

  /** Creates the source and then sets its credential. When only the second fails, trying again does only the second. */
  async function finish(credential: Credential | null, then: 'done' | 'sign-in' = 'done') {
    const outcome = readDraft(draft, me.demo_api ?? undefined);
    if ('fault' in outcome) return;
    try {
      let made = source;
      if (!made) {
        made = await create.mutateAsync({
          kind: 'openapi',
          name: name.trim(),
          input: outcome.input,
          base_url: baseUrl.trim(),
          operations: [...chosen],
        });
        setSource(made);
      }
      if (credential) await setCredential.mutateAsync({ id: made.id, credential });
      if (then === 'done') setStep('done');
      else {
        await navigate({
          to: '/w/$ws/sources/$id',
          params: { ws: workspace.slug, id: made.id },
          search: { tab: 'credential' },
        });
      }
    } catch {
      // Both mutations keep their error, and the step shows it.
    }
  }

  return (
    <Page
      title="Import an API"
      back={{ label: 'Sources', to: '/w/$ws/sources', params: { ws: workspace.slug } }}
      lede="OpenAPI 3.0 or 3.1. You see what each operation becomes before anything is stored."
    >
      <Steps names={['Document', 'Tools', 'Credential', 'Done']} current={order.indexOf(step)} />
      <div ref={top} tabIndex={-1} style={{ outline: 'none' }}>
        {step === 'document' && (
          <Stack gap="lg">
            {preview.error && <Refused error={preview.error} />}
            <Panel title="Where is the document?">
              <form onSubmit={read} noValidate>
                <DocumentInputFields
                  draft={draft}
                  onChange={setDraft}
                  demo={me.demo_api ?? undefined}
                  fault={fault}
                />
                <Group mt="lg">
                  <Button type="submit" loading={preview.isPending}>
                    Read the document
                  </Button>
                </Group>
              </form>
            </Panel>
          </Stack>
        )}
        {step === 'tools' && document_ && (
          <ToolsStep
            preview={document_}
            name={name}
            onName={setName}
            baseUrl={baseUrl}
            onBaseUrl={setBaseUrl}
            chosen={chosen}
            onChosen={setChosen}
            onBack={() => setStep('document')}
            onNext={() => setStep('credential')}
          />
        )}
        {step === 'credential' && document_ && (
          <Stack gap="lg">
            {create.error instanceof ApiError && <Refused error={create.error} />}
            {source && setCredential.error && (
              <Alert color="yellow" data-tone="yellow" title="The source exists already">
                “{source.name}” was created with {source.tool_count} tools. Only its credential is missing.
              </Alert>
            )}
            <Panel
              title={`The credential of ${name}`}
              note="Portolan sends it with every call. It is sealed at rest; neither this console nor any client sees it again."
            >
              <CredentialForm
                hints={document_.security}
                note={draft.kind === 'demo' ? me.demo_api?.credential_hint : undefined}
                submitLabel={source ? 'Save credential' : 'Create source'}
                pending={create.isPending || setCredential.isPending}
                error={setCredential.error}
                signIn={
                  <>
                    <Text size="sm">
                      People connect accounts at the service, and calls act as them. The source is created
                      first: its page then asks for the authorization server, and shows the address to
                      register there.
                    </Text>
                    <Group gap="sm">
                      <Button onClick={() => void finish(null, 'sign-in')} loading={create.isPending}>
                        {source ? 'Set up the sign-in' : 'Create source and set up the sign-in'}
                      </Button>
                      <Button variant="default" onClick={() => setStep('tools')} disabled={source !== null}>
                        Back
                      </Button>
                    </Group>
                  </>
                }
                onSubmit={(credential) => void finish(credential)}
                extra={
                  <>
                    <Button variant="default" onClick={() => setStep('tools')} disabled={source !== null}>
                      Back
                    </Button>
                    <Button variant="subtle" onClick={() => void finish(null)} loading={create.isPending}>
                      {document_.security.length === 0 ? 'Create without a credential' : 'Set it later'}
                    </Button>
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
              title={`${source.name} is in your workspace`}
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
                    Look at its tools
                  </LinkButton>
                </>
              }
            >
              {chosen.size} {chosen.size === 1 ? 'tool is' : 'tools are'} enabled. Publish a server with them,
              and AI clients can connect.
            </Empty>
          </Panel>
        )}
      </div>
    </Page>
  );
}

/** Why the document was refused, with the places in it. */
function Refused({ error }: { error: Error }) {
  const problems = problemsOf(error);
  return (
    <Alert color="red" data-tone="red" role="alert" title={error.message}>
      {problems.length > 0 && <Problems problems={problems} />}
    </Alert>
  );
}

function ToolsStep({
  preview,
  name,
  onName,
  baseUrl,
  onBaseUrl,
  chosen,
  onChosen,
  onBack,
  onNext,
}: {
  preview: ImportPreview;
  name: string;
  onName: (name: string) => void;
  baseUrl: string;
  onBaseUrl: (url: string) => void;
  chosen: Set<string>;
  onChosen: (chosen: Set<string>) => void;
  onBack: () => void;
  onNext: () => void;
}) {
  const [tried, setTried] = useState(false);
  const tools = preview.operations.filter((one) => one.status === 'tool');
  const leftOut = preview.operations.filter((one) => one.status === 'left_out');
  const badUrl = !/^https?:\/\//i.test(baseUrl) || !URL.canParse(baseUrl);
  const badName = name.trim() === '';

  function next(event: FormEvent) {
    event.preventDefault();
    setTried(true);
    if (badUrl || badName) {
      window.scrollTo({ top: 0, behavior: 'smooth' });
      return;
    }
    onNext();
  }

  return (
    <form onSubmit={next} noValidate>
      <Stack gap="lg">
        <Panel
          title={`${preview.title} ${preview.version}`}
          note={`OpenAPI ${preview.spec_version}: ${tools.length} ${tools.length === 1 ? 'tool' : 'tools'}, ${leftOut.length} left out`}
        >
          <Group grow align="flex-start" preventGrowOverflow={false} wrap="wrap">
            <TextInput
              label="Name of the source"
              value={name}
              onChange={(event) => onName(event.currentTarget.value)}
              error={tried && badName ? 'Give the source a name.' : null}
              maxLength={120}
              miw={220}
            />
            <Autocomplete
              label="Base URL"
              description="Every path is added to it"
              inputWrapperOrder={['label', 'input', 'description', 'error']}
              data={[...new Set(preview.servers.map((server) => server.url))]}
              value={baseUrl}
              onChange={onBaseUrl}
              error={tried && badUrl ? 'Give a complete URL: https://host/path.' : null}
              miw={260}
            />
          </Group>
        </Panel>
        <Panel title="What each operation becomes" flush>
          <Tabs defaultValue={tools.length > 0 ? 'tools' : 'left'} keepMounted={false}>
            <Tabs.List px="md">
              <Tabs.Tab value="tools">Tools {tools.length}</Tabs.Tab>
              <Tabs.Tab value="left">Left out {leftOut.length}</Tabs.Tab>
              <Tabs.Tab value="problems">Notes {preview.problems.length}</Tabs.Tab>
            </Tabs.List>
            <Tabs.Panel value="tools">
              <Operations operations={preview.operations} chosen={chosen} onChange={onChosen} />
            </Tabs.Panel>
            <Tabs.Panel value="left" p={leftOut.length === 0 ? 'lg' : 0}>
              {leftOut.length === 0 ? 'Every operation became a tool.' : <LeftOut operations={leftOut} />}
            </Tabs.Panel>
            <Tabs.Panel value="problems" p="lg">
              {preview.problems.length === 0 ? (
                'The document reads without a remark.'
              ) : (
                <Problems problems={preview.problems} />
              )}
            </Tabs.Panel>
          </Tabs>
        </Panel>
        <Group>
          <Button type="submit">
            Continue with {chosen.size} {chosen.size === 1 ? 'tool' : 'tools'}
          </Button>
          <Button variant="default" onClick={onBack}>
            Back
          </Button>
        </Group>
        {chosen.size === 0 && (
          <Alert color="yellow" data-tone="yellow">
            No tool is chosen. All are created disabled; you can enable them later.
          </Alert>
        )}
      </Stack>
    </form>
  );
}
