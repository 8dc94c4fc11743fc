import { Anchor, Button, Group, NumberInput } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { type AlertRule, type AlertThreshold, useChangeRule } from '../../api/alerts';
import { useFields } from '../../components/form';
import { FormDialog } from '../../components/form-dialog';
import { toastDone } from '../../components/toast';

type Name = AlertThreshold['name'];
type Drafts = Partial<Record<Name, string | number>>;

const fields: Record<Name, { label: string; suffix: string }> = {
  percent: { label: 'Threshold', suffix: ' %' },
  minutes: { label: 'Minutes that count', suffix: ' minutes' },
  min_calls: { label: 'Fewest calls', suffix: ' calls' },
  days: { label: 'Days before the end', suffix: ' days' },
};

const meanings: Record<Name, string> = {
  percent: 'The rule fires at this share.',
  minutes: 'Calls of the last minutes count. The alert ends when the share was below for as long.',
  min_calls: 'With fewer calls the rule does not fire.',
  days: 'The rule fires once for each end of a credential.',
};

const shown = (rule: AlertRule, name: Name) =>
  rule.thresholds.find((one) => one.name === name)?.value.toLocaleString();

/** The thresholds of a rule as a sentence; undefined for a rule without. */
export function thresholdText(rule: AlertRule): string | undefined {
  const at = (name: Name) => shown(rule, name);
  switch (rule.name) {
    case 'error_rate':
      return `Fires at ${at('percent')} % failed calls of a server in ${at('minutes')} minutes, from ${at('min_calls')} calls.`;
    case 'quota_near':
      return `Fires at ${at('percent')} % of the limit.`;
    case 'credential_expiring':
      return `Fires ${at('days')} days before.`;
    default:
      return undefined;
  }
}

/** The present counts of a rule over calls, each with a link to the calls behind it. */
export function PresentCounts({ ws, rule }: { ws: string; rule: AlertRule }) {
  const navigate = useNavigate();
  if (rule.name === 'error_rate' && rule.counts.length === 0) {
    return <>No calls in the last {shown(rule, 'minutes')} minutes.</>;
  }
  if (rule.counts.length === 0) return null;
  return (
    <>
      Now:{' '}
      {rule.counts.map((count, place) => {
        const href = `/w/${ws}${count.page}`;
        const percent = Math.floor((100 * count.part) / count.whole);
        const what = rule.name === 'error_rate' ? ' calls failed' : '';
        return (
          <span key={count.name}>
            {place > 0 && ', '}
            <Anchor
              href={href}
              fz="inherit"
              underline="always"
              onClick={(event) => {
                if (event.ctrlKey || event.metaKey || event.shiftKey) return;
                event.preventDefault();
                void navigate({ href });
              }}
            >
              {`${count.name}: ${count.part.toLocaleString()} of ${count.whole.toLocaleString()}${what} (${percent} %)`}
            </Anchor>
          </span>
        );
      })}
    </>
  );
}

function faultOf(threshold: AlertThreshold, drafts: Drafts): string | undefined {
  const value = drafts[threshold.name];
  const { minimum, maximum } = threshold;
  const fits = value !== '' && Number.isInteger(Number(value));
  if (fits && Number(value) >= minimum && Number(value) <= maximum) return undefined;
  return `Enter a whole number from ${minimum.toLocaleString()} to ${maximum.toLocaleString()}.`;
}

const asDrafts = (rule: AlertRule, of: 'value' | 'default'): Drafts =>
  Object.fromEntries(rule.thresholds.map((one) => [one.name, one[of]]));

/** A button that opens the thresholds of a rule. */
export function Thresholds({ ws, rule }: { ws: string; rule: AlertRule }) {
  const change = useChangeRule(ws);
  const [opened, setOpened] = useState(false);
  const form = useFields<Drafts>({
    initialValues: asDrafts(rule, 'value'),
    validate: (drafts) =>
      Object.fromEntries(
        rule.thresholds.flatMap((one) => {
          const fault = faultOf(one, drafts);
          return fault ? [[one.name, fault]] : [];
        }),
      ),
    error: change.error,
  });

  function open() {
    change.reset();
    form.restart(asDrafts(rule, 'value'));
    setOpened(true);
  }

  /** A value that is the default follows later defaults. */
  function send(drafts: Drafts) {
    const body = rule.thresholds.map((one) => {
      const value = Number(drafts[one.name]);
      return [one.name, value === one.default ? null : value];
    });
    change.mutate(
      { rule: rule.name, ...Object.fromEntries(body) },
      {
        onSuccess: () => {
          toastDone(`Thresholds saved: ${rule.title}.`);
          setOpened(false);
        },
      },
    );
  }

  return (
    <>
      <Button
        size="compact-sm"
        variant="subtle"
        disabled={!rule.enabled}
        aria-label={`Thresholds: ${rule.title}`}
        onClick={open}
      >
        Thresholds
      </Button>
      <FormDialog
        title={`Thresholds: ${rule.title}`}
        opened={opened}
        leave={() => setOpened(false)}
        form={{ ref: form.ref, onSubmit: form.onSubmit(send) }}
        busy={change.isPending}
        word="Save"
        ready
        refusal={form.refusal}
        failed="The thresholds were not saved"
      >
        {rule.thresholds.map((one) => (
          <NumberInput
            key={one.name}
            label={fields[one.name].label}
            description={`${meanings[one.name]} Default: ${one.default.toLocaleString()}.`}
            suffix={fields[one.name].suffix}
            min={one.minimum}
            max={one.maximum}
            clampBehavior="none"
            allowDecimal={false}
            allowNegative={false}
            inputMode="numeric"
            autoComplete="off"
            {...form.getInputProps(one.name)}
          />
        ))}
        <Group>
          <Button
            variant="subtle"
            size="compact-sm"
            onClick={() => form.setValues(asDrafts(rule, 'default'))}
          >
            Use defaults
          </Button>
        </Group>
      </FormDialog>
    </>
  );
}
