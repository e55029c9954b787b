/** The manifests of examples/gangs, applied as they stand. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { test } from 'node:test'
import { karpenterKinds, type KubeObject, kinds, type ResourceType } from '@tenon/api'
import { defaultSettings } from '@tenon/operator'
import { applyYaml } from '../testing/apply-yaml.test-support.ts'
import { World } from '../world.ts'

interface EventObject extends KubeObject {
  readonly reason: string
  readonly message: string
  readonly involvedObject: { readonly kind: string; readonly name: string }
}

const example = resolve(import.meta.dirname, '../../../../examples/gangs/training.yaml')

test('GNG-8 of the two trainings of the example one runs whole, the other waits with a reason and runs after it', async () => {
  const world = await World.start({
    seed: 9,
    provider: 'exoscale',
    settings: { featureGates: { ...defaultSettings.featureGates, groupScheduling: true } },
  })
  const { clock, cluster } = world
  const { local } = cluster.server
  for (const manifest of readFileSync(example, 'utf8').split(/^---\n/m))
    assert.deepEqual(await applyYaml(world, manifest), { status: 201, message: '' }, manifest)
  const running = await world.startOperator()
  const podsOf = (name: string) => world.pods().filter(({ metadata }) => metadata.name.startsWith(`${name}-`))
  const boundOf = (name: string) => podsOf(name).filter(({ spec }) => (spec.nodeName ?? '') !== '').length
  const hasEnded = (name: string) =>
    podsOf(name).filter(({ status }) => status?.phase === 'Succeeded').length === 8
  for (let second = 0; second < 15 * 60 && !(hasEnded('first') && hasEnded('second')); second++) {
    await clock.advance(1000)
    assert.ok(local.list(karpenterKinds.nodeClaim).length <= 4)
    for (const name of ['first', 'second']) assert.ok([0, 8].includes(boundOf(name)), name)
    // There is room for one of them.
    assert.ok(boundOf('second') === 0 || hasEnded('first'))
  }
  assert.deepEqual([hasEnded('first'), hasEnded('second')], [true, true])
  const told = local
    .list(kinds.event as ResourceType<EventObject>)
    .find(({ reason, involvedObject: { name } }) => reason === 'GroupNotPlaceable' && name === 'second')
  assert.match(told?.message ?? '', /NodePool training: its limit on the number of nodes is used up/)
  await world.bury(running)
  await world.stop()
})
