import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '@tenon/api'
import { Gauge } from 'prom-client'
import { SchedulingReport } from './scheduling-report.ts'

const pod: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'shop', uid: 'u' },
  spec: { containers: [] },
}

function aReport() {
  const gauge = (name: string, labelNames: readonly string[]) =>
    new Gauge({ name, help: name, labelNames: [...labelNames], registers: [] })
  const waitingPods = gauge('tenon_pods_waiting', ['code'])
  const metrics = {
    ignoredPods: gauge('ignored', []),
    unschedulablePods: gauge('unschedulable', ['controller']),
    pendingPodsByZone: gauge('zones', ['controller', 'zone']),
  }
  const deps = Object.assign({} as ConstructorParameters<typeof SchedulingReport>[0], {
    metrics,
    waitingPods,
    memory: { failed: () => undefined },
    caches: { nodePools: { list: () => [] } },
  })
  const report = new SchedulingReport(deps)
  const counted = async () => {
    const { values } = await waitingPods.get()
    return Object.fromEntries(values.map(({ labels, value }) => [String(labels['code']), value]))
  }
  return { report, counted }
}

test('PGE-1 pods that are left out are counted also when there is nothing else to decide, or no NodePool', async () => {
  const { report, counted } = aReport()
  report.ignored([{ pod, reason: 'its volume is missing', isSilent: true }])
  report.nothingToDo()
  assert.deepEqual(await counted(), { leftOut: 1 })
  assert.equal(report.withoutPools([], []).next().done, true)
  assert.deepEqual(await counted(), { leftOut: 1, noPools: 0 })
  report.ignored([])
  report.nothingToDo()
  assert.deepEqual(await counted(), {})
})
