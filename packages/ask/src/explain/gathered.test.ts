/** Which pending pods share a card, and what is said of pods that ask for devices (page.md 1). */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { type InstanceType, labels, type NodePool, type Pod } from '@tenon/api'
import { renderPodReason } from '@tenon/engine'
import { Study } from '../study/study.ts'
import { aPending, aPool, aSnapshot, aType } from '../testing/clusters.test-support.ts'
import { gathered } from './gathered.ts'
import { PodExplainer } from './pod.ts'

const gpu = 'nvidia.com/gpu'
const plain = aType('gpu-4', 4, { price: 1 })
const gpuType: InstanceType = { ...plain, capacity: { ...plain.capacity, [gpu]: 1 } }
const types = [aType('small', 2), ...Array.from({ length: 9 }, (_, at) => aType(`a${at}`, 4)), gpuType]

function poolOf(name: string, ...values: readonly string[]): NodePool {
  return aPool(name, {}, { requirements: [{ key: labels.instanceType, operator: 'In', values }] })
}

async function studied(t: TestContext, pools: readonly NodePool[], pods: readonly Pod[]): Promise<Study> {
  const study = await Study.open(aSnapshot([...pools, ...pods], types))
  t.after(() => study.close())
  return study
}

const job = ['job-a', 'job-b'].map((name) => aPending(name, { cpu: '1', [gpu]: '1' }, {}, 'job'))

test('PGE-2 a GPU Job and a pod of 900 CPUs are two cards, and the fixes of each make its own pods run', async (t) => {
  const study = await studied(t, [poolOf('web', 'small')], [...job, aPending('huge', { cpu: '900' })])
  const explainer = new PodExplainer(study)
  const groups = gathered(await explainer.explained(explainer.waiting()))
  assert.deepEqual(
    groups.map(({ pods, example }) => [pods, example.summary]),
    [
      [2, `No instance type that a NodePool allows has ${gpu}; no NodePool can launch a node for it`],
      [1, 'No NodePool can launch a node for it'],
    ],
  )
  for (const [name, pods, first] of [
    ['job-a', 2, `allow gpu-4 for ${labels.instanceType} in NodePool web`],
    ['huge', 1, 'request 2 of cpu instead of 900'],
  ] as const) {
    const pod = study.operator.caches.pods.get({ namespace: 'default', name })
    assert.ok(pod)
    const { misses = [] } = (await explainer.explain(pod, { missesMs: 60_000 })).pending ?? {}
    assert.equal(misses[0]?.change.words, first)
    for (const { running, waiting } of misses) assert.deepEqual([running, waiting], [pods, pods])
  }
})

test('PGE-2 one more type comes before the whole pool, whatever each costs', async (t) => {
  const study = await studied(t, [poolOf('web', 'small')], [aPending('db', { cpu: '3' })])
  const pod = study.operator.caches.pods.get({ namespace: 'default', name: 'db' })
  assert.ok(pod)
  const { pending } = await new PodExplainer(study).explain(pod, { missesMs: 60_000 })
  const kinds = (pending?.misses ?? []).map(({ change }) => change.kind)
  assert.equal(kinds.at(-1), 'dropPoolRequirement')
  assert.ok(kinds.filter((kind) => kind === 'widenPoolRequirement').length > 1)
})

test('PGE-2 pods that other types would hold are another card, and amounts alone are none', async (t) => {
  const pods = ['3', '3500m', '5'].map((cpu) => aPending(`db-${cpu}`, { cpu }))
  const study = await studied(t, [poolOf('web', 'small')], pods)
  const explainer = new PodExplainer(study)
  const groups = gathered(await explainer.explained(explainer.waiting()))
  assert.deepEqual(
    groups.map((group) => group.pods),
    [2, 1],
  )
})

test('PGE-3 a pod that asks for devices is told first whether any allowed type has them, in the event too', async (t) => {
  for (const [pools, first] of [
    [[poolOf('web', 'small'), poolOf('more', 'a1')], `No instance type that a NodePool allows has ${gpu}`],
    [
      [poolOf('web', 'small'), aPool('ml', {}, { taints: [{ key: 'ml', effect: 'NoSchedule' }] })],
      `Instance types with ${gpu} are allowed by NodePool ml`,
    ],
  ] as const) {
    const study = await studied(t, pools, job)
    const explainer = new PodExplainer(study)
    const [{ explanation } = {}] = await explainer.explained(explainer.waiting())
    assert.ok(explanation?.summary.startsWith(first), explanation?.summary)
    const [failure] = (await study.decide()).result.failures
    assert.ok(failure)
    const event = renderPodReason(failure.reason)
    assert.equal(event.slice(0, first.length).toLowerCase(), first.toLowerCase())
  }
})
