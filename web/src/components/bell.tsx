import { Button, Menu, UnstyledButton } from '@mantine/core';
import { IconBell } from '@tabler/icons-react';
import { useNavigate } from '@tanstack/react-router';
import { type Alert, useBell, useReadAlert, useReadAllAlerts } from '../api/alerts';
import { useMay, useSession } from '../session';
import { Ago } from './ago';
import classes from './bell.module.css';

/** Alerts in the menu. */
const shown = 6;

/** The menu of alerts for admins and owners: the number of unread alerts, and the newest ones with their pages. */
export function Bell() {
  return useMay('administer') ? <AlertMenu /> : null;
}

function AlertMenu() {
  const { workspace } = useSession();
  const ws = workspace.slug;
  const navigate = useNavigate();
  const alerts = useBell(ws);
  const read = useReadAlert(ws);
  const readAll = useReadAllAlerts(ws);
  const unread = alerts.data?.unread ?? 0;
  const items = alerts.data?.items.slice(0, shown) ?? [];
  const open = (alert: Alert) => {
    if (alert.unread) read.mutate(alert.id);
    // The API names a page of this console.
    void navigate({ href: `/w/${ws}${alert.page}` });
  };
  return (
    <Menu
      withInitialFocusPlaceholder={false}
      portalProps={{ target: '#menus' }}
      width={320}
      position="bottom-start"
      shadow="md"
    >
      <Menu.Target>
        <UnstyledButton
          className={classes.bell}
          aria-label={unread > 0 ? `Alerts, ${unread} unread` : 'Alerts, none unread'}
        >
          <IconBell size={18} stroke={1.7} aria-hidden />
          {unread > 0 && (
            <span className={classes.count} aria-hidden>
              {unread > 99 ? '99+' : unread}
            </span>
          )}
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>Alerts</Menu.Label>
        {alerts.error && <p className={classes.empty}>Alerts can’t be loaded at the moment.</p>}
        {alerts.data && items.length === 0 && <p className={classes.empty}>No alerts in the last 30 days.</p>}
        {items.map((alert) => (
          <Menu.Item key={alert.id} onClick={() => open(alert)}>
            <span className={classes.text} data-unread={alert.unread || undefined}>
              {alert.unread && <span className="visually-hidden">Unread: </span>}
              {alert.state === 'resolved' && 'Resolved: '}
              {alert.text}
            </span>
            <span className={classes.when}>
              <Ago at={alert.last_at} />
            </span>
          </Menu.Item>
        ))}
        <Menu.Divider />
        {unread > 0 && (
          <Menu.Item closeMenuOnClick={false} onClick={() => readAll.mutate()}>
            Mark all as read
          </Menu.Item>
        )}
        <Menu.Item onClick={() => void navigate({ to: '/w/$ws/alerts', params: { ws } })}>
          All alerts and settings
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

/** For the page of alerts: marks all as read. */
export function ReadAll({ ws }: { ws: string }) {
  const alerts = useBell(ws);
  const readAll = useReadAllAlerts(ws);
  if (!alerts.data?.unread) return null;
  return (
    <Button variant="default" loading={readAll.isPending} onClick={() => readAll.mutate()}>
      Mark all as read
    </Button>
  );
}
