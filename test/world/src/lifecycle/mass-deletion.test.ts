/** Many NodeClaims that somebody deletes at once. All 3,000 of the sheet: `DELETED_CLAIMS=3000`. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { karpenterKinds, kinds, unregisteredTaint } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const count = Number(process.env['DELETED_CLAIMS'] ?? 8)
/** The first of each node is held by a PodDisruptionBudget. */
const podsPerNode = 45
/** Requests to the API server, as in the product. */
const rate = { perSecond: 200, burst: 300 }
const evictionPath = /\/pods\/[^/?]+\/eviction/
const eventPath = /\/events(?:\/|\?|$)/

/** What the operator asked for. */
class Requests {
  /** Evictions that were granted. */
  readonly evictedAtMs: number[] = []
  /** When events were recorded, by object and reason; they may be sent later. */
  readonly events = new Map<string, number[]>()

  note(
    request: { readonly method: string; readonly path: string; readonly body: string },
    atMs: number,
  ): void {
    const { method, path, body } = request
    if (method === 'POST' && evictionPath.test(path)) this.evictedAtMs.push(atMs)
    if (method === 'GET' || !eventPath.test(path)) return
    const event = JSON.parse(body) as {
      reason?: string
      lastTimestamp: string
      involvedObject?: { kind: string; name: string }
    }
    const { involvedObject, reason } = event
    // An event that is repeated is patched under its name.
    const key = involvedObject ? `${involvedObject.kind}/${involvedObject.name} ${reason}` : path
    this.events.set(key, [...(this.events.get(key) ?? []), Date.parse(event.lastTimestamp)])
  }
}

function heapMiB(): number {
  collect()
  return process.memoryUsage().heapUsed / 2 ** 20
}

/** Nodes with pods of every claim. */
async function populate(stage: Stage, names: readonly string[]): Promise<void> {
  for (const name of names) stage.world.create(karpenterKinds.nodeClaim, stage.aClaim(name))
  await stage.pass(20 * seconds)
  const amounts = { cpu: '4', memory: '8Gi', pods: '110' }
  const at = rfc3339(stage.now)
  const ready = { type: 'Ready', status: 'True', reason: 'Kubelet', message: '' }
  const conditions = [{ ...ready, lastHeartbeatTime: at, lastTransitionTime: at }]
  const status = { capacity: amounts, allocatable: amounts, conditions }
  for (const name of names) {
    const node = `node-${name}`
    stage.world.create(kinds.node, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: node },
      spec: { providerID: `fake://${name}`, taints: [unregisteredTaint] },
    })
    stage.patch(kinds.node, node, { status }, 'status')
    for (let i = 0; i < podsPerNode; i++) {
      const pod = `${name}-${i}`
      stage.world.create(kinds.pod, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: pod, namespace: 'default', labels: { app: i === 0 ? 'held' : 'free' } },
        spec: {
          nodeName: node,
          terminationGracePeriodSeconds: 30,
          containers: [{ name: 'app', image: 'registry.k8s.io/pause' }],
        },
      })
      stage.patch(kinds.pod, pod, { status: { phase: 'Running', startTime: at } }, 'status', 'default')
    }
  }
  stage.world.create(kinds.podDisruptionBudget, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'held', namespace: 'default' },
    spec: { maxUnavailable: 0, selector: { matchLabels: { app: 'held' } } },
  })
  await stage.pass(20 * seconds)
  for (const name of names) assert.equal(stage.condition(name, 'Initialized')?.status, 'True', name)
}

test('SCA-12 NodeClaims that are deleted at once drain at the eviction rate, with few events and flat memory', async (t) => {
  const requests = new Requests()
  const stage = await Stage.open(t, {
    rate,
    apiPath: (inner, clock) => ({
      send: async (request, signal) => {
        const answer = await inner.send(request, signal)
        const { method, path, body: sent } = request
        const body = typeof sent === 'string' ? sent : new TextDecoder().decode(sent)
        if (answer.status < 300) requests.note({ method, path, body }, clock.now())
        return answer
      },
    }),
  })
  const names = Array.from({ length: count }, (_, i) => `claim-${i}`)
  await populate(stage, names)
  requests.events.clear()
  const startMs = stage.now
  for (const name of names) stage.delete(karpenterKinds.nodeClaim, name)

  const free = count * (podsPerNode - 1)
  await stage.pass((free / rate.perSecond) * seconds + 20 * seconds)
  assert.equal(requests.evictedAtMs.length, free, 'all pods that may go were evicted')
  for (const [nth, atMs] of requests.evictedAtMs.entries()) {
    const soonestMs = ((nth + 1 - rate.burst) / rate.perSecond) * seconds - 1
    assert.ok(atMs - startMs >= soonestMs, `eviction ${nth} after ${atMs - startMs} ms`)
  }

  // The others hold their nodes for as long as it takes.
  await stage.pass(1 * minutes)
  const before = heapMiB()
  await stage.pass(5 * minutes)
  const after = heapMiB()
  t.diagnostic(`${before.toFixed(1)} MiB of heap, ${after.toFixed(1)} MiB five minutes later`)
  assert.ok(after < before * 1.1, `${before} MiB became ${after} MiB`)
  assert.ok(names.every((name) => requests.events.has(`Node/node-${name} FailedDraining`)))
  for (const [what, times] of requests.events) {
    const gaps = times.slice(1).map((atMs, at) => atMs - (times[at] ?? 0))
    assert.ok(Math.min(...gaps, Infinity) >= 5 * minutes, `${what}: ${gaps.join(', ')} ms`)
  }
})
