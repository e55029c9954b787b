/** Room that preemption is about to give to a group (gangs.md 7.1). */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { kinds } from '@tenon/api'
import { unscheduled, waitingPod } from '../testing/pools.test-support.ts'
import { seconds } from '../testing/stage.test-support.ts'
import { group, liveClaims, openGangs } from './gang-stage.test-support.ts'

const condition = { type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler', message: '' }

describe('a group for which the scheduler preempts pods', () => {
  /** Two pods of 1.5 CPU on a node of 4 end for 30 s, and a group of two such pods waits. */
  async function preempting(t: TestContext, priorityClassName?: string) {
    const { stage } = await openGangs(t, { pool: { disruption: { consolidateAfter: 'Never' } } })
    await stage.ready('old')
    const victim = {
      metadata: { finalizers: ['example.com/slow'] },
      spec: {
        terminationGracePeriodSeconds: 30,
        containers: [{ name: 'app', image: 'i', resources: { requests: { cpu: '1500m' } } }],
      },
    }
    for (const name of ['a', 'b']) {
      await stage.pod(name, 'node-old', victim)
      stage.patch(kinds.pod, name, { status: { conditions: [condition] } }, 'status', 'default')
      stage.world.cluster.server.local.delete(kinds.pod, 'default', name, { gracePeriodSeconds: 30 })
    }
    group(stage, 'train', 2)
    for (const name of ['train-0', 'train-1'])
      waitingPod(stage, name, {
        cpu: '1500m',
        status: unscheduled(),
        labels: { 'scheduling.x-k8s.io/pod-group': 'train' },
        ...(priorityClassName !== undefined && { spec: { priorityClassName } }),
      })
    return stage
  }

  test('GNG-32 gets no node during their grace period, and one if it still waits after that', async (t) => {
    const stage = await preempting(t, 'system-node-critical')
    await stage.pass(20 * seconds)
    assert.equal(liveClaims(stage).length, 1)
    await stage.pass(30 * seconds)
    assert.equal(liveClaims(stage).length, 2)
  })

  test('GNG-32 pods that are preempted for others give no room to a group of no higher priority', async (t) => {
    const stage = await preempting(t)
    await stage.pass(20 * seconds)
    assert.equal(liveClaims(stage).length, 2)
  })
})
