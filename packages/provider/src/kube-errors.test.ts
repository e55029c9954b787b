import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { KubeError, type KubeErrorKind } from '@tenon/kube'
import { isProviderError } from './contract.ts'
import { withProviderErrors } from './kube-errors.ts'

const page = readFileSync(new URL('../../../docs/design/0011-answers-of-clouds.md', import.meta.url), 'utf8')

/** Every kind there is, with a status that has it: one more does not compile without a line here. */
const statuses: Readonly<Record<KubeErrorKind, number>> = {
  notFound: 404,
  alreadyExists: 409,
  conflict: 409,
  gone: 410,
  invalid: 422,
  forbidden: 403,
  unauthorized: 401,
  tooManyRequests: 429,
  server: 500,
  transport: 0,
  other: 418,
}

test('RPB-11 each error of a Kubernetes API becomes what the table of the answers says', async () => {
  const table = page.split('<!-- table: kubernetes -->')[1]?.split('\n\n')[0] ?? ''
  const rows = [...table.matchAll(/^\| `(\w+)` \| `(\w+)` \|/gm)].map(([, answer = '', error]) => [
    answer,
    error,
  ])
  const found: (readonly string[])[] = []
  for (const [answer = ''] of rows) {
    const kind = answer as KubeErrorKind
    const work = () => Promise.reject(new KubeError(kind, statuses[kind], 'no'))
    await withProviderErrors(work).catch((error: unknown) => {
      assert.ok(isProviderError(error))
      found.push([answer, error.kind])
    })
  }
  assert.deepEqual(rows, found)
  assert.deepEqual(new Set(rows.map(([answer]) => answer)), new Set(Object.keys(statuses)))
})
