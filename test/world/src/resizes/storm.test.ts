/** Resizes of pods in place, granted and deferred by kubelets: nodes are kept for what pods hold (buffers-and-dra.md 4). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { kinds, type Pod } from '@tenon/api'
import { integerBetween, SeededRandom } from '@tenon/runtime'
import * as b from '../capacity-buffers/buffer-stage.test-support.ts'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'

function resize(stage: Stage, pod: Pod, cpu: string): void {
  const containers = pod.spec.containers.map((container) => ({
    ...container,
    resources: { requests: { ...container.resources?.requests, cpu } },
  }))
  const { name, namespace } = pod.metadata
  stage.world.cluster.server.local.patch(kinds.pod, namespace, name, { spec: { containers } }, 'resize')
}

function waiting(stage: Stage, why: 'Deferred' | 'Infeasible'): number {
  return stage.world
    .pods()
    .filter(({ status }) =>
      status?.conditions?.some(({ type, reason }) => type === 'PodResizePending' && reason === why),
    ).length
}

/** NodeClaims that were launched for pods that had no node, not in place of nodes that go. */
async function launchedForPods(stage: Stage): Promise<number> {
  const { registry } = stage.operator.operator.metrics
  const metric = await registry.getSingleMetric('karpenter_nodeclaims_created_total')?.get()
  return (metric?.values ?? [])
    .filter(({ labels }) => labels['reason'] === 'provisioned')
    .reduce((sum, { value }) => sum + value, 0)
}

describe('resizes in place', () => {
  test('ASK-29 a storm of resizes of 200 pods launches nothing, and moves few pods', async (t) => {
    const stage = await b.openBuffers(t)
    b.deployment(stage, 'web', 200, b.podSpec('500m'))
    await stage.pass(10 * minutes)
    assert.equal(b.bound(stage, 'web'), 200)
    const before = [stage.world.nodes().length, await launchedForPods(stage)]
    const names = new Set(stage.world.pods().map(({ metadata }) => metadata.name))
    const made = new Set<string>()
    const random = new SeededRandom(5)
    let deferred = 0
    let infeasible = 0
    for (let turn = 0; turn < 30; turn++) {
      const sizes = turn % 10 < 5 ? ['100m'] : ['1', '1', '1500m', '9']
      for (const pod of stage.world.pods())
        if (integerBetween(random, 1, 10) <= 3)
          resize(stage, pod, sizes[integerBetween(random, 0, sizes.length - 1)] ?? '')
      await stage.pass(30 * seconds)
      for (const { metadata } of stage.world.pods()) if (!names.has(metadata.name)) made.add(metadata.name)
      deferred = Math.max(deferred, waiting(stage, 'Deferred'))
      infeasible = Math.max(infeasible, waiting(stage, 'Infeasible'))
    }
    assert.ok(deferred > 30 && infeasible > 5, 'kubelets have no room for many of them')
    const [nodes = 0, launched] = before
    assert.equal(await launchedForPods(stage), launched)
    assert.ok(stage.world.nodes().length <= nodes)
    assert.ok(made.size <= 50, `${made.size} pods were moved`)
  })

  test('ASK-29 pods that were made smaller are not moved to where they would not fit when they are made again', async (t) => {
    const stage = await b.openBuffers(t)
    b.deployment(stage, 'web', 60, b.podSpec('500m'))
    await stage.pass(10 * minutes)
    const launched = await launchedForPods(stage)
    for (let turn = 0; turn < 3; turn++) {
      for (const pod of stage.world.pods()) resize(stage, pod, '100m')
      await stage.pass(12 * minutes)
    }
    assert.equal(await launchedForPods(stage), launched)
    assert.equal(b.bound(stage, 'web'), 60)
  })
})
