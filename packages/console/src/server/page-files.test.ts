import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pageFiles } from './page-files.ts'

test('CON-22 the first load is under 200 kB compressed, and nothing in it is inline', async (t) => {
  const files = await pageFiles()
  const bytes = [...files.values()].reduce((sum, { gzipped }) => sum + gzipped.length, 0)
  t.diagnostic(`first load: ${(bytes / 1000).toFixed(1)} kB compressed`)
  assert.ok(bytes > 10_000 && bytes < 200_000, `${bytes} bytes`)
  const html = Buffer.from(files.get('index.html')?.text ?? []).toString()
  assert.doesNotMatch(html, /<style|style=|<script[^>]*>[^<]|https?:/)
})
