import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aWaitingPod, readyPool } from '../deciding.test-support.ts'
import { ObservedCluster } from '../observed-cluster.test-support.ts'
import type { NodeEvidence, UselessFinding } from './node-evidence.ts'

const minute = 60_000
const hour = 60 * minute
const pod = aWaitingPod('app')

function anEvidence(): { readonly cluster: ObservedCluster; readonly evidence: NodeEvidence } {
  const cluster = new ObservedCluster()
  cluster.see(readyPool)
  return { cluster, evidence: cluster.state.evidence }
}

function finding(
  cluster: ObservedCluster,
  boughtMs: number,
  claim: string,
  more: Partial<UselessFinding> = {},
): UselessFinding {
  const nodePool = readyPool.metadata.name
  return {
    pod,
    nodePool,
    node: `node-${claim}`,
    claim,
    cause: 'unused',
    words: '',
    boughtMs,
    isServed: false,
    atMs: cluster.clock.now(),
    ...more,
  }
}

test('RPB-5 whatever the cause, two useless nodes come in the first hour and six in the first day', async () => {
  const { cluster, evidence } = anEvidence()
  const startMs = cluster.clock.now()
  const launchedMs: number[] = []
  while (cluster.clock.now() - startMs < 24 * hour) {
    if (evidence.holdOn(pod) === undefined) {
      const boughtMs = cluster.clock.now()
      launchedMs.push(boughtMs - startMs)
      await cluster.clock.advance(minute)
      evidence.useless(finding(cluster, boughtMs, `claim-${launchedMs.length}`))
    }
    await cluster.clock.advance(minute)
  }
  assert.equal(launchedMs.filter((ms) => ms < hour).length, 2)
  assert.equal(launchedMs.length, 6)
})

test('RPT-4 after a refusal that nothing explains an hour passes', () => {
  const { cluster, evidence } = anEvidence()
  const now = cluster.clock.now()
  const untilMs = evidence.useless(finding(cluster, now - minute, 'a', { cause: 'refused' }))?.untilMs
  assert.equal((untilMs ?? 0) - now, hour)
})

test('RPB-6 of a workload whose pods run on such nodes nothing is held', () => {
  const { cluster, evidence } = anEvidence()
  evidence.useless(finding(cluster, cluster.clock.now() - minute, 'a', { cause: 'refused', isServed: true }))
  assert.equal(evidence.holdOn(pod), undefined)
})

test('RPB-5 nodes that were bought together count as one', async () => {
  const { cluster, evidence } = anEvidence()
  const boughtMs = cluster.clock.now()
  await cluster.clock.advance(minute)
  for (const claim of ['a', 'b', 'c']) evidence.useless(finding(cluster, boughtMs, claim))
  assert.equal(evidence.holdOn(pod), undefined)
})

test('RPB-5 a pod that starts on such a node ends the hold', () => {
  const { cluster, evidence } = anEvidence()
  evidence.useless(finding(cluster, cluster.clock.now() - minute, 'a', { cause: 'refused' }))
  assert.notEqual(evidence.holdOn(pod), undefined)
  evidence.served(pod, readyPool.metadata.name)
  assert.equal(evidence.holdOn(pod), undefined)
})

test('RPB-5 other NodePools serve a workload that one is held for', () => {
  const { cluster, evidence } = anEvidence()
  cluster.see({ ...readyPool, metadata: { ...readyPool.metadata, name: 'other', uid: 'other' } })
  evidence.useless(finding(cluster, cluster.clock.now() - minute, 'a', { cause: 'refused' }))
  assert.equal(evidence.holdOn(pod), undefined)
  const { nodeAffinity } = evidence.adjusted(pod).spec.affinity ?? {}
  assert.deepEqual(nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms, [
    {
      matchExpressions: [
        { key: 'karpenter.sh/nodepool', operator: 'NotIn', values: [readyPool.metadata.name] },
      ],
    },
  ])
})
