// Mantine's CSS variables for our theme as one static file: the CSP admits no <style> element.
import { fileURLToPath } from 'node:url';
import {
  convertCssVariables,
  DEFAULT_THEME,
  defaultCssVariablesResolver,
  mergeMantineTheme,
} from '@mantine/core';

export const themePath = fileURLToPath(new URL('../src/theme.gen.css', import.meta.url));

export function themeSource({ theme, cssVariables }) {
  const merged = mergeMantineTheme(DEFAULT_THEME, theme);
  const base = defaultCssVariablesResolver(merged);
  const own = cssVariables(merged);
  const all = {
    variables: { ...base.variables, ...own.variables },
    light: { ...base.light, ...own.light },
    dark: { ...base.dark, ...own.dark },
  };
  const css = convertCssVariables(all, ':root').replaceAll(/([{;}])\s*/g, '$1\n');
  return `/* Generated from theme.ts by \`npm run generate\`. Do not edit. */\n${css}\n`;
}
