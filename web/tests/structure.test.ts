// @vitest-environment node
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const source = new URL('../src/', import.meta.url);
const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((one) =>
  one.endsWith('.tsx'),
);

test('pages and components have no inline styles: CSS modules and properties of Mantine hold them', () => {
  const inline = files.flatMap((file) =>
    readFileSync(new URL(file, source), 'utf8')
      .split('\n')
      .filter((line) => /\bstyles?=\{\{/.test(line))
      .map((line) => `${file}: ${line.trim()}`),
  );
  expect(inline).toEqual([]);
});

test('a file of the console has at most 400 lines', () => {
  const long = files.filter((file) => readFileSync(new URL(file, source), 'utf8').split('\n').length > 401);
  expect(long).toEqual([]);
});

test('components show: only routes and the files of the API fetch', () => {
  const fetching = files
    .filter((file) => file.startsWith('components/'))
    .filter((file) =>
      /\buse(Infinite)?Query\(|\buseMutation\(/.test(readFileSync(new URL(file, source), 'utf8')),
    );
  expect(fetching).toEqual([]);
});
