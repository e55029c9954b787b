/** What is told anywhere, searched for what nobody may read there. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { inspect } from 'node:util'
import { karpenterKinds, kinds } from '@tenon/api'
import { KubeError } from '@tenon/kube'
import { exoscaleNodeClassKind } from './nodeclass/types.ts'
import type { Fault } from './testing/fake-cloud.test-support.ts'
import { aClaim, aNodeClass, aWorld, type World } from './testing/world.test-support.ts'

const creation = /^\/instance$/
const apiSecret = 's3cret-value'

interface Told {
  readonly errors: readonly unknown[]
  readonly world: World
}

/** Everything a user, an administrator or another program gets to read, except the Secrets themselves. */
function everythingTold({ errors, world }: Told): string {
  const { kube, cloud, log } = world
  const unsaid = new Set(['user-data'])
  const calls = cloud.calls.map((call) =>
    JSON.stringify(call, (key, value: unknown) => (unsaid.has(key) ? undefined : value)),
  )
  const objects = [
    ...kube.all(karpenterKinds.nodeClaim),
    ...kube.all(kinds.node),
    ...kube.all(exoscaleNodeClassKind),
  ].map((object) => JSON.stringify(object))
  const metadata = kube.all(kinds.secret).map((secret) => JSON.stringify(secret.metadata))
  const shown = { depth: Number.POSITIVE_INFINITY, showHidden: true } as const
  const failures = errors.flatMap((error) => [inspect(error, shown), String(error), JSON.stringify(error)])
  return [...log, ...kube.events.map((event) => JSON.stringify(event)), ...calls]
    .concat(objects, metadata, failures)
    .join('\n')
}

/** Secret halves of every token that was ever made, and the user data that carried it. */
function secretsOf({ kube, cloud }: World): readonly string[] {
  const tokens = kube.writes.flatMap(({ body }) => {
    const { data } = (body ?? {}) as { readonly data?: Readonly<Record<string, string>> }
    const encoded = data?.['token-secret']
    return encoded === undefined ? [] : [encoded, Buffer.from(encoded, 'base64').toString()]
  })
  const userData = cloud.callsTo('POST', creation).map(({ body }) => String(body?.['user-data']))
  return [apiSecret, ...tokens, ...userData]
}

describe('secrets', () => {
  const faults: readonly (readonly [name: string, ...Fault[]])[] = [
    ['refused', { status: 401, body: '{"message":"bad signature"}' }],
    ['unprocessable', { status: 422, body: '{"errors":[{"message":"no"}]}' }],
    ['lost', 'lostReply'],
    ['dropped', 'dropped'],
    ['answered with nonsense', { status: 200, body: '<html>' }],
    ['throttled', ...Array.from({ length: 6 }, () => ({ status: 429 }))],
  ]
  for (const [name, ...creationFaults] of faults) {
    it(`are in no log, event, error, label or path when a creation is ${name}`, async () => {
      const world = aWorld()
      world.kube.put(exoscaleNodeClassKind, aNodeClass())
      const claim = world.kube.put(karpenterKinds.nodeClaim, aClaim())
      world.cloud.disturb('POST', creation, ...creationFaults)
      const error = new KubeError('forbidden', 403, 'no')
      world.kube.failures.push({ verb: 'delete', plural: 'secrets', error })
      const errors: unknown[] = []
      const attempt = async (work: () => Promise<unknown>): Promise<void> => {
        await world.settle(work()).catch((reason: unknown) => errors.push(reason))
      }
      await attempt(() => world.provider.create(claim))
      await attempt(() => world.provider.create(claim))
      await attempt(() => world.provider.list())
      await attempt(() => world.reconcile('exoscale.tokencleanup', 'all'))
      await world.clock.advance(11 * 60_000)
      await attempt(() => world.reconcile('exoscale.tokencleanup', 'all'))
      await attempt(() => world.reconcile('exoscale.garbagecollection', 'all'))
      await attempt(() => world.provider.delete(claim))

      const secrets = secretsOf(world)
      assert.ok(secrets.length >= 4, 'tokens were made and sent')
      const told = everythingTold({ errors, world })
      assert.deepEqual(
        secrets.filter((secret) => told.includes(secret)),
        [],
      )
    })
  }

  it('are taken out where the API quotes what it refuses', async () => {
    const world = aWorld()
    world.kube.put(exoscaleNodeClassKind, aNodeClass())
    world.cloud.quote('POST', creation, 422)
    const failure = await world.settle(world.provider.create(aClaim())).then(
      () => assert.fail('expected an error'),
      (error: unknown) => error,
    )
    const told = everythingTold({ errors: [failure], world })
    assert.match(told, /user data is not valid: \[redacted\]/)
    assert.deepEqual(
      secretsOf(world).filter((secret) => told.includes(secret)),
      [],
    )
  })

  it('the key is sent in the header that signs, and is nowhere else', async () => {
    const world = aWorld()
    world.kube.put(exoscaleNodeClassKind, aNodeClass())
    await world.settle(world.provider.create(aClaim()))
    assert.ok(world.cloud.requests.some(({ headers }) => headers['authorization']?.includes('EXOtest')))
    assert.doesNotMatch(everythingTold({ errors: [], world }), /EXOtest/)
  })
})
