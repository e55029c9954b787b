/** docs/providers.md quotes the example of a provider; what it quotes is there. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { repositoryRoot } from './testing/image.test-support.ts'

test('code in the guide to providers is code of the example', async () => {
  const guide = await readFile(join(repositoryRoot, 'docs/providers.md'), 'utf8')
  const blocks = [...guide.matchAll(/^(?:<!-- ([^\n]+) -->\n)?```ts\n(.*?)^```$/gms)]
  assert.ok(blocks.length >= 7, `${blocks.length} blocks`)
  for (const [, path = '', code = ''] of blocks) {
    assert.match(path, /^examples\/harbour-cloud\//, `a block without a file: ${code}`)
    assert.ok((await readFile(join(repositoryRoot, path), 'utf8')).includes(code), `${path} lacks:\n${code}`)
  }
})
