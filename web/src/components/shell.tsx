import { Burger, CloseButton, Drawer, Menu, UnstyledButton, useMantineColorScheme } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import {
  IconActivity,
  IconAnchor,
  IconBuilding,
  IconCheck,
  IconChevronDown,
  IconCompass,
  IconDeviceDesktop,
  IconFileImport,
  IconFileText,
  IconGauge,
  IconHistory,
  IconKey,
  IconLogout,
  IconMail,
  IconMessage2,
  IconMoon,
  IconPlugConnected,
  IconPlus,
  IconRoute,
  IconSelector,
  IconSettings,
  IconShieldCheck,
  IconShieldLock,
  IconSun,
  IconTool,
  IconTrash,
  IconUserCircle,
  IconUsers,
} from '@tabler/icons-react';
import { Link, useNavigate, useRouterState } from '@tanstack/react-router';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import type { Me } from '../api/me';
import { useMay, useSession } from '../session';
import { Logo } from './logo';
import classes from './shell.module.css';

// Menus open inside of a landmark, not at the end of the body.
const menuPortal = { target: '#menus' };

const roles = { owner: 'Owner', admin: 'Admin', developer: 'Developer', member: 'Member', viewer: 'Viewer' };

/** The frame of every workspace page: skip link, navigation, and the page itself. */
export function Shell({ children }: { children: ReactNode }) {
  const [opened, { toggle, close }] = useDisclosure(false);
  const path = useRouterState({ select: (state) => state.location.pathname });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the drawer closes when the path changes
  useEffect(close, [path]);
  return (
    <>
      <a href="#content" className={classes.skip}>
        Skip to content
      </a>
      <div className={classes.shell}>
        <header className={classes.topbar}>
          <Brand />
          <Burger
            opened={opened}
            onClick={toggle}
            size="sm"
            color="#fff"
            aria-label={opened ? 'Close the menu' : 'Open the menu'}
            aria-expanded={opened}
          />
        </header>
        <Drawer.Root
          lockScroll={false}
          opened={opened}
          onClose={close}
          size={288}
          padding={0}
          className={classes.drawer}
        >
          <Drawer.Overlay />
          <Drawer.Content aria-label="Menu" data-scroll-lock>
            <Sidebar
              closer={
                <CloseButton onClick={close} variant="transparent" c="white" aria-label="Close the menu" />
              }
            />
          </Drawer.Content>
        </Drawer.Root>
        <Sidebar />
        <main id="content" tabIndex={-1} className={classes.main}>
          {children}
          <div id="menus" />
        </main>
      </div>
    </>
  );
}

function Brand() {
  const { workspace } = useSession();
  return (
    <Link to="/w/$ws" params={{ ws: workspace.slug }} className={classes.brand}>
      <Logo size={34} />
      <span className={classes.brandName}>Portolan</span>
    </Link>
  );
}

function Sidebar({ closer }: { closer?: ReactNode }) {
  const { me, workspace } = useSession();
  const administers = useMay('administer');
  const params = { ws: workspace.slug };
  const nav = useRef<HTMLElement>(null);
  const path = useRouterState({ select: (state) => state.location.pathname });
  // On a low screen the list scrolls: the page that is shown is in sight.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the active link changes with the path
  useEffect(() => {
    nav.current?.querySelector('[data-status="active"]')?.scrollIntoView?.({ block: 'nearest' });
  }, [path]);
  return (
    <aside className={classes.sidebar}>
      <div className={classes.head}>
        <Brand />
        {closer}
      </div>
      <WorkspaceMenu />
      <nav ref={nav} className={classes.nav} aria-label="Workspace">
        <Link to="/w/$ws" params={params} activeOptions={{ exact: true }} className={classes.link}>
          <IconCompass size={18} stroke={1.7} aria-hidden /> Overview
        </Link>
        <Link to="/w/$ws/sources" params={params} className={classes.link}>
          <IconFileImport size={18} stroke={1.7} aria-hidden /> Sources
        </Link>
        <Link to="/w/$ws/tools" params={params} className={classes.link}>
          <IconTool size={18} stroke={1.7} aria-hidden /> Tools
        </Link>
        <Link to="/w/$ws/prompts" params={params} className={classes.link}>
          <IconMessage2 size={18} stroke={1.7} aria-hidden /> Prompts
        </Link>
        <Link to="/w/$ws/resources" params={params} className={classes.link}>
          <IconFileText size={18} stroke={1.7} aria-hidden /> Resources
        </Link>
        <Link to="/w/$ws/servers" params={params} className={classes.link}>
          <IconAnchor size={18} stroke={1.7} aria-hidden /> Servers
        </Link>
        <Link to="/w/$ws/calls" params={params} className={classes.link}>
          <IconActivity size={18} stroke={1.7} aria-hidden /> Calls
        </Link>
        <NavGroup title="Access" paths={['members', 'apps', 'clients', 'connects', 'keys']}>
          <Link to="/w/$ws/members" params={params} className={classes.link}>
            <IconUsers size={18} stroke={1.7} aria-hidden /> Members
          </Link>
          <Link to="/w/$ws/apps" params={params} className={classes.link}>
            <IconPlugConnected size={18} stroke={1.7} aria-hidden /> Connected apps
          </Link>
          {administers && (
            <>
              <Link to="/w/$ws/clients" params={params} className={classes.link}>
                <IconShieldCheck size={18} stroke={1.7} aria-hidden /> AI clients
              </Link>
              <Link to="/w/$ws/connects" params={params} className={classes.link}>
                <IconRoute size={18} stroke={1.7} aria-hidden /> Connections
              </Link>
            </>
          )}
          <Link to="/w/$ws/keys" params={params} className={classes.link}>
            <IconKey size={18} stroke={1.7} aria-hidden /> Keys
          </Link>
        </NavGroup>
        <NavGroup title="Workspace" paths={['limits', 'security', 'single-sign-on', 'audit', 'settings']}>
          <Link to="/w/$ws/limits" params={params} className={classes.link}>
            <IconGauge size={18} stroke={1.7} aria-hidden /> Limits
          </Link>
          {administers && (
            <>
              <Link to="/w/$ws/security" params={params} className={classes.link}>
                <IconShieldLock size={18} stroke={1.7} aria-hidden /> Security
              </Link>
              <Link to="/w/$ws/single-sign-on" params={params} className={classes.link}>
                <IconBuilding size={18} stroke={1.7} aria-hidden /> Single sign-on
              </Link>
              <Link to="/w/$ws/audit" params={params} className={classes.link}>
                <IconHistory size={18} stroke={1.7} aria-hidden /> Audit log
              </Link>
            </>
          )}
          <Link to="/w/$ws/trash" params={params} className={classes.link}>
            <IconTrash size={18} stroke={1.7} aria-hidden /> Trash
          </Link>
          <Link to="/w/$ws/settings" params={params} className={classes.link}>
            <IconSettings size={18} stroke={1.7} aria-hidden /> Settings
          </Link>
        </NavGroup>
        {me.dev_mailbox_url && (
          <a href={me.dev_mailbox_url} className={classes.link}>
            <IconMail size={18} stroke={1.7} aria-hidden /> Mailbox
          </a>
        )}
      </nav>
      <div className={classes.account}>
        <AccountMenu me={me} />
      </div>
    </aside>
  );
}

const foldKey = 'portolan-folded';

function isFolded(title: string): boolean {
  try {
    return (window.localStorage.getItem(foldKey) ?? '').split(',').includes(title);
  } catch {
    return false;
  }
}

function keepFolded(title: string, folded: boolean) {
  try {
    const others = (window.localStorage.getItem(foldKey) ?? '')
      .split(',')
      .filter((one) => one && one !== title);
    window.localStorage.setItem(foldKey, (folded ? [...others, title] : others).join(','));
  } catch {
    // Storage may be switched off; then groups are open at each visit.
  }
}

/** Pages of one subject, which can be folded. The group of the page that is shown is never folded. */
function NavGroup({ title, paths, children }: { title: string; paths: string[]; children: ReactNode }) {
  const [folded, setFolded] = useState(() => isFolded(title));
  const place = useRouterState({ select: (state) => state.location.pathname.split('/')[3] ?? '' });
  return (
    <details
      className={classes.navGroup}
      open={!folded || paths.includes(place)}
      onToggle={(event) => {
        const next = !event.currentTarget.open;
        if (next === folded) return;
        setFolded(next);
        keepFolded(title, next);
      }}
    >
      <summary>
        {title} <IconChevronDown size={14} className={classes.fold} aria-hidden />
      </summary>
      {children}
    </details>
  );
}

function WorkspaceMenu() {
  const { me, workspace } = useSession();
  const navigate = useNavigate();
  return (
    <div className={classes.switcher}>
      <Menu
        withInitialFocusPlaceholder={false}
        portalProps={menuPortal}
        width={244}
        position="bottom-start"
        shadow="md"
      >
        <Menu.Target>
          <UnstyledButton className={classes.switcherButton}>
            <span className={classes.initial} aria-hidden>
              {workspace.name.slice(0, 1).toUpperCase()}
            </span>
            <span className={classes.switcherText}>
              <span className="visually-hidden">Switch workspace: </span>
              <span className={classes.switcherName}>{workspace.name}</span>
              <span className={classes.switcherRole}>{roles[workspace.role]}</span>
            </span>
            <IconSelector size={17} aria-hidden />
          </UnstyledButton>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Label>Workspaces</Menu.Label>
          {me.workspaces.map((one) => (
            <Menu.Item
              key={one.id}
              rightSection={one.slug === workspace.slug ? <IconCheck size={16} aria-label="current" /> : null}
              onClick={() => void navigate({ to: '/w/$ws', params: { ws: one.slug } })}
            >
              {one.name}
            </Menu.Item>
          ))}
          <Menu.Divider />
          <Menu.Item
            leftSection={<IconPlus size={16} aria-hidden />}
            onClick={() => void navigate({ to: '/', search: { create: true } })}
          >
            New workspace
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
    </div>
  );
}

const schemes = [
  { value: 'light', label: 'Light', icon: IconSun },
  { value: 'dark', label: 'Dark', icon: IconMoon },
  { value: 'auto', label: 'System', icon: IconDeviceDesktop },
] as const;

export function AccountMenu({ me }: { me: Me }) {
  // Without keepTransitions the library would inject a <style> element, which the CSP refuses.
  const { colorScheme, setColorScheme } = useMantineColorScheme({ keepTransitions: true });
  const name = me.user.display_name || me.user.email;
  return (
    <Menu
      withInitialFocusPlaceholder={false}
      portalProps={menuPortal}
      width={230}
      position="top-start"
      shadow="md"
    >
      <Menu.Target>
        <UnstyledButton className={classes.accountButton}>
          <span className={classes.avatar} aria-hidden>
            {name.slice(0, 1).toUpperCase()}
          </span>
          <span className={classes.switcherText}>
            <span className="visually-hidden">Account of </span>
            <span className={classes.switcherName}>{name}</span>
          </span>
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{me.user.email}</Menu.Label>
        <Menu.Divider />
        <Menu.Label>Appearance</Menu.Label>
        {schemes.map(({ value, label, icon: Icon }) => (
          <Menu.Item
            key={value}
            closeMenuOnClick={false}
            leftSection={<Icon size={16} aria-hidden />}
            rightSection={colorScheme === value ? <IconCheck size={16} aria-label="current" /> : null}
            onClick={() => setColorScheme(value)}
          >
            {label}
          </Menu.Item>
        ))}
        <Menu.Divider />
        {/* A page of the server: what concerns who can get in works without script. */}
        <Menu.Item component="a" href="/account" leftSection={<IconUserCircle size={16} aria-hidden />}>
          Your account
        </Menu.Item>
        {/* A real form: signing out is a POST to a page of the server, with its own protection. */}
        <form method="post" action="/logout" role="none">
          <Menu.Item type="submit" leftSection={<IconLogout size={16} aria-hidden />}>
            Sign out
          </Menu.Item>
        </form>
      </Menu.Dropdown>
    </Menu>
  );
}

/** The frame of the few pages outside of a workspace. */
export function PlainShell({ me, children }: { me?: Me; children: ReactNode }) {
  return (
    <div className={classes.plain}>
      <header className={classes.plainBar}>
        <Link to="/" className={classes.plainBrand}>
          <Logo size={34} />
          <span className={classes.brandName}>Portolan</span>
        </Link>
        {me && (
          <form method="post" action="/logout">
            <UnstyledButton type="submit" fz="sm" fw={550} c="dimmed">
              Sign out
            </UnstyledButton>
          </form>
        )}
      </header>
      <main id="content">{children}</main>
    </div>
  );
}
