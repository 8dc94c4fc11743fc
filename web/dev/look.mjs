// Looks at every page of the built console with Chromium, under the real CSP: screenshots, axe, and whatever the console logs.
// Fails on a CSP violation, a script error, a sideways scroll on a phone, or an accessibility finding.
// node dev/look.mjs [name …]; pictures go to $OUT (default ../artifacts/console), CHROMIUM says where the browser is.
import { mkdirSync } from 'node:fs';
import axe from 'axe-core';
import { chromium } from 'playwright-core';
import { app } from './api.mjs';

const out = process.env.OUT ?? new URL('../../artifacts/console', import.meta.url).pathname;
mkdirSync(out, { recursive: true });
const wanted = process.argv.slice(2);
await new Promise((ready) => app.listen(0, '127.0.0.1', ready));
const origin = `http://127.0.0.1:${app.address().port}`;
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox'],
});

const at = (path) => (page) => page.goto(`${origin}${path}`, { waitUntil: 'networkidle' });
const pages = {
  welcome: at('/?create=true'),
  overview: at('/w/nordhavn'),
  sources: at('/w/nordhavn/sources'),
  'import-1-document': at('/w/nordhavn/sources/import'),
  'import-2-tools': async (page) => {
    await at('/w/nordhavn/sources/import')(page);
    await page.getByRole('button', { name: 'Preview tools' }).click();
    await page.getByRole('heading', { name: 'Operations' }).waitFor();
  },
  'import-3-credential': async (page) => {
    await pages['import-2-tools'](page);
    await page.getByRole('button', { name: /Continue with/ }).click();
    await page.getByText('Authentication').waitFor();
  },
  'import-3-refused': async (page) => {
    await pages['import-3-credential'](page);
    await page.getByLabel('Key', { exact: true }).fill('a-wrong-key');
    await page.getByRole('button', { name: 'Save and test' }).click();
    await page.getByText(/^Refused 401/).waitFor();
  },
  'import-refused': async (page) => {
    await at('/w/nordhavn/sources/import')(page);
    await page.getByRole('radio', { name: /^Paste/ }).check();
    await page.getByRole('textbox', { name: 'OpenAPI document' }).fill('hello: world');
    await page.getByRole('button', { name: 'Preview tools' }).click();
    await page.getByRole('alert').waitFor();
  },
  source: at('/w/nordhavn/sources/src_0192a'),
  'source-credential': at('/w/nordhavn/sources/src_0192a?tab=credential'),
  'source-settings': at('/w/nordhavn/sources/src_0192a?tab=settings'),
  reimport: async (page) => {
    await at('/w/nordhavn/sources/src_0192a/reimport')(page);
    await page.getByRole('button', { name: 'Compare' }).click();
    await page.getByRole('heading', { name: 'Changes' }).waitFor();
  },
  'new-http-source': at('/w/nordhavn/sources/new'),
  'new-upstream': at('/w/nordhavn/sources/upstream'),
  'new-attachment': at('/w/nordhavn/sources/attach'),
  'attachment-key': async (page) => {
    await at('/w/nordhavn/sources/attach')(page);
    await page.getByRole('textbox', { name: /^Name/ }).fill('office-files');
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByText('Copy it now').waitFor();
    await page.waitForTimeout(300);
  },
  attached: at('/w/nordhavn/sources/src_0192c?tab=server'),
  'new-tool': at('/w/nordhavn/sources/src_0192a/tools/new'),
  'resource-new': at('/w/nordhavn/resources/new'),
  'tool-editor': at('/w/nordhavn/tools/tol_0192x/edit'),
  tools: at('/w/nordhavn/tools'),
  'tool-try': async (page) => {
    await at('/w/nordhavn/tools/tol_01920')(page);
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByText('HTTP 200').waitFor();
  },
  'tool-request': async (page) => {
    await at('/w/nordhavn/tools/tol_01925')(page);
    await page.getByText('JSON', { exact: true }).click();
    const booking = { port: 'DKCPH', ship: 9074729, arrival: '2026-11-25T06:00:00Z', cargo: 'grain' };
    await page.getByRole('textbox', { name: 'Arguments as JSON' }).fill(JSON.stringify(booking, null, 2));
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByRole('tab', { name: 'Request' }).click();
    await page.getByLabel('Headers of the request').waitFor();
  },
  'tool-response': async (page) => {
    await pages['tool-try'](page);
    await page.getByRole('tab', { name: 'Response' }).click();
    await page.getByLabel('Headers of the response').waitFor();
  },
  'tool-faults': async (page) => {
    await at('/w/nordhavn/tools/tol_01925')(page);
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByText('Invalid arguments').waitFor();
  },
  'tool-json': async (page) => {
    await at('/w/nordhavn/tools/tol_01925')(page);
    await page.getByText('JSON', { exact: true }).click();
    await page.getByRole('textbox', { name: 'Arguments as JSON' }).waitFor();
  },
  'tool-image': async (page) => {
    await at('/w/nordhavn/tools/tol_01924')(page);
    await page.getByRole('textbox', { name: 'imo' }).fill('9074729');
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByText('Image, image/svg+xml').waitFor();
  },
  'tool-schema': at('/w/nordhavn/tools/tol_01925?tab=schema'),
  'tool-text': at('/w/nordhavn/tools/tol_0192x?tab=text'),
  prompts: at('/w/nordhavn/prompts'),
  'prompt-new': at('/w/nordhavn/prompts/new'),
  prompt: async (page) => {
    await at('/w/nordhavn/prompts/prm_0192a')(page);
    await page.getByRole('textbox', { name: 'Value of port' }).fill('Nordhavn');
  },
  resources: at('/w/nordhavn/resources'),
  resource: at('/w/nordhavn/resources/rsc_0192a'),
  'server-prompts': at('/w/nordhavn/servers/srv_0192a?tab=prompts'),
  'server-resources': at('/w/nordhavn/servers/srv_0192a?tab=resources'),
  servers: at('/w/nordhavn/servers'),
  'new-server': at('/w/nordhavn/servers/new?source=src_0192a'),
  'server-tools': at('/w/nordhavn/servers/srv_0192a'),
  'server-connect': at('/w/nordhavn/servers/srv_0192a?tab=connect'),
  'server-calls': at('/w/nordhavn/servers/srv_0192a?tab=calls'),
  'server-settings': at('/w/nordhavn/servers/srv_0192a?tab=settings'),
  calls: at('/w/nordhavn/calls'),
  members: at('/w/nordhavn/members'),
  invite: async (page) => {
    await at('/w/nordhavn/members')(page);
    await page.getByRole('button', { name: 'Invite' }).click();
    await page.getByRole('textbox', { name: 'E-mail address' }).fill('kim@nordhavn.example');
    await page.waitForTimeout(300);
  },
  apps: at('/w/nordhavn/apps'),
  palette: async (page) => {
    await at('/w/nordhavn')(page);
    await page.keyboard.press('Control+k');
    await page.getByRole('textbox', { name: /^Search pages/ }).fill('port');
    await page.getByRole('option').nth(3).waitFor();
    await page.waitForTimeout(400);
  },
  shortcuts: async (page) => {
    await at('/w/nordhavn')(page);
    await page.keyboard.press('?');
    await page.getByText('Show the shortcuts').waitFor();
    await page.waitForTimeout(300);
  },
  docs: at('/docs/console'),
  'docs-attach': at('/docs/attach'),
  'docs-operating': at('/docs/operating'),
  'docs-search': async (page) => {
    await at('/docs/connect')(page);
    await page.keyboard.press('/');
    await page.getByRole('textbox', { name: /^Search pages/ }).fill('kubernetes');
    await page.getByRole('option').first().waitFor();
    await page.waitForTimeout(300);
  },
  limits: async (page) => {
    await at('/w/nordhavn/limits')(page);
    await page.getByRole('table', { name: 'Calls and refusals' }).waitFor({ state: 'attached' });
  },
  'limits-out-of-range': async (page) => {
    await at('/w/nordhavn/limits')(page);
    await page.getByRole('textbox', { name: 'Concurrent calls' }).fill('129');
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('Enter a whole number from 1 to 128.').waitFor();
  },
  audit: at('/w/nordhavn/audit'),
  keys: at('/w/nordhavn/keys'),
  'key-new': async (page) => {
    await at('/w/nordhavn/keys')(page);
    await page.getByRole('button', { name: 'New API key' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('CI');
    await page.waitForTimeout(300);
  },
  'key-secret': async (page) => {
    await pages['key-new'](page);
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByText('Copy it now').waitFor();
    await page.keyboard.press('Escape');
    await page.waitForTimeout(300);
    await page.getByRole('button', { name: 'Done' }).waitFor();
  },
  clients: at('/w/nordhavn/clients'),
  connects: async (page) => {
    await at('/w/nordhavn/connects')(page);
    await page.getByRole('button', { name: /Show the steps/ }).click();
  },
  security: at('/w/nordhavn/security'),
  'single-sign-on': at('/w/nordhavn/single-sign-on'),
  unsaved: async (page) => {
    await at('/w/nordhavn/prompts/new')(page);
    await page.getByRole('textbox', { name: /^Name/ }).fill('port_briefing');
    await page.getByRole('link', { name: 'Prompts' }).last().click();
    await page.getByRole('button', { name: 'Keep editing' }).waitFor();
    await page.waitForTimeout(300);
  },
  'long-name': async (page) => {
    await at('/w/nordhavn/servers/srv_0192a')(page);
    const name = 'a-server-with-a-name-that-is-longer-than-a-phone-is-wide-'.repeat(2).slice(0, 80);
    await page.evaluate(
      (name) =>
        fetch('/api/v1/workspaces/nordhavn/servers/srv_0192a', {
          method: 'PATCH',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ name }),
        }),
      name,
    );
    await at('/w/nordhavn/servers/srv_0192a?tab=connect')(page);
    await page.getByRole('heading', { level: 1, name }).waitFor();
    await page.evaluate(() =>
      fetch('/api/v1/workspaces/nordhavn/servers/srv_0192a', {
        method: 'PATCH',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ name: 'Harbour desk' }),
      }),
    );
  },
  'sidebar-13-inch': async (page) => {
    if (page.viewportSize().width < 900) return at('/w/nordhavn')(page);
    await page.setViewportSize({ width: 1280, height: 720 });
    await at('/w/nordhavn/settings')(page);
    const foot = await page.getByRole('button', { name: /^Account of/ }).boundingBox();
    if (!foot || foot.y + foot.height > 720) throw new Error('the account button is below the fold');
  },
  settings: at('/w/nordhavn/settings'),
  menu: async (page) => {
    await at('/w/nordhavn')(page);
    if (page.viewportSize().width < 900) await page.getByRole('button', { name: 'Open the menu' }).click();
    await page
      .getByRole('button', { name: /^Account of/ })
      .last()
      .click();
    await page.getByRole('menuitem', { name: 'Sign out' }).waitFor();
    await page.waitForTimeout(250);
  },
  undo: async (page) => {
    await at('/w/nordhavn/servers/srv_0192b?tab=settings')(page);
    await page.getByRole('button', { name: 'Delete server' }).click();
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByRole('button', { name: /^Restore/ }).waitFor();
    await page.waitForTimeout(300);
  },
  trash: at('/w/nordhavn/trash'),
  'undo-done': async (page) => {
    await page.waitForTimeout(1);
    await at('/w/nordhavn/servers')(page);
    await page.evaluate(() =>
      fetch('/api/v1/workspaces/nordhavn/servers/srv_0192b/restore', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
      }),
    );
  },
  'trash-empty': at('/w/nordhavn/trash'),
  // The service answers 500, and then not at all.
  failed: async (page) => {
    await page.route('**/api/**/overview', (route) => route.fulfill({ status: 500, json: { error: {} } }));
    await page.goto(`${origin}/w/nordhavn`);
    await page.getByRole('button', { name: 'Try again' }).waitFor();
  },
  offline: async (page) => {
    await page.route('**/api/**/servers', (route) => route.abort());
    await page.goto(`${origin}/w/nordhavn/servers`);
    await page.getByRole('button', { name: 'Try again' }).waitFor();
  },
  'not-found': at('/w/nordhavn/nowhere'),
  'no-workspace': at('/w/elsewhere'),
};

// A workspace in which nothing was made yet.
if (process.env.PORTOLAN_DEV === 'empty') {
  for (const name of Object.keys(pages)) delete pages[name];
  pages['empty-welcome'] = async (page) => {
    await at('/')(page);
    if (!(await page.getByLabel(/^(Workspace name|Name)/).isVisible())) return;
    await page.getByLabel(/^(Workspace name|Name)/).fill('Nordhavn');
  };
  const workspace = (path) => async (page) => {
    // The second time it is taken, which is as good.
    await fetch(`${origin}/api/v1/workspaces`, {
      method: 'POST',
      body: JSON.stringify({ name: 'Nordhavn', slug: 'nordhavn' }),
    });
    await at(`/w/nordhavn${path}`)(page);
  };
  for (const path of [
    '',
    'sources',
    'tools',
    'prompts',
    'resources',
    'servers',
    'servers/new',
    'calls',
    'connects',
    'clients',
    'keys',
    'apps',
    'members',
    'limits',
    'audit',
    'trash',
    'security',
    'single-sign-on',
  ]) {
    pages[`empty-${path.replace('/', '-') || 'overview'}`] = workspace(path && `/${path}`);
  }
}

const faults = {
  count: 0,
  push(fault) {
    this.count += 1;
    console.error(fault);
  },
};
const looks = [
  { name: 'wide-light', width: 1440, height: 900, colorScheme: 'light' },
  { name: 'wide-dark', width: 1440, height: 900, colorScheme: 'dark' },
  { name: 'phone-light', width: 390, height: 844, colorScheme: 'light' },
  { name: 'phone-dark', width: 390, height: 844, colorScheme: 'dark' },
];
const only = process.env.LOOKS?.split(',');
for (const look of looks.filter((one) => !only || only.includes(one.name))) {
  const context = await browser.newContext({
    viewport: { width: look.width, height: look.height },
    colorScheme: look.colorScheme,
    reducedMotion: 'reduce',
  });
  for (const [name, open] of Object.entries(pages)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    const page = await context.newPage();
    const where = `${name} (${look.name})`;
    page.on('console', (message) => {
      if (message.type() === 'error' && !/status of [45]\d\d|net::ERR_FAILED/.test(message.text()))
        faults.push(`${where}: ${message.text()}`);
    });
    page.on('pageerror', (error) => faults.push(`${where}: ${error}`));
    try {
      page.setDefaultTimeout(8000);
      await open(page);
      await page.waitForTimeout(200);
      const wide = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
      if (wide > 0) faults.push(`${where}: scrolls sideways by ${wide} px`);
      await page.evaluate(axe.source);
      const { violations } = await page.evaluate(() =>
        globalThis.axe.run(document, { resultTypes: ['violations'] }),
      );
      for (const { id, nodes } of violations) {
        for (const node of nodes.slice(0, 3)) {
          faults.push(
            `${where}: ${id}: ${node.target.join(' ')}: ${node.any[0]?.message ?? node.all[0]?.message ?? node.none[0]?.message ?? ''}`,
          );
        }
      }
      // A window as tall as the page: what sticks to the window stays where a person sees it.
      const whole = ![
        'menu',
        'undo',
        'key-new',
        'key-secret',
        'attachment-key',
        'palette',
        'shortcuts',
        'docs-search',
        'unsaved',
        'sidebar-13-inch',
      ].includes(name);
      if (whole) {
        const height = await page.evaluate(() => document.documentElement.scrollHeight);
        await page.setViewportSize({
          width: look.width,
          height: Math.max(look.height, Math.min(height, 4000)),
        });
      }
      await page.screenshot({ path: `${out}/${name}-${look.name}.png` });
    } catch (error) {
      faults.push(`${where}: ${String(error).split('\n')[0]}`);
      await page.screenshot({ path: `${out}/${name}-${look.name}-failed.png` });
    }
    await page.close();
  }
  await context.close();
}
await browser.close();
app.close();
console.log(`${faults.count} findings`);
process.exit(faults.count > 0 ? 1 : 0);
