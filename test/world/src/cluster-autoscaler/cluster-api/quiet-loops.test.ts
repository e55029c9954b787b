import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCredentials } from '@tenon/devcluster'
import { VirtualClock } from '@tenon/runtime'
import { HubWorld } from './hub-world.ts'

const credentials = await createCredentials(Date.UTC(2026, 0, 1))

/** Requests to the hub in five minutes in which nothing happens, without their queries. */
async function quietRequests(count: number): Promise<readonly string[]> {
  const clock = new VirtualClock(undefined, 1)
  const requests: string[] = []
  const world = await HubWorld.start({
    seed: 1,
    groups: Array.from({ length: count }, (_, index) => ({
      name: `group-${index}`,
      cpu: 4,
      memory: '8Gi',
      replicas: 1,
      bounds: { min: 1, max: 3 },
    })),
    controlPlanes: 0,
    credentials,
    clock,
    ports: {
      api: (inner) => inner,
      hub: (inner) => ({
        send: (request, signal) => {
          const isWatch = request.path.includes('watch=true')
          requests.push(`${isWatch ? 'WATCH' : request.method} ${request.path.split('?')[0]}`)
          return inner.send(request, signal)
        },
      }),
      groups: (inner) => inner,
    },
  })
  const autoscaler = world.startAutoscaler()
  await clock.advance(120_000)
  requests.splice(0)
  await clock.advance(300_000)
  assert.equal(world.nodes().length, count)
  assert.equal(autoscaler.failure(), undefined)
  await autoscaler.end()
  await world.stop()
  return requests.toSorted()
}

test('CAG-59 quiet loops ask the hub as often with 40 groups as with 4, and never for one object', async () => {
  const [few, many] = [await quietRequests(4), await quietRequests(40)]
  assert.deepEqual(many, few)
  // Watches, and the lists that check them.
  const others = many.filter(
    (each) => !/^(?:WATCH|GET) \/apis\/cluster\.x-k8s\.io\/v1beta2\/[a-z]+$/.test(each),
  )
  assert.deepEqual(others, [])
})
