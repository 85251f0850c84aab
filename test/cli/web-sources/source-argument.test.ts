import { expect, test } from 'vitest'
import { parseSourceArgument } from '../../../src/cli/web-sources/source-argument.ts'

const repository = (url: string, ref?: string) => ({ kind: 'repository', url, ref })

test.each([
  ['https://example.com/guide', { kind: 'page', url: 'https://example.com/guide' }],
  ['http://example.com/a.pdf?x=1', { kind: 'page', url: 'http://example.com/a.pdf?x=1' }],
  ['https://example.com/a.git', repository('https://example.com/a.git')],
  ['https://example.com/a.git#v2', repository('https://example.com/a.git', 'v2')],
  ['git+https://example.com/a#main', repository('https://example.com/a', 'main')],
  ['ssh://git@example.com/a', repository('ssh://git@example.com/a')],
  ['git@example.com:owner/a.git', repository('git@example.com:owner/a.git')],
  ['file:///srv/a.git', repository('file:///srv/a.git')],
  [
    'https://example.com/a-1.0.tar.gz',
    { kind: 'archive', location: new URL('https://example.com/a-1.0.tar.gz') },
  ],
  ['./docs.tgz', { kind: 'archive', location: './docs.tgz' }],
  ['docs', undefined],
  ['docs/**/*.md', undefined],
  ['-', undefined],
  ['-u@example.com:a', undefined],
  ['C:\\docs', undefined],
])('reads %s', (argument, expected) => {
  expect(parseSourceArgument(argument)).toEqual(expected)
})
