import { Button, Group, Menu, Switch } from '@mantine/core';
import { IconBell, IconBellOff } from '@tabler/icons-react';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { createFileRoute, useNavigate } from '@tanstack/react-router';
import {
  type Alert,
  type AlertRule,
  type AlertRuleChange,
  alertRulesQuery,
  alertsQuery,
  useChangeRule,
  useReadAlert,
} from '../../api/alerts';
import { Ago } from '../../components/ago';
import { Status, Tag } from '../../components/badges';
import { ReadAll } from '../../components/bell';
import { TextLink } from '../../components/link-button';
import { Empty, Loaded, Page, Panel } from '../../components/page';
import { Restricted } from '../../components/restricted';
import { cell, LoadMore, Table } from '../../components/table';
import { toastFailed } from '../../components/toast';
import { useSession } from '../../session';
import { formatDateTime } from '../../time';
import { PresentCounts, Thresholds, thresholdText } from './-alert-thresholds';

export const Route = createFileRoute('/w/$ws/alerts')({
  component: () => (
    <Restricted needs="administer" title="Alerts">
      <AlertsPage />
    </Restricted>
  ),
});

function AlertsPage() {
  const { workspace } = useSession();
  const ws = workspace.slug;
  const alerts = useInfiniteQuery(alertsQuery(ws));
  return (
    <Page
      title="Alerts"
      help="webhooks#alerts"
      lede={
        <>
          Admins and owners see alerts here and by mail.{' '}
          <TextLink underline="always" to="/w/$ws/webhooks" params={{ ws }}>
            Webhooks
          </TextLink>{' '}
          send them to Slack and to your own endpoints.
        </>
      }
      actions={<ReadAll ws={ws} />}
    >
      <Panel title="Alerts" flush>
        <Loaded query={alerts} lines={6}>
          {(data) => {
            const items = data.pages.flatMap((page) => page.items);
            return items.length === 0 ? (
              <Empty icon={<IconBell size={24} />} title="No alerts">
                Nothing needed your attention in the last 30 days.
              </Empty>
            ) : (
              <>
                <AlertTable ws={ws} items={items} />
                <LoadMore query={alerts} />
              </>
            );
          }}
        </Loaded>
      </Panel>
      <Rules ws={ws} />
    </Page>
  );
}

const severities = {
  info: undefined,
  warning: 'warn',
  critical: 'bad',
} as const satisfies Record<Alert['severity'], 'warn' | 'bad' | undefined>;

function AlertTable({ ws, items }: { ws: string; items: Alert[] }) {
  const read = useReadAlert(ws);
  const navigate = useNavigate();
  return (
    <Table
      label="Alerts"
      head={
        <>
          <th>Alert</th>
          <th>State</th>
          <th>Last seen</th>
          <th>
            <span className="visually-hidden">Actions</span>
          </th>
        </>
      }
    >
      {items.map((alert) => (
        <tr key={alert.id}>
          <td data-wide data-grow>
            <a
              href={`/w/${ws}${alert.page}`}
              className={cell.main}
              onClick={(event) => {
                if (alert.unread) read.mutate(alert.id);
                if (event.ctrlKey || event.metaKey || event.shiftKey) return;
                event.preventDefault();
                void navigate({ href: `/w/${ws}${alert.page}` });
              }}
            >
              {alert.text}
            </a>
            <div className={cell.sub}>
              <Tag tone={severities[alert.severity]}>{alert.severity}</Tag>{' '}
              {alert.count > 1 && `${alert.count} times since ${formatDateTime(alert.fired_at)}`}
            </div>
          </td>
          <td data-label="State">
            {alert.state === 'firing' ? (
              <Status tone={alert.severity === 'info' ? 'quiet' : 'bad'}>Firing</Status>
            ) : (
              <Status tone="good">Resolved</Status>
            )}
          </td>
          <td data-label="Last seen">
            <Ago at={alert.last_at} />
          </td>
          <td data-align="right">
            {alert.unread && (
              <Button
                variant="subtle"
                size="compact-sm"
                aria-label={`Mark as read: ${alert.text}`}
                onClick={() => read.mutate(alert.id)}
              >
                Mark as read
              </Button>
            )}
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Rules({ ws }: { ws: string }) {
  const rules = useQuery(alertRulesQuery(ws));
  const change = useChangeRule(ws);
  return (
    <Panel
      title="Rules"
      note="A muted rule sends no mail and no message; its alerts stay in this list."
      flush
    >
      <Loaded query={rules}>
        {({ items }) => (
          <Table
            label="Rules"
            head={
              <>
                <th>Rule</th>
                <th>On</th>
                <th>Mail</th>
                <th>
                  <span className="visually-hidden">Thresholds and mute</span>
                </th>
              </>
            }
          >
            {items.map((rule) => (
              <RuleRow
                key={rule.name}
                ws={ws}
                rule={rule}
                change={(next) => change.mutate({ rule: rule.name, ...next }, { onError: toastFailed })}
              />
            ))}
          </Table>
        )}
      </Loaded>
    </Panel>
  );
}

const mutes = [
  { hours: 4, label: 'For 4 hours' },
  { hours: 24, label: 'For a day' },
  { hours: 168, label: 'For a week' },
];

function RuleRow({
  ws,
  rule,
  change,
}: {
  ws: string;
  rule: AlertRule;
  change: (change: AlertRuleChange) => void;
}) {
  const text = thresholdText(rule);
  return (
    <tr>
      <td data-wide data-grow>
        <span className={cell.main}>{rule.title}</span>
        <div className={cell.sub}>
          {rule.description}
          {text && ` ${text}`}
          {rule.muted_until && ` Muted until ${formatDateTime(rule.muted_until)}.`}
        </div>
        {rule.enabled && (
          <div className={cell.sub}>
            <PresentCounts ws={ws} rule={rule} />
          </div>
        )}
      </td>
      <td data-label="On">
        <Switch
          checked={rule.enabled}
          aria-label={`${rule.title}: on`}
          onChange={(event) => change({ enabled: event.currentTarget.checked })}
        />
      </td>
      <td data-label="Mail">
        <Switch
          checked={rule.mail}
          disabled={!rule.enabled}
          aria-label={`${rule.title}: mail`}
          onChange={(event) => change({ mail: event.currentTarget.checked })}
        />
      </td>
      <td data-align="right">
        <Group justify="flex-end" gap="xs">
          {rule.thresholds.length > 0 && <Thresholds ws={ws} rule={rule} />}
          {rule.muted_until ? (
            <Button size="compact-sm" variant="default" onClick={() => change({ mute_hours: null })}>
              End mute
            </Button>
          ) : (
            <Menu
              withInitialFocusPlaceholder={false}
              portalProps={{ target: '#menus' }}
              position="bottom-end"
            >
              <Menu.Target>
                <Button
                  size="compact-sm"
                  variant="subtle"
                  disabled={!rule.enabled}
                  leftSection={<IconBellOff size={15} />}
                  aria-label={`Mute ${rule.title}`}
                >
                  Mute
                </Button>
              </Menu.Target>
              <Menu.Dropdown>
                {mutes.map(({ hours, label }) => (
                  <Menu.Item key={hours} onClick={() => change({ mute_hours: hours })}>
                    {label}
                  </Menu.Item>
                ))}
              </Menu.Dropdown>
            </Menu>
          )}
        </Group>
      </td>
    </tr>
  );
}
