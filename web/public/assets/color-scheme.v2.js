// Sets the colour scheme before the first paint. A file of its own, because the console's CSP
// admits no inline script. The choice is the cookie that src/color-scheme.ts writes and the sign-in
// and account pages read.
(() => {
  const named = /(?:^|; )theme=(light|dark|auto)(?:;|$)/.exec(document.cookie);
  let chosen = named ? named[1] : null;
  if (chosen === null) {
    try {
      chosen = window.localStorage.getItem('portolan-color-scheme');
    } catch {
      // Storage may be switched off; then the system's scheme decides.
    }
  }
  const dark =
    chosen === 'dark' || (chosen !== 'light' && window.matchMedia('(prefers-color-scheme: dark)').matches);
  document.documentElement.setAttribute('data-mantine-color-scheme', dark ? 'dark' : 'light');
})();
