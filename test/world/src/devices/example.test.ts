/** The manifests of examples/devices, applied as they stand: GPU nodes of Exoscale whose driver publishes devices. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { test } from 'node:test'
import { karpenterKinds, kinds } from '@tenon/api'
import { applyYaml } from '../testing/apply-yaml.test-support.ts'
import { World } from '../world.ts'

const minute = 60_000
const example = resolve(import.meta.dirname, '../../../../examples/devices/devices.yaml')

test('BUF-39 BUF-40 pods of the example run on one node with as many GPUs as they claim', async () => {
  const world = await World.start({ seed: 9, provider: 'exoscale', cloudSettings: { gpuDriver: true } })
  const { clock, cluster } = world
  const { local } = cluster.server
  for (const manifest of readFileSync(example, 'utf8').split(/^---\n/m))
    assert.deepEqual(await applyYaml(world, manifest), { status: 201, message: '' }, manifest)
  const running = await world.startOperator()
  const phases = () => world.pods().map(({ status }) => status?.phase)
  assert.ok(
    await clock.advanceUntil(() => phases().every((phase) => phase === 'Running'), 10 * minute),
    JSON.stringify(world.pods().map(({ metadata, status }) => [metadata.name, status])),
  )
  const claims = local.list(karpenterKinds.nodeClaim)
  assert.equal(claims.length, 1)
  assert.equal(claims[0]?.metadata.annotations?.['karpenter.sh/requested-dra-drivers'], 'gpu.nvidia.com')
  assert.deepEqual(
    cluster.cloud.instances().map(({ type }) => type),
    ['gpua30.large'],
  )
  const results = local
    .list(kinds.resourceClaim)
    .flatMap(({ status }) => status?.allocation?.devices?.results ?? [])
  const requests = results.map(({ request = '' }) => request)
  assert.deepEqual(
    requests.toSorted((a, b) => (a < b ? -1 : 1)),
    ['gpu', 'gpu', 'gpu/usual'],
  )
  assert.equal(new Set(results.map(({ device }) => device)).size, 3)
  await world.bury(running)
  await world.stop()
})
