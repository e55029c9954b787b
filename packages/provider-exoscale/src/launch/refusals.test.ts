import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { exoscaleNodeClassKind } from '../nodeclass/types.ts'
import { aClaim, aNodeClass, aWorld, type World } from '../testing/world.test-support.ts'
import type { Fault } from '../testing/fake-cloud.test-support.ts'

const creation = /^\/instance$/

function ready(): World {
  const world = aWorld()
  world.kube.put(exoscaleNodeClassKind, aNodeClass())
  return world
}

/** How a launch fails when its creation is answered so, as often as it is asked. */
async function failure(...faults: Fault[]): Promise<Error & { kind: string; retryAfterMs?: number }> {
  const world = ready()
  world.cloud.disturb('POST', creation, ...faults)
  return world.settle(world.provider.create(aClaim())).then(
    () => assert.fail('expected an error'),
    (error: Error & { kind: string }) => error,
  )
}

describe('a refused launch', () => {
  const said = '{"message":"said by the API"}'
  const cases: readonly [status: number, kind: string, fix: RegExp][] = [
    [400, 'create', /check templateID, diskSize and the groups/],
    [401, 'unauthorized', /EXOSCALE_API_KEY and EXOSCALE_API_SECRET.*expired.*clock of this host/],
    [402, 'create', /check the billing/],
    [403, 'unauthorized', /IAM role of EXOSCALE_API_KEY allows/],
    [409, 'create', /retried/],
    [422, 'create', /check templateID, diskSize and the groups/],
  ]
  for (const [status, kind, fix] of cases) {
    it(`with status ${status} keeps what the API said and tells the user what to do`, async () => {
      const error = await failure({ status, body: said })
      assert.equal(error.kind, kind)
      assert.match(error.message, new RegExp(`answered ${status}.*said by the API; `))
      assert.match(error.message, fix)
    })
  }

  it('is throttled after five attempts, and says for how long', async () => {
    const throttled = { status: 429, headers: { 'retry-after': '7' }, body: said }
    const error = await failure(...Array.from({ length: 5 }, () => throttled))
    assert.deepEqual([error.kind, error.retryAfterMs], ['throttled', 7000])
    assert.match(error.message, /too many calls with this API key/)
  })

  it('for want of quota names the quota and whom to ask', async () => {
    const world = ready()
    world.cloud.quotas.set('instance', { usage: 20, limit: 20 })
    world.cloud.disturb('POST', creation, { status: 403, body: said })
    await assert.rejects(world.settle(world.provider.create(aClaim())), {
      kind: 'insufficientCapacity',
      message: /the quota of instances is used up; ask Exoscale to raise it.*said by the API/,
    })
  })

  it('whose operation is busy is tried again, and leaves neither instance nor token', async () => {
    const world = ready()
    world.cloud.creationFailures = [{ reason: 'busy', message: 'try later' }]
    await assert.rejects(world.settle(world.provider.create(aClaim())), {
      kind: 'create',
      message: /busy: try later/,
    })
    await world.settle(world.provider.create(aClaim()))
    const alive = [...world.cloud.instances.values()].filter(({ state }) => state === 'running')
    assert.equal(alive.length, 1)
  })
})
