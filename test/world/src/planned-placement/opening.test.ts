import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { kinds, labels, type Node, type Pod } from '@tenon/api'
import { type Fate, Field, seconds } from './field.test-support.ts'

const isRegistered = ({ metadata }: Node) => metadata.labels?.[labels.registered] === 'true'
const isReady = ({ status }: Node) =>
  (status?.conditions ?? []).some((condition) => condition.type === 'Ready' && condition.status === 'True')
const isBound = ({ spec }: Pod) => (spec.nodeName ?? '') !== ''
const spreading = {
  topologySpreadConstraints: [
    {
      maxSkew: 1,
      topologyKey: labels.zone,
      whenUnsatisfiable: 'DoNotSchedule' as const,
      labelSelector: { matchLabels: { app: 'spread' } },
    },
  ],
}
const together = {
  affinity: {
    podAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [
        { topologyKey: labels.hostname, labelSelector: { matchLabels: { app: 'group' } } },
      ],
    },
  },
}

interface Opening {
  readonly node: string
  readonly atMs: number
  /** Pods bound by then. */
  readonly bound: ReadonlySet<string>
}

/** Every opening of a Node, as it happens. */
function openings(field: Field): readonly Opening[] {
  const seen: Opening[] = []
  const bound = new Set<string>()
  const { local } = field.world.cluster.server
  local.subscribe<Pod>(kinds.pod, {
    updated: (pod, old) => {
      if (isBound(pod) && !isBound(old)) bound.add(pod.metadata.name)
    },
  })
  local.subscribe<Node>(kinds.node, {
    updated: (node, old) => {
      if (!isRegistered(node) || isRegistered(old)) return
      seen.push({ node: node.metadata.name, atMs: field.world.clock.now(), bound: new Set(bound) })
    },
  })
  return seen
}

function nodesOf(field: Field, app: string): ReadonlySet<string> {
  const pods = field.world.pods().filter(({ metadata }) => metadata.labels?.['app'] === app)
  return new Set(pods.map(({ spec }) => spec.nodeName ?? ''))
}

describe('the nodes of a decision', () => {
  test('open at one moment, however far apart they came', async (t) => {
    const field = await Field.open(t, { latencyMs: 20, rate: { perSecond: 100, burst: 20 } })
    const opened = openings(field)
    await field.start()
    field.sixteen()
    field.pods('more', 20, '1300m', '3Gi')
    field.pods('others', 9, '1700m', '12Gi')
    assert.ok(await field.until(() => field.isAllBound && field.claims().length > 4, 60 * seconds))
    assert.equal(opened.length, field.claims().length)
    const times = opened.map(({ atMs }) => atMs)
    const spanMs = Math.max(...times) - Math.min(...times)
    // One after the other, and no slower than the scheduler tries pods.
    assert.ok(spanMs < 2 * opened.length, `${spanMs} ms`)
  })

  test('open at one moment, too, when the first has waited as long as it may', async (t) => {
    const field = await Field.open(t, { latencyMs: 20, rate: { perSecond: 50, burst: 10 } })
    // No nomination ever stands.
    field.fate = (method, path) =>
      method === 'PATCH' && path.includes('/pods/') && path.includes('/status') ? 'error' : 'pass'
    const appeared: number[] = []
    field.world.cluster.server.local.subscribe<Node>(kinds.node, {
      added: () => {
        appeared.push(field.world.clock.now())
      },
    })
    const opened = openings(field)
    await field.start()
    field.sixteen()
    field.pods('more', 20, '1300m', '3Gi')
    field.pods('others', 9, '1700m', '12Gi')
    assert.ok(
      await field.until(() => opened.length > 4 && opened.length === field.claims().length, 60 * seconds),
    )
    assert.ok(Math.max(...appeared) - Math.min(...appeared) > 100, 'nodes come one after the other')
    const times = opened.map(({ atMs }) => atMs)
    assert.ok(Math.max(...times) - Math.min(...appeared) < 6.5 * seconds)
    // Openings do not wait for the client's rate limit, which allows one write in 20 ms and is used up by nominations.
    const spanMs = Math.max(...times) - Math.min(...times)
    assert.ok(spanMs < 2 * opened.length, `${spanMs} ms for ${opened.length}`)
  })

  test('open without one that is late, which opens once it is Ready and takes what it was planned for', async (t) => {
    const field = await Field.open(t)
    const { clock, cluster } = field.world
    let posts = 0
    field.fate = async (method, path): Promise<Fate> => {
      if (method === 'POST' && path.startsWith('/api/v1/nodes') && ++posts === 2)
        await clock.sleep(9 * seconds)
      return 'pass'
    }
    const readyMs = new Map<string, number>()
    cluster.server.local.subscribe<Node>(kinds.node, {
      updated: (node) => {
        const { name } = node.metadata
        if (isReady(node) && !readyMs.has(name)) readyMs.set(name, clock.now())
      },
    })
    const opened = openings(field)
    await field.start()
    field.sixteen()
    assert.ok(await field.until(() => field.isAllBound && field.claims().length > 1, 60 * seconds))
    const [early, late, ...more] = opened
    assert.deepEqual(more, [])
    const lateMs = readyMs.get(late?.node ?? '') ?? 0
    assert.ok((early?.atMs ?? lateMs) < lateMs - 4 * seconds)
    assert.ok((late?.atMs ?? 0) - lateMs < 200)
    assert.equal(field.said('computed new nodeclaim(s)').length, 1)
    assert.deepEqual(field.said('pod bound elsewhere'), [])
  })

  test('wait for the one whose pods have to share it', async (t) => {
    const field = await Field.open(t)
    const opened = openings(field)
    await field.start()
    field.sixteen()
    field.pods('group', 3, '2500m', '2Gi', together)
    assert.ok(await field.until(() => field.isAllBound && field.claims().length > 1, 60 * seconds))
    const shared = nodesOf(field, 'group')
    assert.equal(shared.size, 1)
    const [first, ...later] = opened
    assert.deepEqual(first?.node, [...shared][0])
    assert.ok(later.length > 0)
    for (const { bound } of later)
      assert.ok(['group-0', 'group-1', 'group-2'].every((name) => bound.has(name)))
    assert.equal(field.said('computed new nodeclaim(s)').length, 1)
    assert.deepEqual(field.said('pod bound elsewhere'), [])
  })

  test('are not waited for in vain by pods that may only come one to a zone at a time', async (t) => {
    const field = await Field.open(t)
    await field.start()
    field.pods('spread', 8, '1900m', '3Gi', spreading)
    field.pods('large', 8, '900m', '7Gi')
    assert.ok(await field.until(() => field.isAllBound && field.claims().length > 1, 20 * seconds))
    await field.pass(20 * seconds)
    // In about half of all orders the scheduler gives a small pod the room of a large one whose turn has not come
    // (docs/design/0005-planned-placement.md, at the end); that one gets one more node.
    assert.ok(field.said('computed new nodeclaim(s)').length <= 2)
    assert.ok(field.claims().length <= 5)
    // None was nominated only to be refused for others that were; the pod that is left over may be once more.
    assert.ok(field.nominations.length <= 18, `${field.nominations.length} nominations`)
  })

  test('do not wait longer than the bound for pods that are not bound', async (t) => {
    const field = await Field.open(t)
    const appeared = new Map<string, number>()
    const { local } = field.world.cluster.server
    local.subscribe<Node>(kinds.node, {
      added: ({ metadata }) => {
        appeared.set(metadata.name, field.world.clock.now())
      },
    })
    const opened = openings(field)
    await field.start()
    field.sixteen()
    field.pods('group', 3, '2500m', '2Gi', { ...together, schedulerName: 'another' })
    await field.pass(20 * seconds)
    assert.ok(opened.length > 1)
    for (const { node, atMs } of opened) assert.ok(atMs - (appeared.get(node) ?? 0) <= 5.1 * seconds)
  })
})
