// Mantine's CSS variables for our theme as one static file: the CSP admits no <style> element.
import { fileURLToPath } from 'node:url';
import {
  convertCssVariables,
  DEFAULT_THEME,
  defaultCssVariablesResolver,
  mergeMantineTheme,
} from '@mantine/core';

// Colours of the library that the console does not use.
const unused = /^--mantine-color-(pink|grape|violet|indigo|cyan|teal|lime|orange)-/;
const needed = (variables) =>
  Object.fromEntries(Object.entries(variables).filter(([name]) => !unused.test(name)));

export const themePath = fileURLToPath(new URL('../src/theme.gen.css', import.meta.url));

export function themeSource({ theme, cssVariables }) {
  const merged = mergeMantineTheme(DEFAULT_THEME, theme);
  const base = defaultCssVariablesResolver(merged);
  const own = cssVariables(merged);
  const all = {
    variables: needed({ ...base.variables, ...own.variables }),
    light: needed({ ...base.light, ...own.light }),
    dark: needed({ ...base.dark, ...own.dark }),
  };
  const css = convertCssVariables(all, ':root').replaceAll(/([{;}])\s*/g, '$1\n');
  return `/* Generated from theme.ts by \`npm run generate\`. Do not edit. */\n${css}\n`;
}
