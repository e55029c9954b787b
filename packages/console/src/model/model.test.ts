import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject, Node, NodeClaim, NodePool, Pod } from '@tenon/api'
import type { JournalEntry } from '@tenon/operator'
import { array, assert as check, constantFrom, integer, property, record } from 'fast-check'
import type { SourceEvent } from './event.ts'
import { ConsoleModel } from './model.ts'
import type { ConsoleResource, ConsoleView, ViewChange } from './view.ts'

const nowMs = Date.parse('2026-11-27T12:00:00Z')

function aNode(at: number, variant: number): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: `n${at}`, labels: { 'karpenter.sh/nodepool': `p${variant % 2}` } },
    spec: { providerID: `x://${variant % 3}`, unschedulable: variant % 2 === 0 },
    status: {
      allocatable: variant === 1 ? {} : { cpu: String(variant), memory: '4Gi', pods: '10' },
      conditions: [{ type: 'Ready', status: variant % 2 === 0 ? 'True' : 'False' }],
    },
  }
}

function aClaim(at: number, variant: number): NodeClaim {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: { name: `c${at}`, labels: { 'karpenter.sh/nodepool': `p${at % 2}` } },
    spec: { nodeClassRef: { group: 'g', kind: 'K', name: 'c' }, requirements: [] },
    ...(variant > 0 && { status: { providerID: `x://${variant % 3}`, conditions: [] } }),
  }
}

function aPool(at: number, variant: number): NodePool {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: `p${at}` },
    spec: {
      weight: variant + 1,
      template: { spec: { nodeClassRef: { group: 'g', kind: 'K', name: 'c' }, requirements: [] } },
    },
  }
}

const phases = ['Pending', 'Running', 'Succeeded', 'Running'] as const

function aPod(at: number, variant: number): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `pod${at}`, namespace: 'shop' },
    spec: {
      ...(variant > 0 && { nodeName: `n${variant % 3}` }),
      containers: [{ name: 'c', resources: variant === 3 ? {} : { requests: { cpu: `${variant + 1}00m` } } }],
    },
    status: { phase: phases[variant] ?? 'Running' },
  }
}

const makers = { nodes: aNode, nodeclaims: aClaim, nodepools: aPool, pods: aPod }
const resources = Object.keys(makers) as readonly ConsoleResource[]
const prices: SourceEvent = {
  kind: 'prices',
  prices: {
    currency: 'EUR',
    nodeClaims: [
      { name: 'c0', pricePerHour: 0.1 },
      { name: 'c1', pricePerHour: 0.2 },
    ],
  },
}

const steps = array(
  record({
    resource: constantFrom(...resources),
    at: integer({ min: 0, max: 2 }),
    /** -1 removes it. */
    variant: integer({ min: -1, max: 3 }),
  }),
  { maxLength: 60 },
)

/** Rows have no order. */
function sorted(view: ConsoleView): unknown {
  const byId = (a: { readonly id: string }, b: { readonly id: string }) => (a.id < b.id ? -1 : 1)
  return {
    ...view,
    nodes: view.nodes.toSorted(byId),
    claims: view.claims.toSorted(byId),
    pools: view.pools.toSorted(byId),
    pendingPods: view.pendingPods.toSorted(byId),
  }
}

function started(objects: Readonly<Record<ConsoleResource, readonly KubeObject[]>>): ConsoleModel {
  const model = new ConsoleModel()
  model.apply(prices)
  for (const resource of resources) model.apply({ kind: 'replaced', resource, objects: objects[resource] })
  return model
}

const nothing = { nodes: [], nodeclaims: [], nodepools: [], pods: [] }

/** A face that holds what it was sent. */
class Face {
  readonly #parts = new Map<string, unknown>()
  readonly #rows = new Map<string, Map<string, unknown>>()

  take(changes: readonly ViewChange[]): void {
    for (const change of changes) {
      if (!('table' in change)) {
        for (const [name, part] of Object.entries(change)) this.#parts.set(name, part)
        continue
      }
      const rows = this.#rows.get(change.table) ?? new Map<string, unknown>()
      this.#rows.set(change.table, rows)
      for (const row of change.set) rows.set(row.id, row)
      for (const id of change.removed) rows.delete(id)
    }
  }

  view(): unknown {
    const tables = ['nodes', 'claims', 'pools', 'groups', 'pendingPods', 'decisions', 'offerings']
    const rows = (table: string) =>
      [...(this.#rows.get(table) ?? [])].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row)
    const parts = ['header', 'problems', 'absent'].map((name) => [name, this.#parts.get(name) ?? []])
    return Object.fromEntries([...tables.map((table) => [table, rows(table)]), ...parts])
  }
}

test('events in any order that the API allows end in the state of a fresh read', () => {
  check(
    property(steps, (events) => {
      const model = started(nothing)
      const face = new Face()
      face.take(model.takeChanges(nowMs))
      const held = new Map<string, { resource: ConsoleResource; object: KubeObject }>()
      for (const { resource, at, variant } of events) {
        const object = makers[resource](at, Math.max(0, variant))
        const { name, namespace } = object.metadata
        if (variant < 0) {
          held.delete(`${resource}/${name}`)
          model.apply({ kind: 'removed', resource, name, ...(namespace !== undefined && { namespace }) })
        } else {
          held.set(`${resource}/${name}`, { resource, object })
          model.apply({ kind: 'set', resource, object })
        }
        if (at === 1) face.take(model.takeChanges(nowMs))
      }
      const of = (resource: ConsoleResource) =>
        [...held.values()].flatMap((each) => (each.resource === resource ? [each.object] : []))
      const fresh = started({
        nodes: of('nodes'),
        nodeclaims: of('nodeclaims'),
        nodepools: of('nodepools'),
        pods: of('pods'),
      })
      assert.deepEqual(sorted(model.view(nowMs)), sorted(fresh.view(nowMs)))
      face.take(model.takeChanges(nowMs))
      assert.deepEqual(face.view(), sorted(model.view(nowMs)))
    }),
    { numRuns: 300 },
  )
})

const noPods: SourceEvent = { kind: 'replaced', resource: 'pods', objects: [] }

test('CON-4 a claim without a node is a pending row and becomes its node in the same row', () => {
  const model = new ConsoleModel()
  model.apply(noPods)
  model.apply({ kind: 'set', resource: 'nodeclaims', object: aClaim(0, 0) })
  const [pending] = model.view(nowMs).nodes
  assert.equal(pending?.id, 'claim/c0')
  assert.equal(pending?.condition, 'Launched')
  assert.equal(model.view(nowMs).header.pendingNodes, 1)
  assert.deepEqual(model.view(nowMs).header.price, { perHour: 0, perMonth: 0, unpriced: 0 })
  model.apply({ kind: 'set', resource: 'nodeclaims', object: aClaim(0, 2) })
  model.apply({ kind: 'set', resource: 'nodes', object: aNode(0, 2) })
  const { nodes, header } = model.view(nowMs)
  assert.equal(nodes.length, 1)
  assert.equal(nodes[0]?.id, 'claim/c0')
  assert.equal(nodes[0]?.name, 'n0')
  assert.equal(header.nodes, 1)
  assert.equal(header.pendingNodes, 0)
})

test('CON-5 an unknown price is counted and in no sum', () => {
  const model = started({ ...nothing, nodes: [aNode(0, 2), aNode(1, 0)], nodeclaims: [aClaim(0, 2)] })
  const { header, nodes } = model.view(nowMs)
  assert.equal(header.price.unpriced, 1)
  assert.equal(header.price.perHour, 0.1)
  assert.equal(header.price.perMonth, 73)
  assert.equal(nodes.find(({ name }) => name === 'n1')?.pricePerHour, undefined)
})

test('CON-5 an instance is what has a provider ID, whatever conditions say: the header and the costs count the same', () => {
  const launched = {
    type: 'Launched',
    status: 'True' as const,
    reason: 'Launched',
    message: '',
    lastTransitionTime: '2026-11-26T12:00:00Z',
  }
  const without = aClaim(0, 0)
  const claims: readonly NodeClaim[] = [
    { ...without, status: { conditions: [launched] } },
    {
      ...without,
      metadata: { ...without.metadata, name: 'c9' },
      status: { providerID: 'x://1' },
    },
  ]
  const model = started({ ...nothing, nodeclaims: claims })
  model.apply({ kind: 'prices', prices: { nodeClaims: [{ name: 'c0', pricePerHour: 0.7 }] } })
  const { header, nodes } = model.view(nowMs)
  assert.deepEqual(header.price, { unpriced: 1 })
  assert.deepEqual(
    nodes.map(({ name, pricePerHour, providerId }) => ({ name, pricePerHour, providerId })),
    [
      { name: 'c0', pricePerHour: undefined, providerId: undefined },
      { name: 'c9', pricePerHour: undefined, providerId: 'x://1' },
    ],
  )
  const counting = model.costing('nodepool')
  let step = counting.next()
  while (step.done !== true) step = counting.next()
  assert.equal(step.value.unpriced.length, header.price.unpriced)
})

test('the price of a claim is kept when the controller does not tell it any more', () => {
  const model = started({ ...nothing, nodeclaims: [aClaim(0, 2)] })
  model.apply({ kind: 'prices', prices: { nodeClaims: [] } })
  assert.equal(model.view(nowMs).nodes[0]?.pricePerHour, 0.1)
})

test('pods that have ended, nodes without allocatable and pods without requests are told as they are', () => {
  const model = started({ ...nothing, nodes: [aNode(1, 1)], pods: [aPod(0, 2), aPod(1, 1), aPod(2, 0)] })
  const { header, nodes, pendingPods } = model.view(nowMs)
  assert.deepEqual(header.pods, { total: 2, pending: 1, running: 1, bound: 1 })
  assert.deepEqual(nodes[0]?.resources['cpu'], { used: 200 })
  assert.equal(nodes[0]?.podsMax, undefined)
  assert.equal(pendingPods[0]?.id, 'shop/pod2')
})

test('where pods cannot be read, requests and counts are absent', () => {
  const model = new ConsoleModel()
  model.apply({ kind: 'set', resource: 'nodes', object: aNode(0, 2) })
  model.apply({ kind: 'absent', what: 'pods', why: 'the right is missing: list pods' })
  const { header, nodes, absent } = model.view(nowMs)
  assert.equal(header.pods, undefined)
  assert.deepEqual(nodes[0]?.resources['cpu'], { allocatable: 2000 })
  assert.equal(nodes[0]?.pods, undefined)
  assert.equal(absent[0]?.what, 'pods')
  model.apply(noPods)
  assert.deepEqual(model.view(nowMs).absent, [])
  assert.deepEqual(model.view(nowMs).nodes[0]?.resources['cpu'], { used: 0, allocatable: 2000 })
})

test('reasons of pods that wait are those that Tenon tells, else those of the scheduler', () => {
  const refused = {
    type: 'PodScheduled',
    status: 'False' as const,
    reason: 'Unschedulable',
    message: 'no room',
  }
  const pod = { ...aPod(0, 0), status: { phase: 'Pending' as const, conditions: [refused] } }
  const model = started({ ...nothing, pods: [pod] })
  assert.deepEqual(model.view(nowMs).pendingPods[0]?.reason, {
    from: 'scheduler',
    code: 'Unschedulable',
    message: 'no room',
  })
  const reasons = [{ namespace: 'shop', name: 'pod0', code: 'noFit', summary: 'nothing is large enough' }]
  model.apply({ kind: 'reasons', reasons })
  assert.deepEqual(model.view(nowMs).pendingPods[0]?.reason, {
    from: 'tenon',
    code: 'noFit',
    message: 'nothing is large enough',
  })
})

test('the header tells decisions per minute, what is next, and what was saved', () => {
  const entry = (id: string, at: string): JournalEntry => ({
    id,
    at,
    kind: 'decision',
    reason: 'Provisioned',
    message: 'one node for 3 pods',
    nodeClaims: [],
    nodes: [],
  })
  const model = started(nothing)
  assert.equal(model.view(nowMs).header.tenon, undefined)
  const entries = [entry('1', '2026-11-27T11:50:00Z'), entry('2', '2026-11-27T11:59:30Z')]
  model.apply({ kind: 'journal', entries })
  model.apply({ kind: 'journal', entries })
  const decision = { nodePool: 'p', message: 'too early', at: '2026-11-27T11:59:30Z' }
  model.apply({
    kind: 'decisions',
    decisions: [
      { ...decision, nodeClaim: 'c0', cause: 'policy', until: '2026-11-27T12:00:30Z' },
      { ...decision, nodeClaim: 'c1', cause: 'pods' },
    ],
  })
  const { header, decisions } = model.view(nowMs)
  assert.equal(decisions.length, 2)
  assert.deepEqual(header.tenon, {
    decisionsPerMinute: 1,
    next: { text: 'c0 is looked at again', node: 'c0', at: '2026-11-27T12:00:30Z' },
  })
})

test('CON-8 the picture is stale from when nothing was heard until something is', () => {
  const model = started(nothing)
  model.apply({ kind: 'stale', sinceMs: nowMs - 30_000 })
  model.apply({ kind: 'stale', sinceMs: nowMs })
  assert.equal(model.view(nowMs).header.staleSince, '2026-11-27T11:59:30Z')
  model.apply({ kind: 'fresh' })
  assert.equal(model.view(nowMs).header.staleSince, undefined)
})

test('CON-7 thousands of changed rows are told some at a time, and all in the end', () => {
  const model = started(nothing)
  const objects = Array.from({ length: 1000 }, (_, at) => aNode(at, 2))
  model.apply({ kind: 'replaced', resource: 'nodes', objects })
  const told = new Set<string>()
  let calls = 0
  do {
    calls++
    for (const change of model.takeChanges(nowMs))
      if ('table' in change && change.table === 'nodes') for (const { id } of change.set) told.add(id)
  } while (model.isBehind)
  assert.ok(calls > 1)
  assert.equal(told.size, 1000)
  assert.equal(model.view(nowMs).header.nodes, 1000)
})

test('CAG-15 CAG-54 node groups have rows, and those that are held or left out are problems', () => {
  const model = new ConsoleModel()
  const figures = { nodes: 2, ready: 2, minSize: 0, maxSize: 4, targetSize: 2 }
  const healthy = { id: 'a', name: 'a', ...figures, state: 'Healthy' } as const
  const held = { id: 'b', name: 'b', ...figures, state: 'Healthy', message: 'not shrunk now: x' } as const
  const leftOut = { id: 'c', name: 'c', state: 'LeftOut', message: 'annotation y' } as const
  model.apply({ kind: 'groups', groups: [healthy, leftOut, held] })
  assert.deepEqual(
    model.view(nowMs).problems.map(({ kind, text }) => [kind, text]),
    [
      ['groupNotScaled', 'Node group b: not shrunk now: x'],
      ['groupNotScaled', 'Node group c: annotation y'],
    ],
  )
  model.takeChanges(nowMs)
  model.apply({ kind: 'groups', groups: [healthy] })
  assert.deepEqual(model.view(nowMs).groups, [healthy])
  assert.ok(
    model
      .takeChanges(nowMs)
      .some((change) => 'table' in change && change.table === 'groups' && change.removed.length === 2),
  )
})
