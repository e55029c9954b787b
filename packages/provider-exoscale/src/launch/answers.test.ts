import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { isProviderError, type ProviderError } from '@tenon/provider'
import { exoscaleNodeClassKind } from '../nodeclass/types.ts'
import type { Fault } from '../testing/fake-cloud.test-support.ts'
import { aClaim, aNodeClass, aWorld, type World } from '../testing/world.test-support.ts'

const page = readFileSync(
  new URL('../../../../docs/design/0011-answers-of-clouds.md', import.meta.url),
  'utf8',
)

/** Those that are told apart, one for all others, and every failure of a server. */
const answers = [
  '400',
  '401',
  '402',
  '403',
  '404',
  '409',
  '418',
  '422',
  '429',
  '500',
  '501',
  '502',
  '503',
  '504',
]
/** More than any call is repeated. */
const often = 12

function faultsOf(answer: string): readonly Fault[] {
  const fault: Fault =
    answer === 'no answer' ? 'dropped' : { status: Number(answer), body: '{"message":"no"}' }
  return Array.from({ length: often }, () => fault)
}

function ready(): World {
  const world = aWorld()
  world.kube.put(exoscaleNodeClassKind, aNodeClass())
  return world
}

async function errorOf(work: Promise<unknown>): Promise<ProviderError> {
  return await work.then(
    () => assert.fail('expected an error'),
    (error: unknown) => (isProviderError(error) ? error : assert.fail(String(error))),
  )
}

/** What the core blames for it: docs/design/0011, first table. */
function blamedFor({ kind, blames }: ProviderError): string {
  if (blames?.what === 'cloud' || kind === 'throttled') return 'unclear'
  return 'instance type'
}

test('RPB-11 each answer of Exoscale to a creation and a deletion becomes what the table says', async () => {
  const table = page.split('<!-- table: exoscale -->')[1]?.split('\n\n')[0] ?? ''
  const rows = [...table.matchAll(/^\| (\d+|no answer) \| `(\w+)` \| ([^|]+) \| `(\w+)` \|/gm)].map((row) =>
    row.slice(1),
  )
  const found: (readonly string[])[] = []
  for (const [answer = ''] of rows) {
    const world = ready()
    world.cloud.disturb('POST', /^\/instance$/, ...faultsOf(answer))
    const creation = await errorOf(world.settle(world.provider.create(aClaim())))
    const other = ready()
    const claim = aClaim()
    const { providerID } = await other.settle(other.provider.create(claim))
    other.cloud.disturb('DELETE', /^\/instance\//, ...faultsOf(answer))
    const deletion = await errorOf(other.settle(other.provider.delete({ ...claim, status: { providerID } })))
    found.push([answer, creation.kind, blamedFor(creation), deletion.kind])
  }
  assert.deepEqual(rows, found)
  assert.deepEqual(
    rows.map(([answer]) => answer),
    [...answers, 'no answer'],
  )
})
