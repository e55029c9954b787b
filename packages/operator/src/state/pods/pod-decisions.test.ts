/** What is remembered about decisions on pods, and what the metrics hear of it. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { NodePool } from '@tenon/api'
import { silentLogger } from '@tenon/runtime'
import { DecisionMemory } from '../../provisioning/decision-memory.ts'
import { LimitReport } from '../../nodepool/limit-report.ts'
import { SchedulingReport } from '../../provisioning/scheduling-report.ts'
import { Metrics } from '../../metrics/metrics.ts'
import { defaultSettings } from '../../settings.ts'
import { aPod, aPool } from '../nodes/nodes.test-support.ts'
import { nodeClassKind, ObservedCluster } from '../observed-cluster.test-support.ts'

const seconds = 1000
const waiting = aPod('pod')
const healthyPool: NodePool = {
  ...aPool(),
  status: {
    conditions: [
      {
        type: 'NodeRegistrationHealthy',
        status: 'True',
        reason: 'X',
        message: '',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      },
    ],
  },
}

/** A cluster with one waiting pod, and the report that decisions about it are told to. */
function reporting() {
  const cluster = new ObservedCluster()
  const { clock, state, caches } = cluster
  cluster.see(waiting)
  const metrics = new Metrics({ clock })
  const events = { record: () => undefined }
  const provider = { nodeClasses: [nodeClassKind], wellKnownLabels: [] }
  const logger = silentLogger
  const report = new SchedulingReport({
    events,
    metrics,
    waitingPods: metrics.waitingPods,
    logger,
    limits: new LimitReport({ kubernetes: { caches, events }, settings: defaultSettings, logger }),
    caches,
    state,
    provider,
    memory: new DecisionMemory({ caches, state, metrics, clock }),
    groups: { decided: () => undefined },
  })
  const fail = () => {
    const refused = [{ pod: waiting, reason: 'no room' }]
    const result = { failures: [], undecided: [] }
    for (const _ of report.failures(result, refused)) continue
  }
  return { cluster, clock, report, fail, metrics, of: (uid = 'uid-pod') => state.podDecisions.get(uid) }
}

describe('what is remembered about decisions', () => {
  test('STA-48 since when a pod fits a pool that works is kept, of other pools nothing', async () => {
    const { clock, report, of } = reporting()
    report.placed(waiting, aPool(), 'claim')
    assert.equal(of().schedulableMs, clock.now())
    assert.equal(of().schedulableHealthyMs, undefined)
    await clock.advance(seconds)
    const first = clock.now()
    report.placed(waiting, healthyPool, 'claim')
    assert.equal(of().schedulableHealthyMs, first)
    await clock.advance(seconds)
    report.placed(waiting, healthyPool, 'claim')
    assert.equal(of().schedulableHealthyMs, first)
    report.placed(waiting, aPool(), 'claim')
    assert.equal(of().schedulableHealthyMs, undefined)
  })

  test('STA-49 a pod that fits no longer loses everything but the time of the first decision', async () => {
    const { clock, report, fail, of } = reporting()
    const first = clock.now()
    report.placed(waiting, healthyPool, 'claim')
    assert.deepEqual(of(), {
      decidedMs: first,
      schedulableMs: first,
      schedulableHealthyMs: first,
      nodeClaim: 'claim',
    })
    await clock.advance(seconds)
    fail()
    assert.deepEqual(of(), { decidedMs: first, failure: 'no room' })
  })

  test('STA-50 of a pod that runs somewhere already nothing is remembered', () => {
    const { cluster, report, of } = reporting()
    const bound = aPod('bound', 'node')
    cluster.see(bound)
    report.placed(bound, healthyPool, 'claim')
    assert.deepEqual(of('uid-bound'), {})
  })

  test('STA-51 the time from first sight to first decision is measured once', async () => {
    const { cluster, clock, report, fail, metrics } = reporting()
    cluster.state.podDecisions.acknowledge('uid-pod', clock.now())
    await clock.advance(3 * seconds)
    cluster.state.podDecisions.acknowledge('uid-pod', clock.now())
    report.placed(waiting, healthyPool, undefined)
    await clock.advance(seconds)
    report.placed(waiting, healthyPool, 'claim')
    fail()
    const { values } = await metrics.schedulingDecisionDuration.get()
    const value = (suffix: string) => values.find(({ metricName }) => metricName?.endsWith(suffix))?.value
    assert.deepEqual([value('_count'), value('_sum')], [1, 3])
  })

  test('STA-52 with the pod goes all that was decided about it', () => {
    const { cluster, clock, report, fail, of } = reporting()
    cluster.state.podDecisions.acknowledge('uid-pod', clock.now())
    report.placed(waiting, healthyPool, 'claim')
    cluster.miss(waiting)
    assert.deepEqual(of(), {})
    // A decision that was under way comes too late.
    report.placed(waiting, healthyPool, 'claim')
    fail()
    assert.deepEqual(of(), {})
  })
})
