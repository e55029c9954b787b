import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { ProviderError, type ProviderErrorKind } from '@tenon/provider'
import { verdictOn } from './launch-blame.ts'

const page = readFileSync(
  new URL('../../../../docs/design/0011-answers-of-clouds.md', import.meta.url),
  'utf8',
)

/** Every kind there is: one more does not compile without a line here. */
const kinds: Readonly<Record<ProviderErrorKind, true>> = {
  insufficientCapacity: true,
  create: true,
  unauthorized: true,
  nodeClassNotReady: true,
  nodeClaimNotFound: true,
  unevaluatedNodePool: true,
  throttled: true,
  other: true,
}
const place = {
  nodePool: 'pool',
  nodeClassRef: { group: 'example.com', kind: 'NodeClass', name: 'class' },
}
const choice = { instanceType: 'small', zone: 'zone-1', capacityType: 'on-demand' }

function blamedFor(kind: ProviderErrorKind): string {
  const verdict = verdictOn(new ProviderError(kind, 'no'), place, choice)
  if (verdict.kind !== 'refused') return verdict.kind
  const [scope] = verdict.scopes
  return scope !== undefined && JSON.stringify(scope).includes('small') ? 'instance type' : 'node class'
}

test('RPB-11 what is remembered of each kind of failed launch is what the table of the answers says', () => {
  const table = page.split('<!-- table: remembered -->')[1]?.split('\n\n')[0] ?? ''
  const rows = [...table.matchAll(/^\| `(\w+)` \| ([^|]+) \|/gm)].map(([, kind = '', blamed]) => [
    kind,
    blamed,
  ])
  assert.deepEqual(
    rows,
    rows.map(([kind]) => [kind, blamedFor(kind as ProviderErrorKind)]),
  )
  assert.deepEqual(new Set(rows.map(([kind]) => kind)), new Set(Object.keys(kinds)))
})

test('a failure that blames nothing leaves the launch under way, or gives the claim up and remembers nothing', () => {
  const blaming = (kind: ProviderErrorKind) =>
    verdictOn(new ProviderError(kind, 'no', { blames: { what: 'nothing' } }), place, choice)
  assert.deepEqual(blaming('create'), { kind: 'underWay' })
  assert.deepEqual(blaming('insufficientCapacity'), {
    kind: 'refused',
    scopes: [],
    isShort: false,
    isGuess: false,
  })
})
