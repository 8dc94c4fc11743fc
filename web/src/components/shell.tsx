import {
  ActionIcon,
  Burger,
  CloseButton,
  Drawer,
  Group,
  Menu,
  UnstyledButton,
  useMantineColorScheme,
} from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import {
  IconBook,
  IconCheck,
  IconChevronDown,
  IconDeviceDesktop,
  IconLogout,
  IconMail,
  IconMoon,
  IconPlus,
  IconSearch,
  IconSelector,
  IconSun,
  IconUserCircle,
} from '@tabler/icons-react';
import { Link, useNavigate, useRouterState } from '@tanstack/react-router';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import type { Me } from '../api/me';
import { type PageEntry, pages } from '../pages';
import { may, useSession } from '../session';
import { Bell } from './bell';
import { Logo } from './logo';
import classes from './shell.module.css';

// Menus open inside of a landmark, not at the end of the body.
const menuPortal = { target: '#menus' };

const roles = { owner: 'Owner', admin: 'Admin', developer: 'Developer', member: 'Member', viewer: 'Viewer' };

/** The frame of every workspace page: skip link, navigation, and the page itself. */
export function Shell({ onSearch, children }: { onSearch: () => void; children: ReactNode }) {
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
          <Group ml="auto" gap="xs">
            <Bell />
            <ActionIcon variant="transparent" c="white" size="lg" onClick={onSearch} aria-label="Search">
              <IconSearch size={20} aria-hidden />
            </ActionIcon>
          </Group>
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
              onSearch={onSearch}
              closer={
                <CloseButton onClick={close} variant="transparent" c="white" aria-label="Close the menu" />
              }
            />
          </Drawer.Content>
        </Drawer.Root>
        <Sidebar onSearch={onSearch} />
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

function Sidebar({ closer, onSearch }: { closer?: ReactNode; onSearch: () => void }) {
  const { me, workspace } = useSession();
  const params = { ws: workspace.slug };
  const link = ({ to, label, icon: Icon }: PageEntry) => (
    <Link
      key={to}
      to={to}
      params={params}
      activeOptions={{ exact: to === '/w/$ws' }}
      className={classes.link}
    >
      <Icon size={18} stroke={1.7} aria-hidden /> {label}
    </Link>
  );
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
      <div className={classes.tools}>
        <UnstyledButton className={classes.search} onClick={onSearch} aria-keyshortcuts="Control+K Meta+K">
          <IconSearch size={16} aria-hidden /> Search
          <kbd>Ctrl K</kbd>
        </UnstyledButton>
        <Bell />
      </div>
      <nav ref={nav} className={classes.nav} aria-label="Workspace">
        {pages.filter((page) => page.group === undefined).map(link)}
        {(['Access', 'Workspace'] as const).map((group) => {
          const inGroup = pages.filter((page) => page.group === group);
          return (
            <NavGroup
              key={group}
              title={group}
              paths={inGroup.map((page) => page.to.slice('/w/$ws/'.length))}
            >
              {inGroup.filter((page) => !('needs' in page) || may(workspace.role, page.needs)).map(link)}
            </NavGroup>
          );
        })}
        <Link to="/docs" className={classes.link}>
          <IconBook size={18} stroke={1.7} aria-hidden /> Docs
        </Link>
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
