import { Button, Group, NumberInput, Select, Stack, Textarea, TextInput } from '@mantine/core';
import type { ApiScope } from '../../../api/access-tokens';
import type { Schemas } from '../../../api/http';
import {
  type PipelineTrust,
  type TrustedPipeline,
  useSaveTrustedPipeline,
} from '../../../api/trusted-pipelines';
import { ScopeChoice } from '../../../components/access-tokens';
import { Dialog } from '../../../components/dialog';
import { useFields } from '../../../components/form';
import { Submit } from '../../../components/submit';
import { toastDone } from '../../../components/toast';

interface Props {
  ws: string;
  /** The one to change; undefined for a new one. */
  pipeline: TrustedPipeline | undefined;
  opened: boolean;
  close: () => void;
}

/** CI systems whose issuer is the same for all their customers, with the subject of a job of the branch `main`. */
const systems = [
  {
    value: 'https://token.actions.githubusercontent.com',
    label: 'GitHub Actions',
    subject: 'repo:owner/repository:ref:refs/heads/main',
  },
  {
    value: 'https://gitlab.com',
    label: 'GitLab.com',
    subject: 'project_path:group/project:ref_type:branch:ref:main',
  },
];
const other = 'other';

/** `name = value` on each line; undefined if a line is no claim. */
function readClaims(text: string): Record<string, string> | undefined {
  const claims: Record<string, string> = {};
  for (const line of text.split('\n').map((one) => one.trim())) {
    if (line === '') continue;
    const [name = '', ...rest] = line.split('=');
    const value = rest.join('=').trim();
    if (name.trim() === '' || value === '') return undefined;
    claims[name.trim()] = value;
  }
  return claims;
}

const claimsText = (claims: Record<string, string>) =>
  Object.entries(claims)
    .map(([name, value]) => `${name} = ${value}`)
    .join('\n');

/** The form of a trusted pipeline. */
export function PipelineDialog({ opened, close, ...rest }: Props) {
  return (
    <Dialog
      opened={opened}
      onClose={close}
      title={rest.pipeline ? 'Change a trusted pipeline' : 'Trust a pipeline'}
    >
      {opened && <PipelineForm close={close} {...rest} />}
    </Dialog>
  );
}

function PipelineForm({ ws, pipeline, close }: Omit<Props, 'opened'>) {
  const save = useSaveTrustedPipeline(ws, pipeline?.id);
  const form = useFields({
    initialValues: {
      name: pipeline?.name ?? '',
      issuer: pipeline?.issuer ?? systems[0]?.value ?? '',
      subject: pipeline?.subject ?? '',
      claims: claimsText(pipeline?.claims ?? {}),
      audience: pipeline?.audience ?? '',
      role: pipeline?.role ?? ('developer' as string),
      scopes: (pipeline?.scopes ?? []) as string[],
      minutes: (pipeline?.minutes ?? 15) as number | string,
    },
    validate: ({ name, issuer, subject, claims, scopes }) => ({
      ...(name.trim() === '' && { name: 'Give it a name.' }),
      ...(!URL.canParse(issuer.trim()) && { issuer: 'Enter an absolute URL, beginning with https://.' }),
      ...(subject.trim() === '' && { subject: 'Enter the subject of the job.' }),
      ...(readClaims(claims) === undefined && {
        claims: 'Write each claim on a line of its own, as name = value.',
      }),
      ...(scopes.length === 0 && { scopes: 'Choose at least one scope.' }),
    }),
    eager: ['claims'],
    error: save.error,
  });
  const system = systems.find(({ value }) => value === form.values.issuer);

  function send({ audience, claims, minutes, name, issuer, subject, role, scopes }: typeof form.values) {
    const body: PipelineTrust = {
      name: name.trim(),
      issuer: issuer.trim(),
      subject: subject.trim(),
      claims: readClaims(claims) ?? {},
      role: role as Schemas['Role'],
      scopes: scopes as ApiScope[],
      minutes: Number(minutes) || 0,
      ...(audience.trim() !== '' && { audience: audience.trim() }),
    };
    save.mutate(body, {
      onSuccess: () => {
        toastDone(pipeline ? `${body.name} was changed.` : `${body.name} is trusted.`);
        close();
      },
    });
  }

  return (
    <form ref={form.ref} onSubmit={form.onSubmit(send)} noValidate>
      <Stack gap="md">
        <TextInput
          label="Name"
          description="Its tokens have this name too."
          withAsterisk
          maxLength={80}
          data-autofocus
          {...form.getInputProps('name')}
        />
        <Select
          label="CI system"
          data={[...systems, { value: other, label: 'Another issuer' }]}
          value={system?.value ?? other}
          allowDeselect={false}
          onChange={(next) => form.setFieldValue('issuer', next === other ? '' : (next ?? ''))}
        />
        <TextInput
          label="Issuer"
          description="iss of the job’s JWT. Its metadata and keys are fetched when you save."
          withAsterisk
          inputMode="url"
          autoComplete="off"
          placeholder="https://gitlab.example.com"
          {...form.getInputProps('issuer')}
        />
        <TextInput
          label="Subject"
          description="sub of the job’s JWT. * stands for any text between two colons, at the end for all the rest."
          withAsterisk
          autoComplete="off"
          placeholder={system?.subject ?? 'repo:owner/repository:*'}
          {...form.getInputProps('subject')}
        />
        <Textarea
          label="Further claims"
          description="That the JWT must have, one a line."
          placeholder="environment = production"
          autosize
          minRows={1}
          {...form.getInputProps('claims')}
        />
        <TextInput
          label="Audience"
          description="aud of the JWT. Leave empty for the address of this installation."
          autoComplete="off"
          placeholder={window.location.origin}
          {...form.getInputProps('audience')}
        />
        <Select
          label="Role"
          description="Its tokens act as the workspace, with this role."
          data={['viewer', 'member', 'developer', 'admin']}
          allowDeselect={false}
          {...form.getInputProps('role')}
        />
        <ScopeChoice {...form.getInputProps('scopes')} />
        <NumberInput
          label="Minutes until a token expires"
          description="Maximum 60."
          min={1}
          max={60}
          {...form.getInputProps('minutes')}
        />
        <Submit error={form.refusal} title="The pipeline is not trusted" fault={form.fault}>
          <Group>
            <Button type="submit" loading={save.isPending}>
              {pipeline ? 'Save' : 'Trust pipeline'}
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
