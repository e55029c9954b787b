/** Drains that something holds: what is said of them, and how often. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotations, karpenterKinds, type KubeObject, kinds, type ResourceType } from '@tenon/api'
import { metricsHandler } from '@tenon/operator'
import { rfc3339 } from '@tenon/runtime'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'

interface EventObject extends KubeObject {
  readonly reason: string
  readonly source: { readonly component: string }
  readonly involvedObject: { readonly kind: string; readonly name: string }
}

function budget(stage: Stage, name: string): void {
  stage.world.create(kinds.podDisruptionBudget, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name, namespace: 'default' },
    spec: { minAvailable: 1000, selector: { matchLabels: { [name]: 'yes' } } },
  })
}

function place(stage: Stage, name: string, node: string, parts: Partial<KubeObject['metadata']>): void {
  stage.world.create(kinds.pod, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', ...parts },
    spec: {
      nodeName: node,
      terminationGracePeriodSeconds: 30,
      containers: [{ name: 'app', image: 'registry.k8s.io/pause' }],
    },
  })
}

/** A pod that runs. */
function pod(stage: Stage, name: string, node: string, parts: Partial<KubeObject['metadata']>): void {
  place(stage, name, node, parts)
  const startTime = rfc3339(stage.now)
  stage.patch(kinds.pod, name, { status: { phase: 'Running', startTime } }, 'status', 'default')
}

const protectedFor = (value: string) => ({ annotations: { [annotations.doNotDisrupt]: value } })

/** @returns the body of a page of the metrics port. */
async function page(stage: Stage, path: string): Promise<string> {
  const handler = metricsHandler(stage.operator.operator)
  const { status, body } = await handler({ method: 'GET', path, headers: {} })
  assert.equal(status, 200)
  let text = ''
  for await (const chunk of body) text += String(chunk)
  return text
}

test('a drain that 2000 pods block makes one event per node in 5 min, which names what blocks it', async (t) => {
  const stage = await Stage.open(t)
  const nodes = ['a', 'b', 'c', 'd']
  for (const claim of nodes) await stage.ready(claim)
  budget(stage, 'web')
  budget(stage, 'twice')
  for (let i = 0; i < 2000; i++) {
    const node = `node-${nodes[i % nodes.length]}`
    if (i < 40) pod(stage, `web-${i}`, node, { labels: { web: 'yes' } })
    else if (i < 48) pod(stage, `twice-${i}`, node, { labels: { web: 'yes', twice: 'yes' } })
    else if (i < 148) pod(stage, `kept-${i}`, node, protectedFor('3h'))
    else place(stage, `kept-${i}`, node, protectedFor('true'))
  }
  await stage.pass(5 * seconds)
  const written = new Map<string, number[]>()
  const note = ({ reason, source, involvedObject: { kind, name } }: EventObject) => {
    // That a node which goes is no candidate for disruption is not said by the drain.
    if (source.component !== 'karpenter' || kind === 'NodeClaim' || reason === 'DisruptionBlocked') return
    const subject = `${kind}/${name}`
    written.set(subject, [...(written.get(subject) ?? []), stage.now])
  }
  stage.world.cluster.server.local.subscribe(kinds.event as ResourceType<EventObject>, {
    added: note,
    updated: note,
  })
  for (const claim of nodes) stage.delete(karpenterKinds.nodeClaim, claim)
  const cpu = process.cpuUsage()
  await stage.pass(6 * minutes)
  const { user, system } = process.cpuUsage(cpu)
  t.diagnostic(`6 min took ${((user + system) / 1e6).toFixed(1)} s of processor time`)

  for (const claim of nodes) {
    const times = written.get(`Node/node-${claim}`) ?? []
    assert.equal(times.length, 2)
    assert.ok(times.every((at, i) => i === 0 || at - (times[i - 1] ?? 0) >= 5 * minutes))
  }
  const repeated = [...written].filter(
    ([subject, times]) => subject.startsWith('Pod/kept-') && times.length > 1,
  )
  assert.deepEqual(repeated, [], 'a pod that waits is told of its protection once')
  const message = stage.events('FailedDraining').find(({ object }) => object === 'Node/node-a')?.message ?? ''
  assert.equal(
    message,
    'Waiting for 500 pods to leave the node: 2 covered by more than one PodDisruptionBudget, which evictions do not allow (default/twice, default/web; default/twice-40, default/twice-44); 10 held by PodDisruptionBudget default/web, which can never allow one, as it must keep 1000 of 48 pods (minAvailable 1000): run more replicas, or set maxUnavailable: 1 in place of minAvailable (default/web-0, default/web-12 and 8 others); 488 protected by karpenter.sh/do-not-disrupt until it is removed (default/kept-100, default/kept-1000 and 486 others)',
  )
  const perPod = (await stage.metric('pods_eviction_requests_total')) / 48
  assert.ok(perPod < 50, `${perPod} evictions asked for per pod`)
})

test('a drain can be looked at, pod by pod, with the rule and the deadline', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a', { terminationGracePeriod: '10m' })
  await stage.ready('b')
  budget(stage, 'web')
  pod(stage, 'web-0', 'node-a', { labels: { web: 'yes' } })
  pod(stage, 'kept', 'node-a', protectedFor('true'))
  pod(stage, 'elsewhere', 'node-b', protectedFor('true'))
  await stage.pass(2 * seconds)
  assert.deepEqual(JSON.parse(await page(stage, '/debug/drains')), { drains: [] })
  await stage.deleteClaim('a')
  const since = stage.nodeNow('node-a')?.metadata.deletionTimestamp ?? ''
  const deadlineMs = Date.parse(since) + 10 * minutes
  await stage.pass(minutes)
  const forcedAt = rfc3339(deadlineMs - 30 * seconds)
  const expected = {
    node: 'node-a',
    nodeClaim: 'a',
    since,
    deadline: rfc3339(deadlineMs),
    pods: [
      {
        namespace: 'default',
        name: 'kept',
        rule: { kind: 'doNotDisrupt', by: annotations.doNotDisrupt },
        forcedAt,
      },
      {
        namespace: 'default',
        name: 'web-0',
        rule: {
          kind: 'podDisruptionBudget',
          budget: 'default/web',
          currentHealthy: 0,
          desiredHealthy: 1000,
          outlook: {
            isNever: true,
            text: 'can never allow one, as it must keep 1000 of 1 pod (minAvailable 1000): run more replicas, or set maxUnavailable: 1 in place of minAvailable',
          },
        },
        forcedAt,
      },
    ],
    volumes: [],
  }
  assert.deepEqual(JSON.parse(await page(stage, '/debug/drains')), { drains: [expected] })
  assert.match(
    stage.events('FailedDraining')[0]?.message ?? '',
    new RegExp(`^Waiting for 2 pods to leave the node; the rest is deleted by ${rfc3339(deadlineMs)}: `),
  )
})
